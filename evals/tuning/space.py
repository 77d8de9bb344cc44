"""What may be tuned, and which values are tried: a domain's plan, and the weights that rank across domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from nornweave.config import PlanSettings, SourceWeights
from nornweave.config.fusion import RankWeights

T = TypeVar("T", bound=Hashable)
Grid: TypeAlias = Mapping[str, tuple[float, ...]]
"""The values that are tried, by dotted key."""

# Of the whole that a retrieval source may gain or lose in one step. Finer steps take longer, and what they find is
# within the error of a few hundred queries.
_STEPS = (-0.1, 0.1)
# The two sources that find most may also jump: a plan that is far off shall not need ten rounds.
_JUMPS = (0.0, 0.2, 0.4, 0.6, 0.8)
_SHARES: Grid = {"dense": _JUMPS, "sparse": _JUMPS, "fulltext": (), "structured": ()}
_FIELD_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
_KINDS = ("weights", "literal_weights")
_PLAN_VALUES: Grid = {
    **{f"{kind}.{source}": jumps for kind in _KINDS for source, jumps in _SHARES.items()},
    "document_share": (0.0, 0.1, 0.2, 0.3, 0.5),
    "function_words": (0.1, 0.3, 0.6, 1.0),
    # Content stays: what counts is what the other fields do beside it.
    **dict.fromkeys(("fields.path", "fields.title", "fields.section"), _FIELD_WEIGHTS),
    **dict.fromkeys(("heuristics", "expand", "rerank"), (False, True)),
}
# Signals settle what relevance leaves open: a tenth for one of them is much (docs/fusion.md).
_SIGNALS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12)
_RANKING_VALUES: Grid = dict.fromkeys(("corroboration", "recency", "domain", "length"), _SIGNALS)
# How far a difference of 1 is; a tenth of all weight that one source gives and another takes is 0.1.
_DISTANCES = {"weights": 0.5, "literal_weights": 0.5, "function_words": 0.5, "fields": 0.5, "heuristics": 0.25,
              "expand": 0.25, "rerank": 0.25}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Space(Generic[T]):
    """Where a search may go.

    Attributes:
        configured: where it starts, and what it is drawn back to.
        coordinates: searched one after the other.
        read: returns a point's values by dotted key.
        changed: returns a point with another value for a key; ``None`` where that is no point.
    """

    configured: T
    coordinates: Grid
    read: Callable[[T], Mapping[str, float]]
    changed: Callable[[T, str, float], T | None]

    def neighbours(self, point: T, key: str) -> Sequence[T]:
        """Return the points that differ in one coordinate, in the order of its values."""
        values = self.coordinates[key]
        if key.partition(".")[0] in _KINDS:
            share = self.read(point)[key]
            values = tuple(sorted({*values, *(round(min(1.0, max(0.0, share + step)), 4) for step in _STEPS)}))
        changed = (self.changed(point, key, value) for value in values)
        return [one for one in changed if one is not None and one != point]

    def distance(self, point: T) -> float:
        """Return how far a point is from the configured one, ≥ 0."""
        ours, configured = self.read(point), self.read(self.configured)
        moved = (_DISTANCES.get(key.partition(".")[0], 1) * abs(ours[key] - configured[key]) for key in configured)
        return math.fsum(moved)


def plan_space(configured: PlanSettings, *, literal: bool, reranks: bool) -> Space[PlanSettings]:
    """Return the plans that a domain may answer by.

    Args:
        configured: the plan of the domain's YAML.
        literal: whether enough queries quote something for ``literal_weights`` to be fitted.
        reranks: whether there is a cross-encoder.
    """
    left_out = (*(() if literal else ("literal_weights.",)), *(() if reranks else ("rerank",)))
    values = {key: tried for key, tried in _PLAN_VALUES.items() if not key.startswith(left_out)}
    return Space(normalised(configured), values, _plan_values, _changed_plan)


def ranking_space(configured: RankWeights) -> Space[RankWeights]:
    """Return the weights that calibrated scores may be ranked with; what the signals take, the score gives."""
    return Space(configured, _RANKING_VALUES, _ranking_values, _changed_ranking)


def normalised(plan: PlanSettings) -> PlanSettings:
    """Return the same plan with weights that sum to 1: equal proportions, equal plans."""
    weights = {kind: _shares(getattr(plan, kind)) for kind in _KINDS}
    return plan.model_copy(update={kind: _weights(shares) for kind, shares in weights.items()})


def _plan_values(plan: PlanSettings) -> dict[str, float]:
    def value(key: str) -> float:
        group, _, name = key.rpartition(".")
        stated = float(getattr(getattr(plan, group) if group else plan, name))
        # Twice the weight is as far as half of it, and none is farthest.
        return stated / (1 + stated) if group == "fields" else stated

    return {key: value(key) for key in _PLAN_VALUES}


def _changed_plan(plan: PlanSettings, key: str, value: float) -> PlanSettings | None:
    group, _, name = key.rpartition(".")
    if not group:
        return plan.model_copy(update={name: value})
    inner = getattr(plan, group)
    if group == "fields":
        fields = inner.model_copy(update={name: value})
        return plan.model_copy(update={group: fields}) if any(fields.values) else None
    # A source is given this share of the whole; the others keep their proportions.
    shares = _shares(inner)
    others = 1 - shares[name]
    if others <= 0 or value == shares[name]:
        return None
    moved = {one: value if one == name else share * (1 - value) / others for one, share in shares.items()}
    return plan.model_copy(update={group: _weights(moved)})


def _ranking_values(weights: RankWeights) -> dict[str, float]:
    return {name: getattr(weights, name) for name in _RANKING_VALUES}


def _changed_ranking(weights: RankWeights, name: str, value: float) -> RankWeights | None:
    signals = {**asdict(weights), name: value, "score": 0}
    score = round(1 - math.fsum(signals.values()), 4)
    return replace(weights, **{name: value, "score": score}) if score > 0 else None


def _shares(weights: SourceWeights) -> dict[str, float]:
    stated = weights.model_dump()
    whole = math.fsum(stated.values())
    return {name: value / whole for name, value in stated.items()}


def _weights(shares: Mapping[str, float]) -> SourceWeights:
    return SourceWeights(**{name: round(value, 4) for name, value in shares.items()})
