"""Rebuild the chunks of a document without a masked stretch, as they would be indexed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nornweave.ask.search.quotations import Quoted, words_in
from nornweave.core.text import analyzer
from nornweave.core.text.index_fields import lookup_keys, terms_by_field
from nornweave.core.types import Chunk, Frequencies, Span
from nornweave.index.samples import IndexedDocument


@dataclass(frozen=True, slots=True, eq=False)
class Remains:
    """A chunk without the masked text, as it would be indexed."""

    chunk: Chunk
    embedded_before: bool
    title: str | None
    terms: Mapping[str, Frequencies]
    pairs: frozenset[int]
    keys: frozenset[str]
    hidden: Span

    @property
    def is_gone(self) -> bool:
        """Tell whether nothing of the chunk is left."""
        return not words_in(self.chunk.content)


def remains_of(indexed: IndexedDocument, hidden: Span, quoted: Quoted) -> Iterator[tuple[int, Remains]]:
    """Yield the chunks that contain or quote the masked text, without it, by number."""
    before = indexed.document
    document = replace(before, title=quoted.cleared(before.title))
    for number, chunk in indexed.chunks:
        left = replace(
            chunk,
            content=_content(before.text, chunk, hidden, quoted),
            context=quoted.cleared_lines(chunk.context),
            title=quoted.cleared(chunk.title),
            section=quoted.cleared(chunk.section),
        )
        if left != chunk or document.title != before.title:
            yield (
                number,
                Remains(
                    chunk=left,
                    embedded_before=left.embedded_text == chunk.embedded_text,
                    title=left.title or document.title,
                    terms=terms_by_field(document, left),
                    pairs=frozenset(map(analyzer.pair_key, analyzer.word_pairs(analyzer.sequence(left.content)))),
                    keys=frozenset(lookup_keys(document, left)),
                    hidden=hidden,
                ),
            )


def _content(text: str, chunk: Chunk, hidden: Span, quoted: Quoted) -> str:
    """Take the hidden text out of a chunk's own; by its words where that is not its document's as it stands (HTML)."""
    start, end = chunk.span.start, chunk.span.end
    if hidden.end <= start or end <= hidden.start:
        return chunk.content
    if text[start:end] != chunk.content:
        return quoted.cut(chunk.content)
    return text[start : max(start, hidden.start)] + text[min(end, hidden.end) : end]
