"""Build items with their citations from the chunks of a generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nornweave.ask.search.combine import Ranking
from nornweave.ask.search.heuristics import HeuristicCandidate, dated
from nornweave.ask.search.passage_url import passage_url
from nornweave.ask.search.records import Citation, Explanation, RecallItem, SourceScore
from nornweave.ask.search.rerank import Ranked
from nornweave.ask.search.search import SearchOutcome
from nornweave.core.types import Domain
from nornweave.index.index import StoredChunk
from nornweave.index.port import Vectors


def citation_of(domain: Domain, chunk: StoredChunk) -> Citation:
    """Return the citation of a chunk; messages and pages are cited instead of lines of extracted text."""
    line_range = None if chunk.message_ids or chunk.page else chunk.line_range
    return Citation(
        domain_id=domain,
        source_id=chunk.source_id,
        source_path=chunk.path,
        timestamp=dated(domain, chunk.metadata, chunk.updated_at) or chunk.updated_at,
        line_range=line_range,
        char_range=chunk.char_range,
        page=chunk.page,
        section=chunk.section,
        message_ids=chunk.message_ids or None,
        url=passage_url(chunk.url, chunk.metadata, line_range=line_range, message_ids=chunk.message_ids),
        title=chunk.title,
        revision=chunk.revision,
        stale=chunk.stale,
    )


def candidate_of(domain: Domain, chunk: StoredChunk, score: float) -> HeuristicCandidate:
    """Return a chunk as a candidate for reranking."""
    return HeuristicCandidate(
        chunk_id=chunk.chunk_id,
        score=score,
        content=chunk.content,
        source_path=chunk.path,
        title=chunk.title,
        section=chunk.section,
        timestamp=dated(domain, chunk.metadata, chunk.updated_at),
        metadata=chunk.metadata,
    )


def item_of(
    domain: Domain,
    chunk: StoredChunk,
    ranked: Ranked,
    sources: Mapping[str, SourceScore],
    explanation: Explanation | None,
    vector: Vectors | None = None,
) -> RecallItem:
    """Return the item for a chunk."""
    return RecallItem(
        chunk_id=chunk.chunk_id,
        content=chunk.content,
        score=ranked.score,
        citation=citation_of(domain, chunk),
        sources=sources,
        rerank_score=ranked.model_score,
        metadata=chunk.metadata,
        explanation=explanation,
        facts=chunk.facts,
        vector=vector,
    )


class Traces:
    """The retrieval sources and wordings that found each chunk of a ranking."""

    def __init__(self, found: Sequence[SearchOutcome], ranking: Ranking) -> None:
        self._found = found
        self._ranking = ranking
        self._hits = [
            (name, {number: place for place, number in enumerate(finding.hits.numbers.tolist())}, finding.hits.scores)
            for one in found
            for name, finding in one.findings.items()
        ]

    def sources(self, number: int) -> dict[str, SourceScore]:
        """Return rank and score by every source that found the chunk, in the first wording of the query that did."""
        sources: dict[str, SourceScore] = {}
        for name, places, scores in self._hits:
            place = places.get(number)
            if place is not None and name not in sources:
                sources[name] = SourceScore(place + 1, round(float(scores[place]), 4))
        return sources

    def explain(self, number: int, ranked: Ranked) -> Explanation:
        """Say how the chunk's score came about."""
        place = int(np.flatnonzero(self._ranking.numbers == number)[0])
        return Explanation(
            weights=self._found[0].weights,
            contributions={name: float(part[place]) for name, part in self._ranking.contributions.items()},
            combined=float(self._ranking.scores[place]),
            bonuses=ranked.bonuses,
            model_score=ranked.model_score,
        )
