"""Make items with their citations of the chunks of a generation."""

from __future__ import annotations

from nornweave.ask.search.heuristics import dated
from nornweave.ask.search.passage_url import passage_url
from nornweave.ask.search.records import Citation, RecallItem
from nornweave.core.types import Domain
from nornweave.index.records import StoredChunk


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


def item_of(domain: Domain, chunk: StoredChunk, score: float) -> RecallItem:
    """Return a chunk as an item with this score; which retrieval sources found it is not known yet."""
    return RecallItem(
        chunk_id=chunk.chunk_id,
        content=chunk.content,
        score=score,
        citation=citation_of(domain, chunk),
        sources={},
        metadata=chunk.metadata,
        facts=chunk.facts,
    )
