"""A document's chunks, with everything that the index needs of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from nornweave import analysis
from nornweave.chunking.chunker import Chunker
from nornweave.chunking.spans import Lines, TokenIndex
from nornweave.claims.extract import extract_claims
from nornweave.claims.passage import Passage
from nornweave.embedding import Encoder
from nornweave.fields import lookup_keys, terms_by_field
from nornweave.store.port import IndexedChunk
from nornweave.types import Chunk, ChunkId, Document, digest


def index_chunks(document: Document, chunker: Chunker, encoder: Encoder) -> Iterator[IndexedChunk]:
    """Cut a document and prepare its chunks for the index, in order."""
    index = TokenIndex(document.text, encoder.tokenizer)
    lines = Lines(document.text)
    seen: Counter[str] = Counter()
    for chunk in chunker.chunk(document, index):
        text_id = digest(chunk.content)
        yield IndexedChunk(
            chunk_id=ChunkId(digest(document.id, text_id, str(seen[text_id]))),
            chunk=chunk,
            embedding_key=digest(encoder.version, chunk.embedded_text),
            terms=terms_by_field(document, chunk),
            lines=lines.range(chunk.span),
            pairs=_pairs(chunk),
            keys=tuple(sorted(lookup_keys(document, chunk))),
            claims=extract_claims(passage_of(document, chunk)),
        )
        seen[text_id] += 1


def passage_of(document: Document, chunk: Chunk) -> Passage:
    """Return what claims are read from: the chunk's stretch of the document, which is what spans are counted in."""
    language = chunk.metadata.get("language")
    return Passage(
        text=document.text[chunk.span.start : chunk.span.end],
        start=chunk.span.start,
        domain=document.domain.value,
        language=language if isinstance(language, str) else None,
        format=document.format,
        path=document.path,
        title=chunk.title or document.title,
        section=chunk.section,
        context=chunk.context,
        timestamp=_said(chunk) or document.updated_at,
    )


def _said(chunk: Chunk) -> datetime | None:
    """Return when the first message of a chunk was sent."""
    moment = chunk.metadata.get("message_timestamp")
    try:
        return datetime.fromisoformat(moment) if isinstance(moment, str) else None
    except ValueError:
        return None


def _pairs(chunk: Chunk) -> tuple[int, ...]:
    pairs = analysis.word_pairs(analysis.sequence(chunk.content))
    return tuple(sorted({analysis.pair_key(pair) for pair in pairs}))
