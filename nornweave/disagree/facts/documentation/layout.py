"""Parse tables by their layout (pipes, rulers, grids, blanks, tags) into rows of cells with column headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.blocks import RULER, DocumentedBlock
from nornweave.disagree.facts.documentation.naming import CODE

MAX_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its words without line breaks, and where it stands."""

    text: str
    start: int
    end: int


_HEADERS = {
    "name": "name key option options parameter parameters param variable property properties setting settings"
            " field flag flags argument arg "
            "attribute attributes prop props environment directive keyword column configuration config env"
            " switch tunable",
    "default": "default defaults",
    "type": "type types datatype",
    "required": "required mandatory",
    "optional": "optional",
    "value": "value",
    "unit": "unit units",
    "prose": "description notes note meaning explanation purpose comment comments details effect usage summary"
             " help remarks",
}  # fmt: skip
_COLUMN = {word: kind for kind, words in _HEADERS.items() for word in words.split()}
_TEXT = lazy_pattern(r"[A-Za-z][A-Za-z]+")


def columns_of(header: list[Cell]) -> dict[str, int]:
    """Return which column holds what: of two that could be it, the first."""
    found: dict[str, int] = {}
    for at, cell in enumerate(header):
        words = [word.lower() for word in _TEXT.findall(cell.text)]
        kinds = [_COLUMN[word] for word in words if word in _COLUMN]
        if "default" in kinds and len(words) <= 3:
            kind = "default"
        elif kinds and len(words) <= 3:
            kind = kinds[-1] if kinds[-1] != "value" or len(words) == 1 else kinds[0]
        else:
            continue
        found.setdefault(kind, at)
    return found


def read_table(text: str, block: DocumentedBlock) -> tuple[list[list[Cell]], list[Cell] | None]:
    """Return the rows of a table block and its header, ``None`` if the header is not in the text."""
    lines = [(match.start(), match.end()) for match in re.finditer(r"[^\n]+", text[block.start : block.end])]
    lines = [(block.start + first, block.start + last) for first, last in lines]
    if block.info == "pipe":
        return _pipe(text, lines)
    return _grid(text, lines) if block.info == "grid" else _simple(text, lines)


_SEPARATOR = lazy_pattern(r"[\s|:+=-]+$")
_PIPE = lazy_pattern(r"(?<!\\)\|")


def _pipe(text: str, lines: list[tuple[int, int]]) -> tuple[list[list[Cell]], list[Cell] | None]:
    rows: list[list[Cell]] = []
    header = None
    for first, last in lines:
        line = text[first:last]
        if _SEPARATOR.match(line) and "-" in line:
            if len(rows) == 1 and header is None:
                header = rows.pop()
            continue
        rows.append(_split(text, first, last))
    if header is None and len(rows) > 1 and len(columns_of(rows[0])) > 1 and not CODE.search(rows[0][0].text):
        header = rows.pop(0)
    return rows, header


def _split(text: str, first: int, last: int) -> list[Cell]:
    """Split a row at its pipes; a pipe in a code span or behind a backslash is none."""
    line = text[first:last]
    spans = [match.span() for match in CODE.finditer(line)] if "`" in line else []
    cuts = [match.start() for match in _PIPE.finditer(line) if not any(a < match.start() < b for a, b in spans)]
    lead = line[: len(line) - len(line.lstrip())]
    if not cuts or cuts[0] != len(lead):
        cuts.insert(0, -1)
    if cuts[-1] < len(line.rstrip()) - 1:
        cuts.append(len(line))
    return [_cell(text, first + a + 1, first + b) for a, b in zip(cuts, cuts[1:], strict=False)][:MAX_COLUMNS]


def _cell(text: str, start: int, end: int) -> Cell:
    return Cell(" ".join(text[start:end].replace("\\|", "|").split()), start, max(start, end))


def _simple(text: str, lines: list[tuple[int, int]]) -> tuple[list[list[Cell]], list[Cell] | None]:
    """Read a table with ruled columns; a row without its first cell goes on with the one before."""
    rulers = [at for at, (first, last) in enumerate(lines) if RULER.match(text[first:last].strip())]
    if not rulers:
        return [], None
    first, last = lines[rulers[0]]
    line_start = text.rfind("\n", 0, first) + 1
    starts = [first - line_start + match.start() for match in re.finditer(r"[=-]+", text[first:last])]
    grid: list[list[Cell]] = []
    header_rows = 0
    ruled = set(rulers)
    for at, (begin, end) in enumerate(lines):
        if at in ruled:
            if grid and not header_rows and (at != rulers[-1] or (rulers[0] == at and len(grid) == 1)):
                header_rows = len(grid)
            continue
        origin = text.rfind("\n", 0, begin) + 1
        _ruled_row(text, origin, end, starts, grid)
    header = grid[0] if header_rows else None
    if header and not columns_of(header):
        header = None
    return grid[header_rows:] if header else grid, header


def _ruled_row(text: str, origin: int, end: int, starts: list[int], grid: list[list[Cell]]) -> None:
    cuts = [min(origin + start, end) for start in starts] + [end]
    cells = [_cell(text, a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    if cells and not cells[0].text and grid:
        grid[-1] = [
            Cell(f"{old.text} {new.text}".strip(), old.start, max(old.end, new.end))
            for old, new in zip(grid[-1], cells, strict=False)
        ]
    elif cells:
        grid.append(cells)


def _grid(text: str, lines: list[tuple[int, int]]) -> tuple[list[list[Cell]], list[Cell] | None]:
    rows: list[list[Cell]] = []
    header = None
    fresh = True
    for first, last in lines:
        line = text[first:last]
        if line.lstrip().startswith("+"):
            fresh = True
            if "=" in line and len(rows) == 1:
                header = rows.pop()
            continue
        cells = _split(text, first, last)
        if fresh or not rows:
            rows.append(cells)
        else:
            rows[-1] = [
                Cell(f"{a.text} {b.text}".strip(), a.start, b.end) for a, b in zip(rows[-1], cells, strict=False)
            ]
        fresh = False
    if header is None and len(rows) > 1 and len(columns_of(rows[0])) > 1:
        header = rows.pop(0)
    return rows, header


_ALIGNED = lazy_pattern(
    r"^[ \t]*(?P<name>`{0,2}[A-Za-z_][\w.-]{1,60}`{0,2})[ \t]{2,}(?P<value>\S(?:[^\n]{0,58}?\S)?)["
    r" \t]{2,}(?P<rest>\S[^\n]*)",
    re.MULTILINE,
)


def aligned_rows(text: str, start: int, end: int) -> list[list[Cell]]:
    """Return rows of a table of which only blanks divide the columns, and which lost its header and rulers."""
    return [
        [_cell(text, *match.span(name)) for name in ("name", "value", "rest")]
        for match in _ALIGNED.finditer(text, start, end)
    ]


_HTML = lazy_pattern(r"<(/?)(table|tr|td|th)\b[^<>]{0,300}>", re.IGNORECASE)


def html_tables(raw: str) -> Iterator[tuple[int, int, list[list[tuple[int, int]]], bool]]:
    """Yield the tables of markup: where each stands, the cells by row, and whether the first row is a header."""
    rows: list[list[tuple[int, int]]] = []
    begin, cell = -1, -1
    is_header = False
    for match in _HTML.finditer(raw):
        closing, tag = bool(match[1]), match[2].lower()
        begin = match.start() if begin < 0 else begin
        if cell >= 0 and rows and len(rows[-1]) < MAX_COLUMNS:
            rows[-1].append((cell, match.start()))
        cell = -1
        if tag in {"td", "th"} and not closing:
            rows = rows or [[]]
            is_header = is_header or (tag == "th" and len(rows) == 1)
            cell = match.end()
        elif tag == "tr" and not closing:
            rows.append([])
        elif tag == "table":
            if any(rows):
                yield begin, match.end(), [row for row in rows if row], is_header
            rows, begin, is_header = [], (-1 if closing else match.start()), False
    if any(rows):
        yield begin, len(raw), [row for row in rows if row], is_header
