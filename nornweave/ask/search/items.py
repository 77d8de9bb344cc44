"""Make items with their citations of the chunks of a generation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from nornweave.ask.search.passage_url import passage_url
from nornweave.ask.search.records import Citation, Explanation, RecallItem, SourceScore
from nornweave.ask.search.search import SearchContext
from nornweave.core.text.dates import iso_moment
from nornweave.core.types import Domain, Metadata
from nornweave.index.port import Vectors
from nornweave.index.records import StoredChunk

NO_SOURCES: Mapping[str, SourceScore] = MappingProxyType({})

# Where the chunks of a domain say when they were said or published. When their file changed says nothing about that.
_DATED_BY: Mapping[str, str] = MappingProxyType(
    {Domain.CONVERSATIONS: "message_timestamp", Domain.RESEARCH: "publication_date"}
)


def dated(domain: str, metadata: Metadata, updated_at: datetime | None) -> datetime | None:
    """Return when a chunk was said or published, in other domains when its source changed; ``None`` if unknown."""
    return iso_moment(metadata.get(_DATED_BY[domain])) if domain in _DATED_BY else updated_at


def citation_of(domain: Domain, chunk: StoredChunk, verified_at: datetime | None = None) -> Citation:
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
        verified_at=verified_at,
    )


def item_of(
    context: SearchContext,
    chunk: StoredChunk,
    score: float,
    *,
    sources: Mapping[str, SourceScore] = NO_SOURCES,
    rerank_score: float | None = None,
    explanation: Explanation | None = None,
    vector: Vectors | None = None,
) -> RecallItem:
    """Return a chunk as an item with this score, and what is known of how it was found."""
    return RecallItem(
        chunk_id=chunk.chunk_id,
        content=chunk.content,
        score=score,
        citation=citation_of(context.domain, chunk, context.verified.at(chunk.source_id, chunk.path)),
        sources=sources,
        rerank_score=rerank_score,
        metadata=chunk.metadata,
        explanation=explanation,
        facts=chunk.facts,
        vector=vector,
    )
