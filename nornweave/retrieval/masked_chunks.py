"""What is left of the chunks of a document when a stretch of it is hidden, as it would be indexed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nornweave import analysis
from nornweave.fields import lookup_keys, terms_by_field
from nornweave.recall.quoted import Quoted, words_in
from nornweave.store.samples import IndexedDocument
from nornweave.types import Chunk, Frequencies, Span


@dataclass(frozen=True, slots=True, eq=False)
class Remains:
    """What is left of a chunk, as it would be indexed."""

    chunk: Chunk
    embedded_before: bool
    title: str | None
    terms: Mapping[str, Frequencies]
    pairs: frozenset[int]
    keys: frozenset[str]
    hidden: Span

    @property
    def is_gone(self) -> bool:
        """Tell whether nothing is left to be found."""
        return not words_in(self.chunk.content)


def remains_of(indexed: IndexedDocument, hidden: Span, quoted: Quoted) -> Iterator[tuple[int, Remains]]:
    """Yield what is left of the chunks that hold the hidden text or quote it, by number."""
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
                    pairs=frozenset(map(analysis.pair_key, analysis.word_pairs(analysis.sequence(left.content)))),
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
