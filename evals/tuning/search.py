"""Coordinate search with cross-validation: every fold looks for its own best point, all share what was scored."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evals.tuning.space import Space, T

Values: TypeAlias = NDArray[np.float64]
"""The objective of every query, in their order."""
Score: TypeAlias = Callable[[Sequence[T], float | None], Mapping[T, Values]]
"""Scores points on all queries; the second argument is the ``time.monotonic()`` at which it gives up."""

ROUNDS = 2
PULL = 0.01
"""What a unit of distance from the configured point costs: a tenth of all weight moved has to gain a thousandth."""


class OutOfTimeError(Exception):
    """The deadline passed while points were scored; what was not finished does not count."""


@dataclass(slots=True)
class _Fold(Generic[T]):
    """One search: over the queries that it may see.

    Attributes:
        seen: which queries count.
        visited: in the order in which they came up. A fold looks at no point that only another fold's queries led to.
    """

    seen: NDArray[np.bool_]
    at: T
    visited: dict[T, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What a search found.

    Attributes:
        of_folds: the point of each fold, fitted to all other folds.
        of_all: fitted to all queries.
        values: of every point that was scored.
        finished: ``False`` when the deadline came first; the points are the best of what was scored by then.
    """

    of_folds: tuple[T, ...]
    of_all: T
    values: Mapping[T, Values]
    finished: bool


def search(
    space: Space[T],
    score: Score[T],
    folds: Sequence[int],
    *,
    known: Sequence[T] = (),
    deadline: float | None = None,
    rounds: int = ROUNDS,
) -> Found[T]:
    """Look for the best point along one coordinate after the other, for each fold and for all queries.

    A fold moves to the neighbour with the highest mean objective less ``PULL`` times its distance. In the end it takes,
    of all that it visited, the point nearest to the configured one that is within one standard error of the best (of
    their paired difference): nothing is changed that the queries do not speak for.

    Args:
        space: where it may go.
        score: the objective; the same point may be asked for again.
        folds: the fold of each query, from 0.
        known: points to look at besides, such as the plan in force.
        deadline: ``time.monotonic()`` by which it stops.
        rounds: through all coordinates, at most.

    Raises:
        OutOfTimeError: not even the configured point could be scored.

    Source: the rule of one standard error is Breiman et al., "Classification and Regression Trees", 1984, 3.4.3.
    """
    numbers = np.asarray(folds)
    searches = [_Fold(numbers != fold, space.configured) for fold in range(int(numbers.max()) + 1)]
    searches.append(_Fold(np.ones(len(numbers), np.bool_), space.configured))
    start = list(dict.fromkeys((space.configured, *known)))
    values: dict[T, Values] = dict(score(start, deadline))
    for one in searches:
        one.visited |= dict.fromkeys(start)
    finished = _walk(space, score, searches, values, deadline, rounds)
    chosen = [select(space, {point: values[point] for point in one.visited}, one.seen) for one in searches]
    return Found(tuple(chosen[:-1]), chosen[-1], values, finished)


def select(space: Space[T], values: Mapping[T, Values], seen: NDArray[np.bool_]) -> T:
    """Return the point nearest to the configured one within one standard error of the best; see ``search``."""
    best = max(values, key=lambda point: _objective(space, values[point][seen], point))
    within = [point for point in values if _within_one_error(values[best][seen] - values[point][seen])]
    return min(within, key=lambda point: (space.distance(point), -_mean(values[point][seen])))


def _walk(
    space: Space[T],
    score: Score[T],
    searches: Sequence[_Fold[T]],
    values: dict[T, Values],
    deadline: float | None,
    rounds: int,
) -> bool:
    for _ in range(rounds):
        moved = False
        for coordinate in space.coordinates:
            neighbours = [list(coordinate(one.at)) for one in searches]
            new = [point for point in dict.fromkeys(chain.from_iterable(neighbours)) if point not in values]
            if deadline is not None and time.monotonic() >= deadline:
                return False
            try:
                values |= score(new, deadline) if new else {}
            except OutOfTimeError:
                return False
            for one, around in zip(searches, neighbours, strict=True):
                moved |= _step(space, values, one, around)
        if not moved:
            break
    return True


def _step(space: Space[T], values: Mapping[T, Values], one: _Fold[T], around: Sequence[T]) -> bool:
    one.visited |= dict.fromkeys(around)
    before = one.at
    # Of equals the first: a fold stays where it is.
    one.at = max((before, *around), key=lambda point: _objective(space, values[point][one.seen], point))
    return one.at != before


def _objective(space: Space[T], values: Values, point: T) -> float:
    return _mean(values) - PULL * space.distance(point)


def _within_one_error(losses: Values) -> bool:
    if len(losses) < 2:
        return bool(_mean(losses) <= 0)
    return _mean(losses) <= float(losses.std(ddof=1)) / math.sqrt(len(losses))


def _mean(values: Values) -> float:
    return math.fsum(values) / max(1, len(values))
