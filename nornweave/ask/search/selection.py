"""Select the items of an answer from a ranking: rerank, cut, cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nornweave.ask.search.expanded_search import ExpandedQuery
from nornweave.ask.search.heuristics import HeuristicCandidate
from nornweave.ask.search.items import Traces, candidate_of, item_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import RecallItem
from nornweave.ask.search.rerank import Ranked, rerank
from nornweave.config import DomainSettings
from nornweave.core.errors import RerankerError
from nornweave.core.types import Domain
from nornweave.index.index import Index, StoredChunk
from nornweave.index.port import Scores
from nornweave.models.rerankers import Reranker


def choose(
    question: Question,
    asked: ExpandedQuery,
    generation: Index,
    domain: Domain,
    settings: DomainSettings,
    reranker: Reranker | None,
    deadline: float | None,
) -> tuple[tuple[RecallItem, ...], list[str]]:
    """Rerank more candidates than requested if a reranker is available, then cut to ``top_k``.

    Returns:
        At most ``top_k`` items, best first, ties by chunk number; what did not go as it should.
    """
    heuristics = settings.plan.heuristics and question.rerank != "off"
    reranks = heuristics or reranker is not None
    wanted = question.top_k * (settings.reranking.overfetch_factor if reranks else 1)
    numbers = asked.ranking.numbers[:wanted]
    chunks = generation.chunks(numbers)
    candidates = [
        candidate_of(domain, chunks[number], float(score))
        for number, score in zip(numbers.tolist(), asked.ranking.places[:wanted], strict=True)
    ]
    model_scores, problems = _model_scores(question.text, candidates, reranker, deadline)
    ranked = rerank(
        candidates,
        query=question.text,
        settings=settings.reranking,
        now=question.now,
        model_scores=model_scores,
        heuristics=heuristics or model_scores is not None,
    )
    numbered = {chunk.chunk_id: number for number, chunk in chunks.items()}
    # Ties by number, as they were cut: the first five are the first five of ten.
    ranked = tuple(sorted(ranked, key=lambda one: (-one.score, numbered[one.candidate.chunk_id])))
    chosen = [(numbered[one.candidate.chunk_id], one) for one in ranked[: question.top_k]]
    return _items(question, asked, generation, domain, chunks, chosen), problems


def _model_scores(
    query: str, candidates: Sequence[HeuristicCandidate], reranker: Reranker | None, deadline: float | None
) -> tuple[Scores | None, list[str]]:
    """Let a model score candidates, if there is one; say why where it could not."""
    if reranker is None:
        return None, []
    try:
        return reranker.score(query, [one.content for one in candidates], deadline=deadline), []
    except RerankerError as error:
        return None, [str(error)]


def _items(
    question: Question,
    asked: ExpandedQuery,
    generation: Index,
    domain: Domain,
    chunks: Mapping[int, StoredChunk],
    chosen: Sequence[tuple[int, Ranked]],
) -> tuple[RecallItem, ...]:
    """Return the items of the chosen chunks, in their order."""
    traces = Traces(asked.found, asked.ranking)
    vectors = generation.vectors(np.array([number for number, _ in chosen], np.int32))
    return tuple(
        item_of(
            domain,
            chunks[number],
            one,
            traces.sources(number),
            traces.explain(number, one) if question.explain else None,
            vector,
        )
        for (number, one), vector in zip(chosen, vectors, strict=False)
    )
