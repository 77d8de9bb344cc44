"""Select the items of an answer from a ranking: rerank, cut, say what found each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nornweave.ask.search.expanded_search import ExpandedOutcome
from nornweave.ask.search.items import item_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Explanation, RecallItem, SourceScore
from nornweave.ask.search.rerank import Ranked, rerank
from nornweave.ask.search.search import SearchContext
from nornweave.config import DomainSettings
from nornweave.core.errors import RerankerError
from nornweave.index.port import Scores
from nornweave.models.rerankers import Reranker


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
    numbers = searched.ranking.numbers[:wanted]
    chunks = context.generation.chunks(numbers)
    items = [
        item_of(context.domain, chunk, float(score), context.verified.at(chunk.source_id, chunk.path))
        for chunk, score in zip(
            map(chunks.__getitem__, numbers.tolist()), searched.ranking.places[:wanted], strict=True
        )
    ]
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
    # Ties by number, as they were cut: the first five are the first five of ten.
    ordered = sorted((-each.score, numbered[each.item.chunk_id], each) for each in ranked)
    chosen = [(number, each) for _, number, each in ordered[: question.top_k]]
    return _explained(chosen, searched, context, explain=question.explain), problems


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
    chosen: Sequence[tuple[int, Ranked]], searched: ExpandedOutcome, context: SearchContext, *, explain: bool
) -> tuple[RecallItem, ...]:
    """Return the chosen items with their vectors and what found them; with ``explain`` how their scores came about."""
    hits = [
        (name, {number: place for place, number in enumerate(finding.hits.numbers.tolist())}, finding.hits.scores)
        for outcome in searched.outcomes
        for name, finding in outcome.findings.items()
    ]

    def sources(number: int) -> dict[str, SourceScore]:
        scored: dict[str, SourceScore] = {}
        for name, places, scores in hits:  # the first wording of the query that found the chunk counts
            if name not in scored and number in places:
                scored[name] = SourceScore(places[number] + 1, round(float(scores[places[number]]), 4))
        return scored

    vectors = context.generation.vectors(np.array([number for number, _ in chosen], np.int32))
    return tuple(
        replace(
            ranked.item,
            score=ranked.score,
            rerank_score=ranked.model_score,
            sources=sources(number),
            explanation=_explanation(number, ranked, searched) if explain else None,
            vector=vector,
        )
        for (number, ranked), vector in zip(chosen, vectors, strict=False)
    )


def _explanation(number: int, ranked: Ranked, searched: ExpandedOutcome) -> Explanation:
    place = int(np.flatnonzero(searched.ranking.numbers == number)[0])
    return Explanation(
        weights=searched.outcomes[0].weights,
        contributions={name: float(part[place]) for name, part in searched.ranking.contributions.items()},
        combined=float(searched.ranking.scores[place]),
        bonuses=ranked.bonuses,
        model_score=ranked.model_score,
    )
