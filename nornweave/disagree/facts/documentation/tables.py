"""Read tables of settings: which column is the name, the default, the unit; and what their rows state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.documentation.blocks import RULER, DocumentedBlock
from nornweave.disagree.facts.documentation.literals import whole_value
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of, is_like_identifier
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.documentation.prose import prose_facts

MAX_COLUMNS, MAX_ROWS = 16, 400


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its words without line breaks, and where it stands."""

    text: str
    start: int
    end: int


Row = list[Cell]
_HEADERS = {
    "name": "name key option options parameter parameters param variable property properties setting settings"
            " field flag flags argument arg attribute attributes prop props environment directive keyword column"
            " configuration config env switch tunable",
    "default": "default defaults",
    "type": "type types datatype",
    "required": "required mandatory",
    "value": "value",
    "prose": "description notes note meaning explanation purpose comment comments details effect usage summary"
             " help remarks",
}  # fmt: skip
_COLUMN = {word: kind for kind, words in _HEADERS.items() for word in words.split()}
_TEXT = lazy_pattern(r"[A-Za-z][A-Za-z]+")
_SEPARATOR = lazy_pattern(r"[\s|:+=-]+$")
_PIPE = lazy_pattern(r"(?<!\\)\|")


def _columns_of(header: Row) -> dict[str, int]:
    """Return which column holds what: of two that could be it, the first."""
    found: dict[str, int] = {}
    for at, cell in enumerate(header):
        words = [word.lower() for word in _TEXT.findall(cell.text)]
        kinds = [_COLUMN[word] for word in words if word in _COLUMN]
        if kinds and len(words) <= 3:
            is_last = kinds[-1] != "value" or len(words) == 1
            found.setdefault("default" if "default" in kinds else kinds[-1] if is_last else kinds[0], at)
    return found


def read_table(text: str, block: DocumentedBlock) -> tuple[list[Row], Row | None]:
    """Return the rows of a table block and its header, ``None`` if the header is not in the text."""
    lines = [
        (block.start + match.start(), block.start + match.end())
        for match in re.finditer(r"[^\n]+", text[block.start : block.end])
    ]
    rows, header = _ruled(text, lines) if block.info == "simple" else _piped(text, lines)
    if header is None and len(rows) > 1 and len(_columns_of(rows[0])) > 1 and not CODE.search(rows[0][0].text):
        header = rows.pop(0)
    return rows, header


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
    spans = [match.span() for match in CODE.finditer(line)] if "`" in line else []
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
                Cell(f"{old.text} {new.text}".strip(), old.start, max(old.end, new.end))
                for old, new in zip(rows[-1], cells, strict=False)
            ]
        elif cells:
            rows.append(cells)
    return rows, header


def table_facts(
    page: Page, rows: list[Row], header: Row | None, subject: Subject | None, headings: str
) -> Iterator[Fact]:
    """Yield what the rows of a table state; a table without a name and a property yields nothing."""
    columns = _columns_of(header) if header else {}
    if "name" not in columns and columns.keys() & {"default", "type", "required"}:
        columns = {"name": 0, **{kind: at for kind, at in columns.items() if at}}
    if "name" not in columns or len(columns) < 2:
        return
    owner = subject.path if subject is not None and not subject.is_weak else headings
    for row in rows[:MAX_ROWS]:
        if columns["name"] < len(row):
            yield from _row(page, row, columns, owner)


def _names(cell: Cell) -> list[str]:
    spans = [name for match in CODE.finditer(cell.text) if (name := identifier_of(re.split(r"[ =(<\[]", match[2])[0]))]
    if spans:
        longest = max(spans, key=len)
        return [longest] if all(one.startswith("-") for one in spans) else spans[:4]
    bare = cell.text.strip("*_` ")
    if " " not in bare and is_like_identifier(bare.split("=")[0]):
        return [bare.split("=")[0]]
    return re.findall(r"--[a-z][\w-]+", bare)[:1]


def _row(page: Page, row: Row, columns: dict[str, int], owner: str) -> Iterator[Fact]:
    name_cell = row[columns["name"]]
    names = _names(name_cell)
    if not names and "default" in columns and 3 <= len(name_cell.text) <= 40 and "`" not in name_cell.text:
        names = [name_cell.text.strip("*_ ")]
    cells = {kind: row[at] for kind, at in columns.items() if at < len(row)}
    told: set[str] = set()
    for name in names:
        subject = Subject(name=name, form="table", owner=owner)
        for attribute in ("default", "value"):
            value = whole_value(cells[attribute].text) if attribute in cells else None
            fact = page.fact(subject, attribute, value, name_cell.start, cells[attribute].end) if value else None
            if fact is not None:
                told.add(fact.attribute)
                yield fact
    if names and "prose" in cells:
        subject = Subject(name=names[0], form="table", owner=owner)
        for fact in prose_facts(page, cells["prose"].start, cells["prose"].end, subject, headings=owner):
            if fact.attribute not in told:
                yield fact
