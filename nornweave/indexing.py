"""A document's chunks, with everything that the index needs of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nornweave import analysis
from nornweave.chunking.chunker import Chunker
from nornweave.chunking.spans import Lines, TokenIndex
from nornweave.embedding import Encoder
from nornweave.fields import lookup_keys
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
            terms=analysis.analyze(searched_text(document, chunk)),
            lines=lines.range(chunk.span),
            pairs=_pairs(chunk),
            keys=tuple(sorted(lookup_keys(document, chunk))),
        )
        seen[text_id] += 1


def searched_text(document: Document, chunk: Chunk) -> str:
    """Return what BM25 sees of a chunk: what it says, what it is called, where it stands and its language.

    With the language in every chunk of it, "python" in "python sort a list" prefers Python without preferring the few
    chunks that mention the word.
    """
    language = chunk.metadata.get("language")
    parts = (document.path, document.title, chunk.section, chunk.title, language, chunk.content)
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _pairs(chunk: Chunk) -> tuple[int, ...]:
    pairs = analysis.word_pairs(analysis.sequence(chunk.content))
    return tuple(sorted({analysis.pair_key(pair) for pair in pairs}))
