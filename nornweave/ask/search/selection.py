"""Select the items of an answer from a ranking: rerank, cut, cite."""

from __future__ import annotations

import numpy as np

from nornweave.ask.search.expanded_search import ExpandedQuery
from nornweave.ask.search.items import Traces, candidate_of, item_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import RecallItem
from nornweave.ask.search.rerank import rerank
from nornweave.config import DomainSettings
from nornweave.core.errors import RerankerError
from nornweave.core.types import Domain
from nornweave.index.index import Index
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
    model_scores, problems = None, []
    if reranker is not None:
        try:
            model_scores = reranker.score(question.text, [one.content for one in candidates], deadline=deadline)
        except RerankerError as error:
            problems.append(str(error))
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
    chosen = np.array([numbered[one.candidate.chunk_id] for one in ranked[: question.top_k]], np.int32)
    traces = Traces(asked.found, asked.ranking)
    vectors = generation.vectors(chosen)
    items = tuple(
        item_of(
            domain,
            chunks[number],
            one,
            traces.sources(number),
            traces.explain(number, one) if question.explain else None,
            vector,
        )
        for number, one, vector in zip(chosen.tolist(), ranked, vectors, strict=False)
    )
    return items, problems
