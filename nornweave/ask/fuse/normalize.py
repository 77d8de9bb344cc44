"""Stage 2: put the scores of all agents on one scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from nornweave.ask.fuse.records import CollectedItems, Normalization, NormalizedItems, TaggedItem

# The normalised score of an agent's items when all its scores are equal: min-max is undefined there.
NEUTRAL = 0.5


def normalize(collected: CollectedItems, normalization: Normalization = "auto") -> NormalizedItems:
    """Bring scores to [0, 1].

    ``minmax``: per agent ``(score − min) / (max − min)``, 0.5 where they are all the same: for agents whose scores mean
    nothing to each other. It makes every agent's best item a 1, relevant or not; therefore ``calibrated`` keeps scores
    as they are where the agents say that theirs compare, cut to [0, 1].

    Args:
        collected: of stage 1.
        normalization: ``auto`` takes ``calibrated`` if every agent is calibrated, else ``minmax``.
    """
    chosen = _chosen(collected, normalization)
    if chosen == "calibrated":
        return NormalizedItems(tuple(map(_cut, collected.items)), chosen)
    bounds = _bounds(collected.items)
    stretched = (replace(one, score=_stretched(one.score, *bounds[_agent(one)])) for one in collected.items)
    return NormalizedItems(tuple(stretched), chosen)


def _chosen(collected: CollectedItems, normalization: Normalization) -> Literal["calibrated", "minmax"]:
    if normalization != "auto":
        return normalization
    return "calibrated" if all(tagged.calibrated for tagged in collected.items) else "minmax"


def _cut(tagged: TaggedItem) -> TaggedItem:
    return tagged if 0.0 <= tagged.score <= 1.0 else replace(tagged, score=min(max(tagged.score, 0.0), 1.0))


def _agent(tagged: TaggedItem) -> tuple[str, str]:
    return tagged.source_agent, tagged.source_domain


def _bounds(items: Iterable[TaggedItem]) -> dict[tuple[str, str], tuple[float, float]]:
    bounds: dict[tuple[str, str], tuple[float, float]] = {}
    for tagged in items:
        low, high = bounds.get(_agent(tagged), (tagged.score, tagged.score))
        bounds[_agent(tagged)] = min(low, tagged.score), max(high, tagged.score)
    return bounds


def _stretched(score: float, low: float, high: float) -> float:
    # Halved, so that a range of the largest floats does not overflow.
    span = high / 2 - low / 2
    return min(1.0, (score / 2 - low / 2) / span) if span > 0 else NEUTRAL
