"""Tune what a workspace answers with, on everything that was judged in it: sets, and what users said of answers."""

from __future__ import annotations

from dataclasses import dataclass

from evals.evaluation import configured_sets
from evals.feedback_set import sets_of_answers
from evals.runs import Progress, SetToRun
from evals.tuning import DEADLINE_S, TuningResult, keep, tune, tune_ranking
from nornweave.ask.engine import Engine
from nornweave.ask.feedback.book import feedback_of
from nornweave.config import Settings
from nornweave.config.plans.versioned_files import PlanFile
from nornweave.core.types import Domain


@dataclass(frozen=True, slots=True)
class Retuned:
    """What tuning found, and the plan that is in force for it; ``None`` where nothing better was found."""

    result: TuningResult
    plan: PlanFile | None


def retune(
    settings: Settings,
    domain: Domain | None,
    *,
    keeps: bool = True,
    deadline_s: float = DEADLINE_S,
    progress: Progress | None = None,
) -> Retuned:
    """Fit one domain's plan, or the weights that rank across domains, and put it in force if it is better.

    Args:
        settings: of the workspace.
        domain: whose plan; ``None`` for the ranking weights.
        keeps: write the plan; otherwise only say what was found.
        deadline_s: best found so far after this.
        progress: told after each query.

    Raises:
        JudgmentError: a judged set is broken, or about another corpus.
        TuningError: there is too little to fit to.
        StoreError: a domain cannot be searched, or the plan not be written.
    """
    with Engine(settings, watch=False) as engine:
        sets = [*configured_sets(settings, engine), *_feedback(settings)]
        if domain is None:
            result = tune_ranking(engine, settings, sets, deadline_s=deadline_s, progress=progress)
        else:
            result = tune(engine, settings, domain, sets, deadline_s=deadline_s, progress=progress)
        return Retuned(result, keep(settings, result) if keeps else None)


def _feedback(settings: Settings) -> list[SetToRun]:
    book = feedback_of(settings)
    try:
        return [SetToRun(judged, (domain,)) for domain, judged in sets_of_answers(book.judged()).items()]
    finally:
        book.close()
