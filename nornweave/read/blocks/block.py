"""A block of a document, and the parts that the readers of all formats share: lines, nesting, hidden text.

A format only says which block begins at a line and where it ends; everything else is here. The time for a block depends
on its lines, not on the nesting, and nothing that a page names is executed or included.

The rows of a table are read however it is drawn.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from nornweave.core.text.inline_markup import one_line, unescaped
from nornweave.core.types import Span

Kind: TypeAlias = Literal["front", "heading", "paragraph", "list", "code", "table", "note", "term"]

T = TypeVar("T")

MAX_DEPTH = 12
"""Levels of notes and terms in each other; what is deeper is one paragraph."""

MAX_ROWS = 20_000
_RULE = re.compile(r"[\s|:+=-]+\Z")
_BORDER = re.compile(r"[ \t]*[=+-][ \t=+-]*\Z")
_COLUMN = re.compile(r"[=-]+")
_PIPE = re.compile(r"(`{1,2})(?!`)[^`\n]{1,200}\1(?!`)|(?<!\\)\|")
_TR = re.compile(r"<tr\b", re.IGNORECASE)
_TD = re.compile(r"<(t[dh])\b[^<>]*>(.*?)(?=<t[dhr]\b|</t[dhr]|</table|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_LIST_ROW = re.compile(r"[ \t]*\*[ \t]+-", re.MULTILINE)
_LIST_CELL = re.compile(r"^[ \t]*(?:\*[ \t]+)?-(?:[ \t]+|$)", re.MULTILINE)
_BOUND = re.compile(r"[|!]={3,}\s*$")
_CELL = re.compile(r"(?:(?<=\s)(?:\d*[.+*]?\d*[+*])?[<^>.]{0,3}[adehlmsv]?)?(?<!\\)\|")
_COLS = re.compile(r"cols=\"?([^\"\]]*)")
_OPTION = re.compile(r"^[ \t]+:([\w-]+):[ \t]*(.*)$", re.MULTILINE)


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


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table with its cells. Its span includes the blank space and the border line below it."""

    span: Span
    cells: tuple[str, ...]
    is_header: bool = False

    @property
    def line(self) -> str:
        """The row as a line of a Markdown table."""
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in self.cells)} |"


def rows_of(text: str, block: Block) -> list[Row]:
    """Return the rows of a table block, in order; empty if the form of the table is unknown."""
    reader = {
        "pipe": _of_pipes, "bars": _of_pipes, "grid": _of_borders, "simple": _of_borders, "html": _of_tags,
        "asciidoc": _of_cells, "list-table": _of_list, "flat-table": _of_list, "csv-table": _of_commas,
    }.get(block.info)  # fmt: skip
    rows = list(reader(text, block)) if reader else []
    ends = [*(row.span.start for row in rows[1:]), block.span.end][: len(rows)]
    return [Row(Span(row.span.start, end), row.cells, row.is_header) for row, end in zip(rows, ends, strict=True)][
        :MAX_ROWS
    ]


def _of_pipes(text: str, block: Block) -> Iterator[Row]:
    count = 0
    for line in lines(text, block.span):
        row = text[line.start : line.end].strip()
        if row and not (_RULE.match(row) and "-" in row and block.info == "pipe"):
            yield Row(line, tuple(split_cells(row)), count < block.level)
            count += 1


def split_cells(row: str) -> list[str]:
    """Split a row at its pipes, except for pipes in code spans or after a backslash."""
    cuts = [match.start() for match in _PIPE.finditer(row) if match[0] == "|"]
    pieces = [row[start:end] for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(row)], strict=True)]
    pieces = pieces[not pieces[0].strip() :] if len(pieces) > 1 else pieces
    pieces = pieces[:-1] if len(pieces) > 1 and not pieces[-1].strip() else pieces
    return [piece.replace("\\|", "|").strip() for piece in pieces]


def _of_borders(text: str, block: Block) -> Iterator[Row]:
    """Yield the rows of a table with drawn borders. In a grid table the rows above ``===`` are the header."""
    drawn = list(lines(text, block.span))
    borders = [place for place, line in enumerate(drawn) if _BORDER.match(text[line.start : line.end].rstrip())]
    if not borders:
        return
    ruler = drawn[borders[0]]
    is_grid = block.info == "grid"
    starts = [match.start() for match in (re.compile(r"\+") if is_grid else _COLUMN).finditer(text, *_pair(ruler))]
    starts = [start - ruler.start + is_grid for start in starts]
    columns = list(zip(starts, [start - is_grid for start in starts[1:]] + [10_000], strict=True))[
        : len(starts) - is_grid
    ]
    doubled = [place for place in borders if "=" in text[drawn[place].start : drawn[place].end]]
    head = doubled[0] if is_grid and doubled else borders[1] if not is_grid and len(borders) > 2 else 0
    first: int | None = None
    cells: list[list[str]] = []
    for place in range(borders[0] + 1, len(drawn) + 1):
        row = text[drawn[place].start : drawn[place].end].rstrip() if place < len(drawn) else ""
        found = [row[start:end].strip() for start, end in columns] if place < len(drawn) else []
        is_border = place in borders or place == len(drawn)
        begins = is_border or (not is_grid and (first is None or (bool(found) and bool(found[0]))))
        if begins and first is not None:
            last = place - 1
            yield Row(Span(drawn[first].start, drawn[last].end), _filled(cells), first < head)
            first, cells = None, []
        if not is_border and (any(found) or first is not None):
            first = place if first is None else first
            cells.append(found)


def _pair(span: Span) -> tuple[int, int]:
    return span.start, span.end


def _filled(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(" ".join(filter(None, column)) for column in zip(*rows, strict=False))


def _of_tags(text: str, block: Block) -> Iterator[Row]:
    starts = [match.start() for match in _TR.finditer(text, *_pair(block.span))]
    for start, end in zip(starts, [*starts[1:], block.span.end], strict=False):
        cells = _TD.findall(text[start:end])
        is_header = bool(cells) and all(tag.lower() == "th" for tag, _ in cells)
        yield Row(Span(start, end), tuple(one_line(unescaped(_TAG.sub(" ", cell))) for _, cell in cells), is_header)


def _of_list(text: str, block: Block) -> Iterator[Row]:
    options = dict(_OPTION.findall(text[block.span.start : block.span.end]))
    headers = int(options["header-rows"]) if options.get("header-rows", "").isdecimal() else 0
    starts = [match.start() for match in _LIST_ROW.finditer(text, *_pair(block.span))]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], block.span.end], strict=False)):
        cells = [one_line(cell) for cell in _LIST_CELL.split(text[start:end])[1:]]
        yield Row(Span(start, end), tuple(cells), number < headers)


def _of_commas(text: str, block: Block) -> Iterator[Row]:
    said = text[block.span.start : block.span.end]
    options = dict(_OPTION.findall(said))
    headers = int(options["header-rows"]) if options.get("header-rows", "").isdecimal() else 0
    if options.get("header"):
        yield Row(Span(block.span.start, block.span.start), _commas(options["header"]), True)
    is_body = False
    for number, line in enumerate(lines(text, block.span)):
        row = text[line.start : line.end].strip()
        is_body = is_body or (number > 0 and not row)
        if is_body and row:
            yield Row(line, _commas(row), headers > 0)
            headers -= 1


def _of_cells(text: str, block: Block) -> Iterator[Row]:
    """Yield the rows of an AsciiDoc table. If ``cols`` is not stated, the first line shows the number of columns."""
    drawn = [line for line in lines(text, block.span) if text[line.start : line.end].strip()]
    bounds = [place for place, line in enumerate(drawn) if _BOUND.match(text[line.start : line.end])]
    if len(bounds) < 2:
        return
    head = text[block.span.start : drawn[bounds[0]].start]
    body = drawn[bounds[0] + 1 : bounds[1]]
    marks = [mark.start() for line in body for mark in _CELL.finditer(text, line.start, line.end)]
    first = sum(body[0].start <= mark < body[0].end for mark in marks) if body else 0
    stated = _COLS.search(head)
    columns = max(1, _columns(stated[1]) if stated else first)
    has_header = "header" in head or (
        first == columns and bool(body) and not text[body[0].end :].split("\n", 1)[0].strip()
    )
    ends = [*marks[1:], body[-1].end] if body else []
    cells = [one_line(text[start:end].partition("|")[2]) for start, end in zip(marks, ends, strict=True)]
    for place in range(0, len(cells), columns):
        span = Span(text.rfind("\n", 0, marks[place]) + 1, ends[min(place + columns, len(cells)) - 1])
        yield Row(span, tuple(cells[place : place + columns]), has_header and not place)


def _columns(stated: str) -> int:
    return sum(int(each.partition("*")[0]) if "*" in each else 1 for each in re.findall(r"\d+\*|[^,\s]+", stated))


def _commas(row: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in next(csv.reader([row.strip()], skipinitialspace=True), ()))
