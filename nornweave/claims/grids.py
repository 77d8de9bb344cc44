"""Tables in Markdown, RST and HTML → cells with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_ROWS = 200
MAX_COLUMNS = 20
MAX_CELL = 300

_MARKDOWN_RULE = re.compile(r"\s*\|?\s*:?-{1,}:?\s*(?:\|\s*:?-{1,}:?\s*)*\|?\s*\Z")
_SIMPLE_RULE = re.compile(r"\s*={2,}(?:\s+={2,})+\s*\Z")
_GRID_RULE = re.compile(r"\s*\+(?P<mark>[-=])[-=+]*\+\s*\Z")
_HTML_TABLE = re.compile(r"<table\b[^<>]{0,500}>(?P<body>.*?)(?:</table\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_HTML_ROW = re.compile(r"<tr\b[^<>]{0,500}>(?P<body>.*?)(?=</?tr\b|</table|\Z)", re.DOTALL | re.IGNORECASE)
_HTML_CELL = re.compile(r"<(?P<tag>t[hd])\b[^<>]{0,500}>(?P<cell>.*?)(?=</?t[hdr]\b|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
_MARKUP = re.compile(
    r"\[(?P<label>[^\[\]]{0,200})\]\([^()]{0,300}\)|\*\*|__|<[^<>]{1,200}>|\[\d+\]_?|\\(?=[-.()*_`#<>!|\[\]{}+~:/])"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell says, without markup except backticks, and where."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with a header; every row has as many cells as the header, or fewer.

    Attributes:
        above: offset of the table in the text.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    above: int


def grids(text: str) -> Iterator[Grid]:
    """Find the tables of a text that show their header; rows that a cut parted from it are left out."""
    if "|" in text or "==" in text:
        yield from _in_lines(text)
    if "<t" in text.lower():
        yield from _in_html(text)


def _in_lines(text: str) -> Iterator[Grid]:
    lines = _lines(text)
    at = 0
    while at < len(lines):
        line = lines[at][1]
        if at and "|" in lines[at - 1][1] and "-" in line and _MARKDOWN_RULE.match(line):
            end = _while(lines, at + 1, lambda one: "|" in one)
            yield _grid(
                lines[at - 1][0], _split_cells(*lines[at - 1]), (_split_cells(*one) for one in lines[at + 1 : end])
            )
            at = end
        elif (bars := _bare_bars(line)) and (
            end := _while(lines, at + 1, lambda one: _bare_bars(one) == bars)
        ) > at + 2:
            yield _grid(lines[at][0], _split_cells(*lines[at]), (_split_cells(*one) for one in lines[at + 1 : end]))
            at = end
        elif line.lstrip().startswith("==") and _SIMPLE_RULE.match(line):
            end = _while(lines, at + 1, lambda one: bool(one.strip()))
            yield from _simple(lines[at:end])
            at = end
        elif _GRID_RULE.match(line):
            end = _while(lines, at + 1, lambda one: one.lstrip()[:1] in {"|", "+"} and bool(one.strip()))
            yield from _ruled(lines[at:end])
            at = end
        else:
            at += 1


def _bare_bars(line: str) -> int:
    """Count the bars of a row without a frame, as tables of HTML look when they are flattened: ``a | b | c``."""
    return 0 if line.startswith(("|", " ")) or _MARKDOWN_RULE.match(line) else line.count(" | ")


def _lines(text: str) -> list[tuple[int, str]]:
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        found.append((at, line.rstrip("\r\n")))
        at += len(line)
    return found


def _while(lines: Sequence[tuple[int, str]], at: int, belongs: object) -> int:
    while at < len(lines) and callable(belongs) and belongs(lines[at][1]):
        at += 1
    return at


def _grid(above: int, header: Sequence[Cell], rows: Iterator[list[Cell]]) -> Grid:
    taken: list[tuple[Cell, ...]] = []
    for row in rows:
        if len(taken) == MAX_ROWS:
            break
        taken.append(tuple(row[: min(len(header), MAX_COLUMNS)]))
    return Grid(tuple(cell.text for cell in header[:MAX_COLUMNS]), tuple(taken), above)


def _split_cells(start: int, line: str) -> list[Cell]:
    found = []
    offset = len(line) - len(line.lstrip())
    bare = line.strip()
    if bare.startswith("|"):
        bare, offset = bare[1:], offset + 1
    bare = bare.removesuffix("|")
    at = 0
    for part in _parts(bare):
        found.append(_cell(part, start + offset + at))
        at += len(part) + 1
    return found


def _parts(bare: str) -> list[str]:
    """Split at bars that are not escaped."""
    parts, held = [], ""
    for part in bare.split("|"):
        held = f"{held}|{part}" if held else part
        if held.endswith("\\"):
            continue
        parts.append(held)
        held = ""
    return [*parts, held] if held else parts


def _cell(raw: str, start: int) -> Cell:
    bare = raw.strip()
    begin = start + len(raw) - len(raw.lstrip())
    return Cell(_plain(bare[:MAX_CELL]), begin, begin + len(bare))


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(lambda match: match["label"] or "", text).split())


def _simple(lines: Sequence[tuple[int, str]]) -> Iterator[Grid]:
    """Read an RST simple table: rules of ``=`` above the header, below it and at the end."""
    rules = [at for at, (_, line) in enumerate(lines) if _SIMPLE_RULE.match(line)]
    if len(rules) < 2:
        return
    columns = [match.span() for match in re.finditer("=+", lines[0][1])]
    header = [_column_cell(lines[1], columns, column) for column in range(len(columns))] if rules[1] > 1 else []
    body = lines[rules[1] + 1 : rules[2] if len(rules) > 2 else len(lines)]
    if header:
        yield _grid(
            lines[0][0], header, ([_column_cell(line, columns, at) for at in range(len(columns))] for line in body)
        )


def _column_cell(line: tuple[int, str], columns: Sequence[tuple[int, int]], column: int) -> Cell:
    begin = columns[column][0]
    end = columns[column + 1][0] if column + 1 < len(columns) else len(line[1])
    return _cell(line[1][begin:end], line[0] + min(begin, len(line[1])))


def _ruled(lines: Sequence[tuple[int, str]]) -> Iterator[Grid]:
    """Read an RST grid table; of rows that span several lines the first counts."""
    header_rule = next(
        (at for at, (_, line) in enumerate(lines) if (rule := _GRID_RULE.match(line)) and rule["mark"] == "="), 0
    )
    if header_rule:
        first = [lines[at + 1] for at in range(header_rule, len(lines) - 1) if _GRID_RULE.match(lines[at][1])]
        yield _grid(lines[0][0], _split_cells(*lines[1]), (_split_cells(*line) for line in first if "|" in line[1]))


def _in_html(text: str) -> Iterator[Grid]:
    for table in _HTML_TABLE.finditer(text):
        offset = table.start("body")
        rows = [_html_cells(row["body"], offset + row.start("body")) for row in _HTML_ROW.finditer(table["body"])]
        rows = [row for row in rows if row]
        if len(rows) > 1:
            yield _grid(table.start(), rows[0], iter(rows[1:]))


def _html_cells(row: str, start: int) -> list[Cell]:
    found = []
    for match in _HTML_CELL.finditer(row):
        text = " ".join(_TAG.sub(" ", match["cell"][:MAX_CELL]).split())
        found.append(Cell(text, start + match.start("cell"), start + match.end("cell")))
    return found
