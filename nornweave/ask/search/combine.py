"""Combine retrieval sources into one ranking."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nornweave.index.port import Numbers, Scores

RRF_K = 60
EXACT = "exact"
"""The name of exact evidence among contributions."""


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """The scores that one retriever gives the candidates.

    Attributes:
        scores: one per candidate, from 0 (least possible score, or not found) to 1 (greatest possible score).
        ranked: the chunks that the retriever found, best first.
    """

    name: str
    scores: Scores
    ranked: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class ExactEvidence:
    """What is known of the chunks of a generation beside the scores of the retrievers.

    Attributes:
        scores: exact evidence, one value per chunk, in [0, 1]; ``None`` if there is none.
        kept: groups of chunks (ascending), such as tests, each with the share of the score that its chunks keep.
        places: mark → its chunks, ascending; for example ``place:aside`` → tests, if the query does not ask for tests.
    """

    scores: Scores | None
    kept: tuple[tuple[Numbers, float], ...] = ()
    places: Mapping[str, Numbers] = field(default_factory=dict)

    def kept_shares(self, candidates: Numbers) -> NDArray[np.float64]:
        """Return for each candidate the share of its score that it keeps."""
        shares = np.ones(len(candidates), np.float32)
        for chunks, share in self.kept:
            places = np.minimum(np.searchsorted(chunks, candidates), len(chunks) - 1)
            shares[chunks[places] == candidates] *= np.float32(share)
        return shares.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Candidates in order.

    Attributes:
        numbers: chunk numbers, best first, ties by number.
        scores: in [0, 1]; the order follows them.
        contributions: leg → its part of each score; the parts add up to the score.
        places: the calibrated score of each place, comparable between domains, descending, in [0, 1].
    """

    numbers: Numbers
    scores: NDArray[np.float64]
    contributions: Mapping[str, NDArray[np.float64]]
    places: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.numbers)


def convex_combination(
    candidates: Numbers, legs: Sequence[Leg], weights: Mapping[str, float], evidence: ExactEvidence | None = None
) -> Ranking:
    """Combine retrieval sources by their scores.

    ``score(c) = Σ weight[leg] · score[leg](c) / Σ weight[leg]``. Both bounds of a score are theoretical, and no score
    is stretched to the best hit of the query: a domain with a weak best hit stays weak beside the others.

    Args:
        candidates: distinct chunk numbers.
        legs: one per retrieval source.
        weights: per leg, ≥ 0; only their proportion matters.
        evidence: exact evidence, which the retrievers cannot outvote.

    Returns:
        Every candidate once.

    Raises:
        KeyError: a leg has no weight.

    Source: Bruch, Gai & Ingber, TOIS 2023, arXiv:2210.11934, with theoretical maxima as well as minima.
    """
    return _ranking(candidates, _with(evidence, _parts(legs, weights), candidates))


def on_one_scale(
    ranking: Ranking,
    candidates: Numbers,
    legs: Sequence[Leg],
    common: Mapping[str, float],
    evidence: ExactEvidence | None = None,
) -> Ranking:
    """Return a domain's ranking with ``places`` scored under the weights that are common to all domains.

    A domain's own weights only decide the order inside it, because they do not make domains comparable. If words do not
    match, a score is little more than the weight of dense retrieval times a cosine. So a domain that weighs dense
    retrieval twice as much as other domains would come before them with half their similarity.
    """
    scores = _sum_parts(_with(evidence, _parts(legs, common), candidates), len(ranking))
    return replace(ranking, places=np.sort(scores)[::-1])


def reciprocal_rank_fusion(
    candidates: Numbers,
    legs: Sequence[Leg],
    weights: Mapping[str, float],
    evidence: ExactEvidence | None = None,
    *,
    k: int = RRF_K,
) -> Ranking:
    """Combine retrieval sources by rank (Cormack, Clarke & Büttcher, SIGIR 2009).

    ``score(c) = Σ weight[leg] / (k + rank[leg](c))``, ranks from 1, over ``Σ weight[leg] / (k + 1)`` so that a chunk
    that is first everywhere has 1. Exact evidence is added as in ``convex_combination``.

    Returns:
        Every candidate once.

    Source: Cormack, Clarke & Büttcher, SIGIR 2009.
    """
    parts = {leg.name: weights[leg.name] * _reciprocal_ranks(candidates, leg.ranked, k) for leg in legs}
    bound = math.fsum(weights.values()) / (k + 1)
    return _ranking(candidates, _with(evidence, {name: part / bound for name, part in parts.items()}, candidates))


def reorder(ranking: Ranking, factors: NDArray[np.float64]) -> Ranking:
    """Return the ranking after its scores are multiplied by factors; scores are at most 1."""
    scores = np.minimum(ranking.scores * factors, 1)
    order = np.lexsort((ranking.numbers, -scores))
    parts = {name: (part * factors)[order] for name, part in ranking.contributions.items()}
    return Ranking(ranking.numbers[order], scores[order], parts, np.sort(np.minimum(ranking.places * factors, 1))[::-1])


def merge(first: Ranking, others: Sequence[Ranking], share: float) -> Ranking:
    """Merge rankings. A candidate keeps its best score. The scores in ``others`` are first multiplied by ``share``."""
    rankings = [first, *others]
    factors = np.repeat([1.0, *[share] * len(others)], [*map(len, rankings)])
    numbers = np.concatenate([each.numbers for each in rankings])
    scores = np.concatenate([each.scores for each in rankings]) * factors
    best = np.lexsort((np.arange(len(numbers)), -scores, numbers))  # of equal scores that of the first wording
    best = best[np.append(True, numbers[best][1:] != numbers[best][:-1])[: len(best)]]
    best = best[np.lexsort((numbers[best], -scores[best]))]
    nothing = [np.zeros(len(each)) for each in rankings]
    parts = {
        name: np.concatenate([each.contributions.get(name, none) for each, none in zip(rankings, nothing, strict=True)])
        for name in sorted({name for each in rankings for name in each.contributions})
    }
    places = np.zeros(int(numbers.max(initial=-1)) + 1)
    np.maximum.at(places, numbers, np.concatenate([each.places for each in rankings]) * factors)
    return Ranking(
        numbers[best],
        scores[best],
        {name: (part * factors)[best] for name, part in parts.items()},
        np.sort(places[numbers[best]])[::-1],
    )


def _reciprocal_ranks(candidates: Numbers, ranked: Numbers, k: int) -> NDArray[np.float64]:
    ranks = {int(number): rank for rank, number in enumerate(ranked, 1)}
    return np.array([1 / (k + ranks[number]) if number in ranks else 0.0 for number in candidates.tolist()], np.float64)


def _parts(legs: Sequence[Leg], weights: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """Return each leg's part of the score of each candidate. The parts add up to at most 1."""
    bound = math.fsum(weights.values())
    return {leg.name: weights[leg.name] * leg.scores.astype(np.float64) / bound for leg in legs}


def _with(
    evidence: ExactEvidence | None, parts: Mapping[str, NDArray[np.float64]], candidates: Numbers
) -> Mapping[str, NDArray[np.float64]]:
    """Add exact evidence to the legs' parts: ``(1 − (1 − Σ parts) · (1 − evidence)) · kept``."""
    if evidence is None:
        return parts
    exact = np.zeros(len(candidates), np.float64)
    if evidence.scores is not None:
        exact = (1 - np.minimum(_sum_parts(parts, len(candidates)), 1)) * evidence.scores[candidates]
    if not evidence.kept:
        return {**parts, EXACT: exact}
    kept = evidence.kept_shares(candidates)
    return {**{name: part * kept for name, part in parts.items()}, EXACT: exact * kept}


def _sum_parts(parts: Mapping[str, NDArray[np.float64]], count: int) -> NDArray[np.float64]:
    # In the order of their names, so that the order of the legs cannot change the last digit.
    scores = np.zeros(count, np.float64)
    for name in sorted(parts):
        scores += parts[name]
    return scores


def _ranking(candidates: Numbers, parts: Mapping[str, NDArray[np.float64]]) -> Ranking:
    scores = _sum_parts(parts, len(candidates))
    order = np.lexsort((candidates, -scores))
    ordered = scores[order]
    return Ranking(candidates[order], ordered, {name: part[order] for name, part in parts.items()}, ordered)
