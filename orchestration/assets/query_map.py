"""The query map of the code domain: learnt from its commits, tested, then published or not."""

# No ``from __future__ import annotations`` here: Dagster reads the annotations of asset bodies as objects.

import dagster as dg

from evals.query_map import learn_published
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.types import Domain
from orchestration.assets import OWNERS, Result
from orchestration.resources import fail_with_message, logged_progress

DOMAIN = Domain.CODE
QUERY_MAP_JOB = "query_map"
QUERY_MAP_KEY = dg.AssetKey([DOMAIN.value, "query_map"])


def query_map_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset that learns the query map. The sensor ``query_map_due`` starts it."""

    @dg.asset(
        key=QUERY_MAP_KEY,
        deps=[[DOMAIN.value, "generation"]],
        group_name=QUERY_MAP_JOB,
        description=_QUERY_MAP,
        kinds={"duckdb"},
        owners=OWNERS,
        tags={"domain": DOMAIN.value},
    )
    def query_map(context: dg.AssetExecutionContext) -> Result:
        if store_of(settings, DOMAIN).current() is None:
            return dg.MaterializeResult(metadata={"summary": "nothing is published yet"})
        with fail_with_message():
            report = learn_published(settings, DOMAIN, context.run.run_id, logged_progress(context.log))
        return dg.MaterializeResult(
            metadata={
                "in_force": report.query_map is not None,
                "reason": report.reason,
                "examples": report.examples,
                "tested": report.tested,
                **({} if report.gain is None else {"gain": report.gain}),
                **({"generation": report.generation} if report.generation else {}),
            }
        )

    return query_map


_QUERY_MAP = (
    "What the commits teach of how the code domain is asked: a linear map of the query vector, learnt from older "
    "commits and tested with newer ones through the whole path of a question. It is published with the generation if "
    "that gains beyond chance and no judged set loses; else questions stay as they are, and this says why."
)
