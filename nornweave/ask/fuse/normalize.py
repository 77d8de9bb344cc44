"""Stage 2: put the scores of all agents on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from nornweave.ask.fuse.records import FusedItem, Scale

# The relevance of an agent's items when all its scores are equal: min-max is undefined there.
NEUTRAL = 0.5


def scale_of(items: Iterable[FusedItem], normalization: Literal["auto"] | Scale = "auto") -> Scale:
    """Return the scale for these items; ``auto`` takes ``calibrated`` if every agent is calibrated, else ``minmax``."""
    if normalization != "auto":
        return normalization
    return "calibrated" if all(fused.calibrated for fused in items) else "minmax"


def normalize(items: Sequence[FusedItem], scale: Scale) -> tuple[FusedItem, ...]:
    """Bring relevance to [0, 1].

    ``minmax``: per agent ``(score − min) / (max − min)``, 0.5 where they are all the same: for agents whose scores mean
    nothing to each other. It makes every agent's best item a 1, relevant or not; therefore ``calibrated`` keeps scores
    as they are where the agents say that theirs compare, cut to [0, 1].
    """
    if scale == "calibrated":
        return tuple(map(_cut, items))
    bounds = _bounds(items)
    return tuple(
        replace(fused, relevance=_stretched(fused.relevance, *bounds[fused.agent, fused.domain])) for fused in items
    )


def _cut(fused: FusedItem) -> FusedItem:
    if 0.0 <= fused.relevance <= 1.0:
        return fused
    return replace(fused, relevance=min(max(fused.relevance, 0.0), 1.0))


def _bounds(items: Iterable[FusedItem]) -> dict[tuple[str, str], tuple[float, float]]:
    bounds: dict[tuple[str, str], tuple[float, float]] = {}
    for fused in items:
        agent, score = (fused.agent, fused.domain), fused.relevance
        low, high = bounds.get(agent, (score, score))
        bounds[agent] = min(low, score), max(high, score)
    return bounds


def _stretched(score: float, low: float, high: float) -> float:
    # Halved, so that a range of the largest floats does not overflow.
    span = high / 2 - low / 2
    return min(1.0, (score / 2 - low / 2) / span) if span > 0 else NEUTRAL
