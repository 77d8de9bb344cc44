"""Select the items of an answer from a ranking: rerank, cut, say what found each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from nornweave.ask.search.heuristics import NO_BONUSES
from nornweave.ask.search.items import item_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Explanation, RecallItem, SourceScore
from nornweave.ask.search.rerank import Ranked, rerank
from nornweave.ask.search.search import ExpandedOutcome, SearchContext
from nornweave.config import DomainSettings
from nornweave.core.errors import RerankerError
from nornweave.index.port import Scores
from nornweave.index.records import StoredChunk
from nornweave.models.rerankers import Reranker

_Chosen: TypeAlias = tuple[float, int, Ranked | None]
"""A chunk in its place: minus its score, its number, what reranking says of it."""


def select(
    question: Question,
    searched: ExpandedOutcome,
    context: SearchContext,
    settings: DomainSettings,
    reranker: Reranker | None,
) -> tuple[tuple[RecallItem, ...], list[str]]:
    """Rerank more items than requested if a reranker is available, then cut to ``top_k``.

    Returns:
        At most ``top_k`` items, best first, ties by chunk number; what did not go as it should.
    """
    heuristics = settings.plan.heuristics and question.rerank != "off"
    reranks = heuristics or reranker is not None
    wanted = question.top_k * (settings.reranking.overfetch_factor if reranks else 1)
    numbers, places = searched.ranking.numbers[:wanted], searched.ranking.places[:wanted].tolist()
    chunks = context.generation.chunks(numbers)
    # Ties by number: the first five are the first five of ten.
    chosen: list[_Chosen] = sorted(
        (-min(1.0, place), number, None) for place, number in zip(places, numbers.tolist(), strict=True)
    )
    problems: list[str] = []
    if reranks:
        items = [item_of(context, chunks[number], -score) for score, number, _ in chosen]
        model_scores, problems = _model_scores(question.text, items, reranker, context.deadline)
        ranked = rerank(
            items,
            query=question.text,
            settings=settings.reranking,
            now=question.now,
            model_scores=model_scores,
            heuristics=heuristics or model_scores is not None,
        )
        numbered = {chunk.chunk_id: number for number, chunk in chunks.items()}
        chosen = sorted((-each.score, numbered[each.item.chunk_id], each) for each in ranked)
    return _explained(chosen[: question.top_k], chunks, searched, context, explain=question.explain), problems


def _model_scores(
    query: str, items: Sequence[RecallItem], reranker: Reranker | None, deadline: float | None
) -> tuple[Scores | None, list[str]]:
    """Let a model score items, if there is one; say why where it could not."""
    if reranker is None:
        return None, []
    try:
        return reranker.score(query, [item.content for item in items], deadline=deadline), []
    except RerankerError as error:
        return None, [str(error)]


def _explained(
    chosen: Sequence[_Chosen],
    chunks: Mapping[int, StoredChunk],
    searched: ExpandedOutcome,
    context: SearchContext,
    *,
    explain: bool,
) -> tuple[RecallItem, ...]:
    """Return the chosen items with their vectors and what found them; with ``explain`` how their scores came about."""
    numbers = np.array([number for _, number, _ in chosen], np.int32)
    is_chosen = np.zeros(context.generation.size, np.bool_)
    is_chosen[numbers] = True
    sources: dict[int, dict[str, SourceScore]] = {number: {} for number in numbers.tolist()}
    for outcome in searched.outcomes:
        for name, finding in outcome.findings.items():
            hits = finding.hits
            for place in np.flatnonzero(is_chosen[hits.numbers]).tolist():
                scored = SourceScore(place + 1, round(float(hits.scores[place]), 4))
                sources[int(hits.numbers[place])].setdefault(name, scored)  # of the first wording that found the chunk
    vectors = context.generation.vectors(numbers)
    return tuple(
        item_of(
            context,
            chunks[number],
            -score,
            sources=sources[number],
            rerank_score=ranked.model_score if ranked else None,
            explanation=_explanation(number, ranked, searched) if explain else None,
            vector=vector,
        )
        for (score, number, ranked), vector in zip(chosen, vectors, strict=False)
    )


def _explanation(number: int, ranked: Ranked | None, searched: ExpandedOutcome) -> Explanation:
    place = int(np.flatnonzero(searched.ranking.numbers == number)[0])
    return Explanation(
        weights=searched.outcomes[0].weights,
        contributions={name: float(part[place]) for name, part in searched.ranking.contributions.items()},
        combined=float(searched.ranking.scores[place]),
        bonuses=ranked.bonuses if ranked else NO_BONUSES,
        model_score=ranked.model_score if ranked else None,
    )
