"""Coordinate search with cross-validation: every fold looks for its own best plan, and all share what was scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.config import PlanSettings, SourceWeights

Values: TypeAlias = NDArray[np.float64]
"""The objective of every query, in their order."""
Score: TypeAlias = Callable[[Sequence[PlanSettings]], Mapping[PlanSettings, Values]]
"""Scores plans on all queries."""

ROUNDS = 2
_FIELD_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
# Only the proportion of weights matters. What finer steps find is within the error of a few hundred queries.
_FINDS_MOST, _FINDS_LESS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8), (0.0, 0.05, 0.15, 0.3)
COORDINATES: Mapping[str, tuple[float, ...]] = {
    **{f"weights.{source}": _FINDS_MOST if source in {"dense", "sparse"} else _FINDS_LESS
       for source in SourceWeights.model_fields},
    "document_share": (0.0, 0.1, 0.2, 0.3, 0.5),
    "function_words": (0.1, 0.3, 0.6, 1.0),
    # Content stays: what counts is what the other fields do beside it.
    **dict.fromkeys(("fields.path", "fields.title", "fields.section"), _FIELD_WEIGHTS),
    **dict.fromkeys(("heuristics", "expand", "rerank"), (False, True)),
}  # fmt: skip
"""The numbers of a plan that are searched one after the other, and the values that are tried."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes:
        of_folds: the plan of each fold, fitted to all other folds.
        of_all: fitted to all queries.
        values: of every plan that was scored.
        finished: ``False`` when time ran out; the plans are the best of what was scored by then.
    """

    of_folds: tuple[PlanSettings, ...]
    of_all: PlanSettings
    values: Mapping[PlanSettings, Values]
    finished: bool


def search(
    start: PlanSettings,
    score: Score,
    folds: Sequence[int],
    *,
    coordinates: Sequence[str] = tuple(COORDINATES),
    rounds: int = ROUNDS,
    is_late: Callable[[], bool] = lambda: False,
) -> SearchResult:
    """Move to the best value of one coordinate after the other, for each fold and for all queries.

    A move has to gain more than one standard error of the paired difference (after Breiman et al., "Classification and
    Regression Trees", 1984, 3.4.3).

    Args:
        score: the objective; no plan is asked for twice.
        folds: the fold of each query, from 0.
        coordinates: keys of ``COORDINATES``.
        is_late: asked before each coordinate; ends the search.
    """
    numbers = np.asarray(folds)
    fitted_to = [*(numbers != fold for fold in range(numbers.max() + 1)), np.ones(len(numbers), np.bool_)]
    at = [start] * len(fitted_to)
    values = dict(score([start]))
    for _ in range(rounds):
        before = at
        for key in coordinates:
            if is_late():
                return SearchResult(tuple(at[:-1]), at[-1], values, finished=False)
            around = [neighbours(plan, key) for plan in at]
            if new := [plan for plan in dict.fromkeys(chain.from_iterable(around)) if plan not in values]:
                values |= score(new)
            at = [_better(plan, near, values, own) for plan, near, own in zip(at, around, fitted_to, strict=True)]
        if at == before:
            break
    return SearchResult(tuple(at[:-1]), at[-1], values, finished=True)


def neighbours(plan: PlanSettings, key: str) -> list[PlanSettings]:
    """Return the plans that differ in one coordinate, in the order of its values; weights are never all 0."""
    group, _, name = key.rpartition(".")
    if not group:
        plans = [plan.model_copy(update={name: value}) for value in COORDINATES[key]]
    else:
        weights = [getattr(plan, group).model_copy(update={name: value}) for value in COORDINATES[key]]
        plans = [plan.model_copy(update={group: each}) for each in weights if any(each.values)]
    return [each for each in plans if each != plan]


def _better(
    plan: PlanSettings, near: Sequence[PlanSettings], values: Mapping[PlanSettings, Values], own: NDArray[np.bool_]
) -> PlanSettings:
    """Return the best of some plans where it is clearly better, by the queries of ``own``; otherwise stay."""
    best = max((plan, *near), key=lambda each: math.fsum(values[each][own]))
    gains = (values[best] - values[plan])[own]
    error = float(gains.std(ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return best if gains.mean() > error else plan
