"""A block of a document, and the parts that the readers of all formats share: lines, nesting, hidden text.

A format only says which block begins at a line and where it ends; everything else is here. The time for a block depends
on its lines, not on the nesting, and nothing that a page names is executed or included.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from nornweave.core.types import Span

Kind: TypeAlias = Literal["front", "heading", "paragraph", "list", "code", "table", "note", "term"]

T = TypeVar("T")

MAX_DEPTH = 12
"""Levels of notes and terms in each other; what is deeper is one paragraph."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document, such as a paragraph, a heading, a list or a table.

    Attributes:
        span: the whole lines of the block. For HTML, which has no lines, it is the block's place in the readable text.
        kind: ``front`` is front matter. A ``note`` contains other blocks, as an admonition, a tab or a directive does.
            A ``term`` explains a name.
        lines: the numbers of the block's lines in the file, from 0.
        level: for a heading its level, from 1. For a table the number of rows at its beginning that are the header.
        info: for a heading its text, for a note or a term its name, for code its language, for a table the style in
            which it is drawn.
        parts: the blocks inside a note or a term.
        anchor: the part of the address after ``#`` that leads to this block; empty if the text does not name it.
    """

    span: Span
    kind: Kind
    lines: range = range(0)
    level: int = 0
    info: str = ""
    parts: tuple[Block, ...] = ()
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a document.

    Attributes:
        text: the visible text. It has the length of the document, with blanks in place of hidden text. For HTML it is
            the readable text.
        blocks: the blocks in order. They do not overlap.
        hidden: the spans of hidden text, in order.
        said: spans of ``text`` with the text to show instead, in order. ``text`` itself is not changed by them.
    """

    text: str
    blocks: Sequence[Block]
    hidden: Sequence[Span] = ()
    said: Sequence[tuple[Span, str]] = ()

    def shown(self, span: Span) -> str:
        """Return the visible text of a span. A line that has only hidden text becomes an empty line."""
        hidden = ((each, "") for each in _touched(self.hidden, span, lambda each: each))
        said = _touched(self.said, span, lambda each: each[0])
        kept, at = [], span.start
        for each, value in sorted((*hidden, *said), key=lambda each: each[0].start):
            kept.append(self.text[at : max(at, each.start)])
            kept.append(value or "\n" * self.text.count("\n", max(at, each.start), min(each.end, span.end)))
            at = max(at, min(each.end, span.end))
        return "".join((*kept, self.text[at : span.end]))


def _touched(items: Sequence[T], span: Span, place: Callable[[T], Span]) -> Sequence[T]:
    """Return the items whose places touch a span. The items must be in order."""
    first = bisect_right(items, span.start, key=lambda item: place(item).end)
    return items[first : bisect_left(items, span.end, lo=first, key=lambda item: place(item).start)]


class Found(NamedTuple):
    """The block that begins at a line.

    Attributes:
        end: the line after the block.
        mark: for a heading its level, or the style that stands for a level. For a table the number of header rows.
        body: the first line of the blocks inside the block; -1 if there are none to read. The first ``lead`` characters
            of that line do not belong to them.
        cut: the number of lines at the end of the block that only close it.
        margin: the number of columns to remove from the lines in the block; 0 to remove the smallest indentation of
            these lines.
        parts: the blocks inside the block, if they are already known.
    """

    kind: Kind | Literal["hidden"]
    end: int
    mark: int | tuple[str, bool] = 0
    info: str = ""
    body: int = -1
    lead: int = 0
    margin: int = 0
    cut: int = 0
    parts: tuple[Block, ...] = ()


@dataclass(slots=True)
class Reading:
    """The state of reading a document: the hidden spans so far, and the styles of its titles in order of appearance."""

    text: str
    hidden: list[Span] = field(default_factory=list)
    styles: list[object] = field(default_factory=list)
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some lines of a document. Lines inside a block, such as a note, are without the margin of that block.

    Attributes:
        spans: the places of the lines in the document, including margins and line ends.
        first: the number of the first line, from 0.
    """

    rows: Sequence[str]
    spans: Sequence[Span]
    first: int = 0

    def within(self, start: int, end: int, lead: int = 0, margin: int = 0) -> Stretch:
        """Return the lines from ``start`` up to ``end`` without their margin.

        A ``margin`` of 0 means the smallest indentation of these lines. The first ``lead`` characters of the first line
        are removed too.
        """
        rows = [row.expandtabs(4) if "\t" in row else row for row in self.rows[start:end]]
        if lead:
            rows[0] = " " * lead + rows[0][lead:]
        filled = [indent_of(row) for row in rows if row.strip()]
        margin = margin or min(filled[1:] if lead and rows[0].strip() else filled, default=0)
        moved = [row[min(margin, indent_of(row)) :].rstrip() for row in rows]
        if lead:
            moved[0] = rows[0].strip()
        return Stretch(moved, self.spans[start:end], self.first + start)

    def span(self, start: int, end: int) -> Span:
        """Return the span of the lines from ``start`` up to ``end``, which is not included."""
        return Span(self.spans[start].start, self.spans[end - 1].end)


BlockAt: TypeAlias = Callable[[Reading, Stretch, int, str], Found]
"""Says what begins at a line; gets the last line of the paragraph above, or an empty text."""


def read_lines(text: str, start: int, block_at: BlockAt) -> Blocks:
    """Read the blocks of a text that has lines. Reading begins at the offset ``start``."""
    even = even_line_ends(text)
    spans = list(lines(even, Span(start, len(even))))
    rows = [even[span.start : span.end].rstrip() for span in spans]
    reading = Reading(even)
    blocks = tuple(_blocks(reading, Stretch(rows, spans, even.count("\n", 0, start)), block_at))
    hidden = tuple(united(reading.hidden))
    return Blocks(blanked(text, hidden), blocks, hidden)


def _blocks(reading: Reading, stretch: Stretch, block_at: BlockAt) -> Iterator[Block]:
    rows, at, above = stretch.rows, 0, ""
    while at < len(rows):
        if not rows[at]:
            at += 1
            continue
        found = block_at(reading, stretch, at, above)
        span = stretch.span(at, found.end)
        if found.kind == "hidden":
            reading.hidden.append(span)
        else:
            level = found.mark
            if not isinstance(level, int):
                if level not in reading.styles:
                    reading.styles.append(level)
                level = reading.styles.index(level) + 1
            parts = found.parts
            if found.body >= 0 and reading.depth < MAX_DEPTH:
                reading.depth += 1
                parts = tuple(
                    _blocks(
                        reading, stretch.within(found.body, found.end - found.cut, found.lead, found.margin), block_at
                    )
                )
                reading.depth -= 1
            numbers = range(stretch.first + at, stretch.first + found.end)
            yield Block(span, found.kind, numbers, level, found.info, parts)
        above = rows[found.end - 1] if found.kind in {"paragraph", "list"} else ""
        at = found.end


def united(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans in order. Spans that touch or overlap are joined into one span."""
    last: Span | None = None
    for span in sorted(spans, key=lambda span: span.start):
        if last is None or span.start > last.end:
            if last is not None:
                yield last
            last = span
        else:
            last = Span(last.start, max(last.end, span.end))
    if last is not None:
        yield last


_VISIBLE = re.compile(r"[^\r\n]")


def blanked(text: str, hidden: Sequence[Span]) -> str:
    """Return a text with blanks in its hidden spans, which must be in order. Line breaks stay."""
    pieces, at = [], 0
    for span in hidden:
        pieces += [text[at : span.start], _VISIBLE.sub(" ", text[span.start : span.end])]
        at = span.end
    return "".join((*pieces, text[at:])) if hidden else text


def even_line_ends(text: str) -> str:
    """Return ``text`` with ``\\n`` for every line end. All offsets stay the same."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def lines(text: str, span: Span) -> Iterator[Span]:
    """Split ``span`` after every ``\\n``. The text must have even line ends."""
    start = span.start
    while start < span.end:
        newline = text.find("\n", start, span.end)
        end = span.end if newline < 0 else newline + 1
        yield Span(start, end)
        start = end


_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\(?\d{1,9}[.)])[ \t]+\S")


def paragraphs(text: str) -> Blocks:
    """Read plain text as paragraphs and lists between blank lines, without headings."""
    return read_lines(text, 0, _paragraph)


def _paragraph(_reading: Reading, stretch: Stretch, at: int, _above: str) -> Found:
    return Found("list" if _BULLET.match(stretch.rows[at]) else "paragraph", end_of(stretch.rows, at, bool))


def end_of(rows: Sequence[str], line: int, goes_on: Callable[[str], object]) -> int:
    """Return the number of the first line after ``line`` for which ``goes_on`` is false, or the number of lines."""
    end = line + 1
    while end < len(rows) and goes_on(rows[end]):
        end += 1
    return end


def indent_of(row: str) -> int:
    """Return how many columns a row is indented."""
    expanded = row.expandtabs(4) if "\t" in row else row
    return len(expanded) - len(expanded.lstrip())


def indented_end(rows: Sequence[str], line: int, indent: int) -> int:
    """Return the end of the lines from ``line`` on that are indented by ``indent`` or more, or blank between those."""
    end = line
    while line < len(rows) and (not rows[line] or indent_of(rows[line]) >= indent):
        line += 1
        if rows[line - 1]:
            end = line
    return end
