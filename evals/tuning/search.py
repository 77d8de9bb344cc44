"""Coordinate search with cross-validation: every fold looks for its own best point, all share what was scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evals.tuning.space import Space, T

Values: TypeAlias = NDArray[np.float64]
"""The objective of every query, in their order."""
Score: TypeAlias = Callable[[Sequence[T]], Mapping[T, Values]]
"""Scores points on all queries; raises ``OutOfTimeError`` when there is no time for it."""

ROUNDS = 2
PULL = 0.01
"""What a unit of distance from the configured point costs: a tenth of all weight moved has to gain a thousandth."""


class OutOfTimeError(Exception):
    """The deadline passed while points were scored; what was not finished does not count."""


@dataclass(frozen=True, slots=True)
class SearchResult(Generic[T]):
    """What a search found.

    Attributes:
        of_folds: the point of each fold, fitted to all other folds.
        of_all: fitted to all queries.
        values: of every point that was scored.
        finished: ``False`` when time ran out; the points are the best of what was scored by then.
    """

    of_folds: tuple[T, ...]
    of_all: T
    values: Mapping[T, Values]
    finished: bool


def search(
    space: Space[T], score: Score[T], folds: Sequence[int], *, known: Sequence[T] = (), rounds: int = ROUNDS
) -> SearchResult[T]:
    """Move to the best value of one coordinate after the other, for each fold and for all queries.

    The best has the highest mean objective less ``PULL`` times its distance, which also keeps the folds on common paths
    and so saves points; ``select`` chooses among all that a fold has seen.

    Args:
        space: where it may go.
        score: the objective; no point is asked for twice.
        folds: the fold of each query, from 0.
        known: points to look at besides, such as the plan in force.
        rounds: through all coordinates, at most.

    Raises:
        OutOfTimeError: not even the configured point could be scored.
    """
    numbers = np.asarray(folds)
    seen = [*(numbers != fold for fold in range(numbers.max() + 1)), np.ones(len(numbers), np.bool_)]
    at = [space.configured] * len(seen)
    values = dict(score(list(dict.fromkeys((space.configured, *known)))))
    # A fold looks at no point that only another fold's queries led to.
    visited = [dict.fromkeys(values) for _ in seen]
    finished = True
    try:
        for _ in range(rounds):
            before = list(at)
            for coordinate in space.coordinates:
                around = [space.neighbours(point, coordinate) for point in at]
                if new := [point for point in dict.fromkeys(chain.from_iterable(around)) if point not in values]:
                    values |= score(new)
                for number, neighbours in enumerate(around):
                    visited[number] |= dict.fromkeys(neighbours)
                    # Of equals the first: a fold stays where it is.
                    at[number] = _best(space, {one: values[one][seen[number]] for one in (at[number], *neighbours)})
            if at == before:
                break
    except OutOfTimeError:
        finished = False
    chosen = [select(space, {point: values[point][mask] for point in points})
              for points, mask in zip(visited, seen, strict=True)]  # fmt: skip
    return SearchResult(tuple(chosen[:-1]), chosen[-1], values, finished)


def select(space: Space[T], values: Mapping[T, Values]) -> T:
    """Return the point nearest to the configured one within one standard error of the best.

    The error is that of the paired difference; nothing is changed that the queries do not speak for.

    Source: Breiman et al., "Classification and Regression Trees", 1984, 3.4.3.
    """
    best = values[_best(space, values)]
    within = [point for point in values if _mean(best - values[point]) <= _standard_error(best - values[point])]
    return min(within, key=lambda point: (space.distance(point), -_mean(values[point])))


def _best(space: Space[T], values: Mapping[T, Values]) -> T:
    return max(values, key=lambda point: _mean(values[point]) - PULL * space.distance(point))


def _standard_error(differences: Values) -> float:
    return float(differences.std(ddof=1)) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0


def _mean(values: Values) -> float:
    return math.fsum(values) / max(1, len(values))
