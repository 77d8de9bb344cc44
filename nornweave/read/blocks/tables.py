"""The rows of a table, however it is drawn."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nornweave.core.text.inline_markup import one_line, unescaped
from nornweave.core.types import Span
from nornweave.read.blocks.block import Block, lines

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
