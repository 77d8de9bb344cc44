"""Tuning: an asset for each domain's plan; people materialise them."""

# No ``from __future__ import annotations`` here: Dagster reads the annotations of asset bodies as objects.

import dagster as dg

from evals.tuning.results import TuningResult, as_markdown
from evals.tuning.tune import TuningError, retune
from nornweave.config import Settings
from nornweave.config.tuned_plans import TunedPlan
from nornweave.core.types import Domain
from nornweave.ingest.records import Progress
from orchestration.assets import OWNERS, Result
from orchestration.metadata import Metadata
from orchestration.resources import logged_progress, translated

GROUP = "tuning"
TUNING_JOB = "tuning"


def tuning_key(domain: Domain) -> dg.AssetKey:
    """Return the key of a domain's plan."""
    return dg.AssetKey([GROUP, domain.value])


def tuning_asset(settings: Settings, domain: Domain, progress: Progress | None) -> dg.AssetsDefinition:
    """Return the asset of a domain's plan; materialising it tunes the plan, and puts it in force if it is better."""

    @dg.asset(key=tuning_key(domain), group_name=GROUP, description=_PLAN, kinds={"python"}, owners=OWNERS)
    def tuned(context: dg.AssetExecutionContext) -> Result:
        show = progress or logged_progress(context.log)
        try:
            with translated():
                result, plan = retune(settings, domain, progress=show)
        except TuningError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        return dg.MaterializeResult(metadata=tuning_metadata(result, plan))

    return tuned


def tuning_metadata(result: TuningResult, plan: TunedPlan | None) -> Metadata:
    """Describe a plan's tuning: numbers that plot, and the evidence."""
    return {
        "kept": plan is not None,
        "plan": plan.name if plan else "nothing changes",
        "held_out_before": result.held_out.before,
        "held_out_after": result.held_out.after,
        "queries": result.queries,
        "plans_tried": result.plans_tried,
        "seconds": result.seconds,
        "reason": result.reason,
        "evidence": dg.MetadataValue.md(as_markdown(result)),
    }


_PLAN = (
    "Fits the domain's plan (what each retrieval source counts for, expansion, reranking) to its judged sets and to "
    "feedback, and puts it in force only if it is better beyond chance on queries that it was not fitted to. "
    "`nornweave plan DOMAIN --back` goes back. An asset that was never materialised is normal: the "
    "configured plan answers until somebody tunes."
)
