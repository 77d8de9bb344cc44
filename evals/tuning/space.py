"""What may be tuned, and in which steps: a domain's plan, and the weights that rank across domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Generic, TypeVar

from nornweave.fusion_settings import RankWeights
from nornweave.recall.records import RetrievalSource
from nornweave.settings import PlanSettings, SourceWeights
from nornweave.types import FIELDS

T = TypeVar("T", bound=Hashable)

# Of the whole that a retrieval source may gain or lose in one step. Finer steps take longer, and what they find is
# within the error of a few hundred queries.
SHARE_STEPS = (-0.1, 0.1)
# What the two sources that find most may have at once: a plan that is far off shall not need ten rounds.
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
MAIN_SOURCES = frozenset({RetrievalSource.DENSE.value, RetrievalSource.SPARSE.value})
DOCUMENT_SHARES = (0.0, 0.1, 0.2, 0.3, 0.5)
FUNCTION_WORDS = (0.1, 0.3, 0.6, 1.0)
FIELD_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
# Content stays: what counts is what the other fields do beside it.
HEADING_FIELDS = tuple(field for field in FIELDS if field != "content")
# Signals settle what relevance leaves open: a tenth for one of them is much (docs/fusion.md).
SIGNALS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12)
SWITCH_DISTANCE = 0.25
"""A switch, or a field left out, is as far as a quarter of all weight moved from one source to another."""


@dataclass(frozen=True, slots=True)
class Space(Generic[T]):
    """Where a search may go.

    Attributes:
        configured: where it starts, and what it is drawn back to.
        coordinates: each takes a point and returns its neighbours along one parameter.
        distance: from the configured point, ≥ 0; a tenth of all weight moved is 0.1.
    """

    configured: T
    coordinates: tuple[Callable[[T], Sequence[T]], ...]
    distance: Callable[[T], float]


def plan_space(configured: PlanSettings, *, literal: bool, reranks: bool) -> Space[PlanSettings]:
    """Return the plans that a domain may answer by.

    Args:
        configured: the plan of the domain's YAML.
        literal: whether enough queries quote something for ``literal_weights`` to be fitted.
        reranks: whether there is a cross-encoder.
    """
    sources = tuple(source.value for source in RetrievalSource)
    kinds = ("weights", "literal_weights") if literal else ("weights",)
    switches = ("heuristics", "expand", "rerank") if reranks else ("heuristics", "expand")
    return Space(
        configured=normalised(configured),
        coordinates=(
            *(_shares(kind, source) for kind in kinds for source in sources),
            _values("document_share", DOCUMENT_SHARES),
            _values("function_words", FUNCTION_WORDS),
            *(_field(name) for name in HEADING_FIELDS),
            *(_switch(name) for name in switches),
        ),
        distance=lambda plan: plan_distance(configured, plan),
    )


def ranking_space(configured: RankWeights) -> Space[RankWeights]:
    """Return the weights that calibrated scores may be ranked with; what the signals take, the score gives."""
    signals = ("corroboration", "recency", "domain", "length")
    return Space(
        configured=configured,
        coordinates=tuple(_signal(name) for name in signals),
        distance=lambda weights: math.fsum(abs(getattr(weights, name) - getattr(configured, name)) for name in signals),
    )


def plan_distance(one: PlanSettings, other: PlanSettings) -> float:
    """Return how far two plans are apart: shares moved, plain values by their difference, switches by a constant."""
    parts = [
        *(_moved(one.weights, other.weights), _moved(one.literal_weights, other.literal_weights)),
        abs(one.document_share - other.document_share),
        abs(one.function_words - other.function_words) / 2,
        *(
            SWITCH_DISTANCE * abs(one_field - other_field) / ((one_field + other_field) or 1)
            for one_field, other_field in zip(one.fields.values, other.fields.values, strict=True)
        ),
        *(
            SWITCH_DISTANCE
            for name in ("combine", "heuristics", "expand", "rerank")
            if getattr(one, name) != getattr(other, name)
        ),
    ]
    return math.fsum(parts)


def normalised(plan: PlanSettings) -> PlanSettings:
    """Return the same plan with weights that sum to 1: equal proportions, equal plans."""
    return plan.model_copy(
        update={
            "weights": _weights(_share_of(plan.weights)),
            "literal_weights": _weights(_share_of(plan.literal_weights)),
        }
    )


def _shares(kind: str, source: str) -> Callable[[PlanSettings], Sequence[PlanSettings]]:
    def neighbours(plan: PlanSettings) -> Sequence[PlanSettings]:
        shares = _share_of(getattr(plan, kind))
        stepped = {round(min(1.0, max(0.0, shares[source] + step)), 4) for step in SHARE_STEPS}
        wanted = sorted(stepped.union(SHARES) if source in MAIN_SOURCES else stepped)
        return [
            plan.model_copy(update={kind: _weights(moved)})
            for share in wanted
            if (moved := _with_share(shares, source, share)) is not None
        ]

    return neighbours


def _values(name: str, values: Sequence[float]) -> Callable[[PlanSettings], Sequence[PlanSettings]]:
    return lambda plan: [plan.model_copy(update={name: value}) for value in values if value != getattr(plan, name)]


def _field(name: str) -> Callable[[PlanSettings], Sequence[PlanSettings]]:
    """Weigh one field of BM25 otherwise."""

    def neighbours(plan: PlanSettings) -> Sequence[PlanSettings]:
        weighed = [plan.fields.model_copy(update={name: value}) for value in FIELD_WEIGHTS]
        return [plan.model_copy(update={"fields": one}) for one in weighed if one != plan.fields and any(one.values)]

    return neighbours


def _switch(name: str) -> Callable[[PlanSettings], Sequence[PlanSettings]]:
    return lambda plan: [plan.model_copy(update={name: not getattr(plan, name)})]


def _signal(name: str) -> Callable[[RankWeights], Sequence[RankWeights]]:
    def neighbours(weights: RankWeights) -> Sequence[RankWeights]:
        others = math.fsum(value for key, value in asdict(weights).items() if key not in {"score", name})
        return [
            replace(weights, **{name: value, "score": round(1 - others - value, 4)})
            for value in SIGNALS
            if value != getattr(weights, name) and others + value < 1
        ]

    return neighbours


def _with_share(shares: dict[str, float], source: str, share: float) -> dict[str, float] | None:
    """Give a source this share of the whole; the others keep their proportions."""
    others = 1 - shares[source]
    if others <= 0 or share == shares[source]:
        return None
    return {name: share if name == source else value * (1 - share) / others for name, value in shares.items()}


def _share_of(weights: SourceWeights) -> dict[str, float]:
    stated: dict[str, float] = {source.value: getattr(weights, source.value) for source in RetrievalSource}
    whole = math.fsum(stated.values())
    return {name: value / whole for name, value in stated.items()}


def _weights(shares: dict[str, float]) -> SourceWeights:
    return SourceWeights(**{name: round(value, 4) for name, value in shares.items()})


def _moved(one: SourceWeights, other: SourceWeights) -> float:
    before, after = _share_of(one), _share_of(other)
    return math.fsum(abs(after[name] - before[name]) for name in before) / 2
