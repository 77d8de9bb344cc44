"""``RECURSIVE_CHARACTER``: cut at paragraphs, lines, sentences, words; the fallback of all other strategies."""

from __future__ import annotations

from collections.abc import Iterator

from nornweave.core.text.spans import TokenIndex, split, strip_lines
from nornweave.core.types import Chunk, Document, Span

VERSION = "recursive-1"


def chunk_recursive(document: Document, index: TokenIndex, *, limit: int) -> Iterator[Chunk]:
    """Cut a document wherever it reads best, at most ``limit`` tokens a chunk."""
    text = document.text
    for piece in split(Span(0, len(text)), index, limit):
        span = strip_lines(text, piece)
        if len(span):
            yield Chunk(
                span=span,
                content=text[span.start : span.end],
                token_count=index.count(span),
                title=document.title,
            )
