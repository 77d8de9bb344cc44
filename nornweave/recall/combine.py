"""Combine retrieval sources on one scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leg:
    """What one retrieval source found: scores by candidate, and the bounds that put them on a scale.

    Attributes:
        floor: the source's theoretical minimum (-1 cosine, 0 BM25).
        ceiling: the highest score of this query over everything that is searched, so that a domain whose best hit is
            weak stays weak beside the others.
    """

    name: str
    scores: Mapping[str, float]
    floor: float
    ceiling: float


def convex_combination(legs: Sequence[Leg], weights: Mapping[str, float]) -> list[tuple[str, float]]:
    """Combine retrieval sources on one scale.

    ``score(c) = Σ weight[leg] · (score[leg](c) - floor[leg]) / (ceiling[leg] - floor[leg])``; a leg that lacks ``c``
    adds nothing.

    Returns:
        Every candidate of every leg once, by score descending, then name; scores in [0, 1] if weights sum to 1.

    Source: Bruch, Gai & Ingber, TOIS 2023, arXiv:2210.11934, theoretical min-max.
    """
    candidates = {name for leg in legs for name in leg.scores}
    scores = {
        candidate: math.fsum(weights[leg.name] * _scaled(leg, leg.scores[candidate])
                             for leg in legs if candidate in leg.scores)
        for candidate in candidates
    }  # fmt: skip
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _scaled(leg: Leg, score: float) -> float:
    reach = leg.ceiling - leg.floor
    return (score - leg.floor) / reach if reach > 0 else 0.0
