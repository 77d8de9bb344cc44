"""Rerank one domain's items by relevance blended with the domain's heuristics.

``final_score = clamp(model · w_model + Σ bonus · w_bonus, 0, 1)``, with the weights of the domain::

    code            model · 0.70 + (symbol + path) · 0.30
    documentation   model · 0.70 + heading · 0.20 + recency · 0.10
    conversations   model · 0.65 + recency · 0.25 + engagement · 0.10
    research        model · 0.70 + authority · 0.20 + recency · 0.10

Without a cross-encoder the combined score stands in for ``model``. The formula decides the *order* within the domain.
Its values do not compare between domains: a perfect chunk reaches 0.775 in code, 0.725 in documentation; a fresh
message gets a bonus that a fresh function cannot get; and a cross-encoder's 0.9 is not a combined 0.9. So each place in
the order keeps its calibrated score, and only the item at this place changes: what one domain knows about its own
chunks never moves it as a whole against the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from nornweave.ask.search.heuristics import NO_BONUSES, Bonuses, all_bonuses, heuristics_of
from nornweave.ask.search.records import RecallItem
from nornweave.config import RerankingSettings
from nornweave.core.types import Domain

STEP = 1e-9
"""Tells apart, in their order, items that would get equal calibrated scores."""
ROUNDING = 1e-6
"""How far a sum of weighted scores may miss [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An item in its place.

    Attributes:
        item: the unchanged item.
        score: the calibrated score of the place, in [0, 1], comparable between domains.
        model_score: of the cross-encoder, in [0, 1], if one ran.
        final_score: the result of the formula, in [0, 1], which decides the order.
        bonuses: heuristic → bonus before its weight, without zeros.
    """

    item: RecallItem
    score: float
    model_score: float | None
    final_score: float
    bonuses: Bonuses


def rerank(
    items: Sequence[RecallItem],
    *,
    query: str,
    domain: Domain,
    settings: RerankingSettings,
    now: datetime,
    model_scores: Sequence[float] | NDArray[np.float32] | None = None,
    heuristics: bool = True,
) -> tuple[Ranked, ...]:
    """Order all items by ``final_score``. Callers cut the result.

    Args:
        items: in any order.
        model_scores: the scores of the cross-encoder, in [0, 1], one per item in their order.
        heuristics: whether to add bonuses. Without bonuses, the final score is the model's or, without a model, the
            item's own score.

    Returns:
        Every item once, by ``final_score`` descending, then chunk id; ``score`` gives the same order.

    Raises:
        ValueError: a score is missing or outside [0, 1], or two items have the same chunk.
    """
    if model_scores is not None and len(model_scores) != len(items):
        raise ValueError(f"{len(model_scores)} model scores for {len(items)} items; expected one for each")
    if len({item.chunk_id for item in items}) != len(items):
        raise ValueError("a chunk stands among the items twice; expected each once")
    befores = [_unit(item.score, item) for item in items]
    models: list[float | None] = [None] * len(items)
    if model_scores is not None:
        models = [_unit(score, item) for score, item in zip(model_scores, items, strict=True)]
    relevances = [before if model is None else model for before, model in zip(befores, models, strict=True)]
    bonuses, finals = [NO_BONUSES] * len(items), relevances
    if heuristics:
        known = heuristics_of(domain, settings)
        bonuses = all_bonuses(items, query, known, now)
        finals = [
            min(1.0, math.fsum([relevance * settings.weights.model, *(each[name] * known[name][1] for name in each)]))
            for relevance, each in zip(relevances, bonuses, strict=True)
        ]
    order = sorted(range(len(items)), key=lambda at: (-finals[at], items[at].chunk_id))
    return tuple(
        Ranked(item=items[at], score=place, model_score=models[at], final_score=finals[at], bonuses=bonuses[at])
        for at, place in zip(order, _places(befores, [finals[at] for at in order]), strict=True)
    )


def _places(befores: Sequence[float], finals: Sequence[float]) -> list[float]:
    """Return the scores ``befores``, best first. They are made to differ wherever the descending ``finals`` differ."""
    places = sorted(befores, reverse=True)
    for place in range(len(places) - 2, -1, -1):
        if places[place] <= places[place + 1]:
            places[place] = places[place + 1] + (STEP if finals[place] > finals[place + 1] else 0.0)
    top = max([1.0, *places[:1]])
    return places if top == 1.0 else [place / top for place in places]


def _unit(score: float, item: RecallItem) -> float:
    if not -ROUNDING <= score <= 1.0 + ROUNDING:
        raise ValueError(f"score {score!r} of chunk {item.chunk_id!r}; expected a number in [0, 1]")
    return min(1.0, max(0.0, float(score)))
