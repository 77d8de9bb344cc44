"""A ranking → the items of an answer: reranked where there is something to rerank with, cut, with their citations."""

from __future__ import annotations

import numpy as np

from nornweave.cross_encoder import Reranker
from nornweave.errors import RerankerError
from nornweave.recall.asking import Asked
from nornweave.recall.items import Traces, candidate_of, item_of
from nornweave.recall.records import RecallItem, RecallRequest
from nornweave.recall.rerank import rerank
from nornweave.settings import DomainSettings
from nornweave.store.generation import Generation
from nornweave.types import Domain


def choose(
    request: RecallRequest,
    asked: Asked,
    generation: Generation,
    domain: Domain,
    settings: DomainSettings,
    reranker: Reranker | None,
    deadline: float | None,
) -> tuple[tuple[RecallItem, ...], list[str]]:
    """Rerank more candidates than are wanted where there is something to rerank with, and cut afterwards.

    Returns:
        At most ``top_k`` items, best first, ties by chunk number; what did not go as it should.
    """
    heuristics = settings.plan.heuristics and request.rerank != "off"
    reranks = heuristics or reranker is not None
    wanted = request.top_k * (settings.reranking.overfetch_factor if reranks else 1)
    numbers = asked.ranking.numbers[:wanted]
    chunks = generation.chunks(numbers)
    candidates = [
        candidate_of(domain, chunks[number], float(score))
        for number, score in zip(numbers.tolist(), asked.ranking.places[:wanted], strict=True)
    ]
    model_scores, problems = None, []
    if reranker is not None:
        try:
            model_scores = reranker.score(request.text, [one.content for one in candidates], deadline=deadline)
        except RerankerError as error:
            problems.append(str(error))
    ranked = rerank(
        candidates,
        query=request.text,
        settings=settings.reranking,
        now=request.now,
        model_scores=model_scores,
        heuristics=heuristics or model_scores is not None,
    )
    numbered = {chunk.chunk_id: number for number, chunk in chunks.items()}
    # Ties by number, as they were cut: the first five are the first five of ten.
    ranked = tuple(sorted(ranked, key=lambda one: (-one.score, numbered[one.candidate.chunk_id])))
    traces = Traces(asked.found, asked.ranking)
    chosen = [numbered[one.candidate.chunk_id] for one in ranked[: request.top_k]]
    vectors = generation.vectors(np.array(chosen, np.int32))
    items = tuple(
        item_of(
            domain,
            chunks[number],
            one,
            traces.sources(number),
            traces.explain(number, one) if request.explain else None,
            vector,
        )
        for number, one, vector in zip(chosen, ranked, vectors, strict=False)
    )
    return items, problems
