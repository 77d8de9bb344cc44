"""Fit what a workspace answers with to what was judged: ``tune`` and ``tune_ranking`` find, ``keep`` puts in force."""

from evals.tuning.results import TuningResult, as_json, as_markdown
from evals.tuning.tune import DEADLINE_S, MAX_QUERIES, MIN_QUERIES, TuningError, keep, tune, tune_ranking

__all__ = [
    "DEADLINE_S",
    "MAX_QUERIES",
    "MIN_QUERIES",
    "TuningError",
    "TuningResult",
    "as_json",
    "as_markdown",
    "keep",
    "tune",
    "tune_ranking",
]
