"""Rebuild the chunks of a document without a masked stretch, as they would be indexed.

Chunks repeat text from elsewhere in titles, heading paths and the messages before them; it is masked there as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nornweave.core.text import analyzer
from nornweave.core.text.index_fields import lookup_keys, terms_by_field
from nornweave.core.text.inline_markup import LINE_BOUND, plain_line
from nornweave.core.types import Chunk, Frequencies, Span
from nornweave.index.searching.generation_file import IndexedDocument

# In fewer words than these the same words are no quotation: "Refunds" stands in many headings.
QUOTED_WORDS = 3
# What separates the parts of a heading path.
_ABOVE = " > "
_CONTEXT_MARK = "[context] "
_WORD = re.compile(r"\w+")
_MARKS = re.compile(r"^[\s#>=*-]+")


class Quoted:
    """Finds a masked text in the titles, heading paths and contexts of other chunks."""

    def __init__(self, text: str) -> None:
        self.words = words_in(plain_line(_MARKS.sub("", text)) if len(text) <= LINE_BOUND else text)
        self._joined = f" {' '.join(self.words)} "
        quoted = r"\W+".join(map(re.escape, self.words))
        self._pattern = re.compile(rf"(?<!\w){quoted}(?!\w)", re.IGNORECASE)

    def cut(self, text: str) -> str:
        """Remove every occurrence from a text."""
        return self._pattern.sub(" ", text)

    def cleared(self, line: str | None) -> str | None:
        """Remove every occurrence from a title or a heading path; ``None`` if nothing is left."""
        if line is None:
            return None
        kept = _ABOVE.join(part for part in map(self._clear_part, line.split(_ABOVE)) if part)
        return kept or None

    def cleared_lines(self, text: str) -> str:
        """Remove every occurrence from a context, line by line. Lines are heading paths, messages or a question."""
        lines = []
        for line in text.split("\n"):
            said = line.removeprefix(_CONTEXT_MARK)
            kept = self.cleared(said)
            if kept is not None:
                lines.append(line[: len(line) - len(said)] + kept)
        return "\n".join(lines)

    def _clear_part(self, part: str) -> str:
        words = words_in(part)
        if words == self.words:
            return ""
        if len(words) >= QUOTED_WORDS and f" {' '.join(words)} " in self._joined:
            return ""  # the beginning of it, shortened
        if len(self.words) < QUOTED_WORDS:
            return part
        kept = self.cut(part)
        return part if kept == part else " ".join(kept.split())


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True, eq=False)
class UnmaskedChunk:
    """A chunk as it would be indexed without the masked text."""

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


def remains_of(indexed: IndexedDocument, hidden: Span, quoted: Quoted) -> Iterator[tuple[int, UnmaskedChunk]]:
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
                UnmaskedChunk(
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
    """Remove the hidden text from a chunk's content; by its words if the content differs from the document (HTML)."""
    start, end = chunk.span.start, chunk.span.end
    if hidden.end <= start or end <= hidden.start:
        return chunk.content
    if text[start:end] != chunk.content:
        return quoted.cut(chunk.content)
    return text[start : max(start, hidden.start)] + text[min(end, hidden.end) : end]
