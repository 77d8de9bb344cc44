"""Take tables apart into their rows, cells and header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.blocks import RULER, DocumentedBlock

MAX_COLUMNS, MAX_ROWS = 16, 400


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its words without line breaks, and where it stands."""

    text: str
    start: int
    end: int


Row = list[Cell]
_CODE = lazy_pattern(r"(?<!`)(`{1,2})(?!`)([^`\n]{1,200})\1(?!`)")
_SEPARATOR = lazy_pattern(r"[\s|:+=-]+$")
_PIPE = lazy_pattern(r"(?<!\\)\|")


def read_table(text: str, block: DocumentedBlock) -> tuple[list[Row], Row | None]:
    """Return the rows of a table block and its header, ``None`` if the header is not in the text."""
    lines = [
        (block.start + match.start(), block.start + match.end())
        for match in re.finditer(r"[^\n]+", text[block.start : block.end])
    ]
    rows, header = _ruled(text, lines) if block.info == "simple" else _piped(text, lines)
    return rows[:MAX_ROWS], header


def _piped(text: str, lines: list[tuple[int, int]]) -> tuple[list[Row], Row | None]:
    rows: list[Row] = []
    header = None
    for first, last in lines:
        if not _SEPARATOR.match(text[first:last]):
            rows.append(_split(text, first, last))
        elif len(rows) == 1 and header is None:
            header = rows.pop()
    return rows, header


def _split(text: str, first: int, last: int) -> Row:
    """Split a row at its pipes; a pipe in a code span or behind a backslash is none."""
    line = text[first:last]
    spans = [match.span() for match in _CODE.finditer(line)] if "`" in line else []
    cuts = [match.start() for match in _PIPE.finditer(line) if not any(a < match.start() < b for a, b in spans)]
    if not cuts or line[: cuts[0]].strip():
        cuts.insert(0, -1)
    if line[cuts[-1] + 1 :].strip():
        cuts.append(len(line))
    return [_cell(text, first + a + 1, first + b) for a, b in zip(cuts, cuts[1:], strict=False)][:MAX_COLUMNS]


def _cell(text: str, start: int, end: int) -> Cell:
    return Cell(" ".join(text[start:end].replace("\\|", "|").split()), start, max(start, end))


def _ruled(text: str, lines: list[tuple[int, int]]) -> tuple[list[Row], Row | None]:
    """Read a table with ruled columns; a row without its first cell goes on with the one before."""
    rulers = [at for at, (first, last) in enumerate(lines) if RULER.match(text[first:last].strip())]
    if not rulers:
        return [], None
    first, last = lines[rulers[0]]
    margin = first - text.rfind("\n", 0, first) - 1
    starts = [margin + match.start() for match in re.finditer(r"[=-]+", text[first:last])]
    rows: list[Row] = []
    header = None
    for at, (begin, end) in enumerate(lines):
        if at in rulers:
            if header is None and len(rows) == 1 and (at != rulers[-1] or at == rulers[0]):
                header = rows.pop()
            continue
        origin = text.rfind("\n", 0, begin) + 1
        cuts = [min(origin + start, end) for start in starts] + [end]
        cells = [_cell(text, a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
        if cells and not cells[0].text and rows:
            rows[-1] = [
                Cell(f"{old.text} {new.text}".strip(), old.start, new.end if new.text else old.end)
                for old, new in zip(rows[-1], cells, strict=False)
            ]
        elif cells:
            rows.append(cells)
    return rows, header
