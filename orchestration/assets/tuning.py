"""Tuning: an asset for each domain's plan and one for the weights that rank across domains; people materialise them."""

# No ``from __future__ import annotations`` here: Dagster reads the annotations of asset bodies as objects.

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from evals.tuning import TuningError, as_markdown
from evals.tuning.workspace import Retuned, retune
from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.ingest.records import Progress
from orchestration.assets.domain import OWNERS
from orchestration.failures import translated
from orchestration.metadata import Metadata
from orchestration.resources import logged_progress

GROUP = "tuning"
TUNING_JOB = "tuning"
RANKING_KEY = dg.AssetKey([GROUP, "ranking"])

if TYPE_CHECKING:
    Result = dg.MaterializeResult[Any]
else:
    Result = dg.MaterializeResult  # Dagster knows the bare class only


def tuning_assets(
    settings: Settings, domains: Sequence[Domain], progress: Progress | None
) -> list[dg.AssetsDefinition]:
    """Return the assets; materialising an asset tunes a plan, and puts it in force if it is better beyond chance."""
    return [_asset(settings, domain, progress) for domain in (*domains, None)]


def tuning_key(domain: Domain) -> dg.AssetKey:
    """Return the key of a domain's plan."""
    return dg.AssetKey([GROUP, domain.value])


def _asset(settings: Settings, domain: Domain | None, progress: Progress | None) -> dg.AssetsDefinition:
    @dg.asset(
        key=RANKING_KEY if domain is None else tuning_key(domain),
        group_name=GROUP,
        description=_RANKING if domain is None else _PLAN,
        kinds={"python"},
        owners=OWNERS,
    )
    def tuned(context: dg.AssetExecutionContext) -> Result:
        show = progress or logged_progress(context.log)
        try:
            with translated():
                retuned = retune(settings, domain, progress=show)
        except TuningError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        return dg.MaterializeResult(metadata=tuning_metadata(retuned))

    return tuned


def tuning_metadata(retuned: Retuned) -> Metadata:
    """Describe a plan's tuning: numbers that plot, and the evidence."""
    held_out = retuned.result.held_out
    return {
        "kept": retuned.plan is not None,
        "plan": retuned.plan.name if retuned.plan else "nothing changes",
        "held_out_before": held_out.before,
        "held_out_after": held_out.after,
        "queries": retuned.result.queries,
        "plans_tried": retuned.result.plans_tried,
        "seconds": retuned.result.seconds,
        "reason": retuned.result.reason,
        "evidence": dg.MetadataValue.md(as_markdown(retuned.result)),
    }


_PLAN = (
    "Fits the domain's plan (what each retrieval source counts for, expansion, reranking) to its judged sets and to "
    "feedback, and puts it in force only if it is better beyond chance on queries that it was not fitted to. "
    "`nornweave plan DOMAIN --back` goes back."
)
_RANKING = (
    "Fits the weights that rank items across domains to the judged sets of all domains, as the plans are fitted. "
    "`nornweave plan fusion --back` goes back."
)
