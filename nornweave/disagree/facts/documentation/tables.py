"""Take tables apart into their rows, cells and header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.blocks import DocumentedBlock

MAX_COLUMNS, MAX_ROWS = 16, 400
BELOW_AND_ABOVE = 2
"""Rulers of a table that has no header."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its words without line breaks, and its place."""

    text: str
    start: int
    end: int


Row = list[Cell]
_LINE = lazy_pattern(r"[^\n]+")
_RULE = lazy_pattern(r"[\s|:+=-]+$")
_COLUMN = lazy_pattern(r"[=-]+")
_MARKED = {
    "|": lazy_pattern(r"(?P<row>(?!))?(?:(?<=\s)(?:\d*[.+*]?\d*[+*])?[<^>.]{0,3}[adehlmsv]?)?(?<![\\|])\|(?!=)"),
    "¦": lazy_pattern(r"¦(?:(?P<row>-)|!)?"),
}
_BULLETS = lazy_pattern(r"^[ \t]*(?P<row>\*[ \t]+)?-(?:[ \t]+|$)", re.MULTILINE)
"""What a cell begins with in AsciiDoc, in HTML as ``surface`` draws it, and in a list."""
_COLS, _SPECS = lazy_pattern(r"cols=\"?([^\"\]]*)"), lazy_pattern(r"\d+\*|[^,\s]+")
_PIPE = lazy_pattern(r"(`{1,2})(?!`)[^`\n]{1,200}\1(?!`)|(?<!\\)\|")


def read_table(text: str, block: DocumentedBlock) -> tuple[list[Row], Row | None]:
    """Return the rows of a table block and its header; the header is ``None`` if the text has none."""
    if block.info in {"cells", "list"}:
        return _marked(text, block)
    rows: list[Row] = []
    header = None
    lines = [match.span() for match in _LINE.finditer(text, text.rfind("\n", 0, block.start) + 1, block.end)]
    rules = [one for one in lines if block.info == "simple" and _RULE.match(text, *one)]
    columns = [match.start() - rules[0][0] for match in _COLUMN.finditer(text, *rules[0])] if rules else []
    has_header = len(rules) != BELOW_AND_ABOVE
    for first, last in lines:
        if not _RULE.match(text, first, last):
            cuts = [min(first + column, last) for column in columns] + [last] if columns else _pipes(text, first, last)
            rows.append([_cell(text, a, b) for a, b in zip(cuts, cuts[1:], strict=False)][:MAX_COLUMNS])
        elif has_header and len(rows) == 1 and header is None:
            header = rows.pop()
    return rows[:MAX_ROWS], header


def _marked(text: str, block: DocumentedBlock) -> tuple[list[Row], Row | None]:
    """Return the rows and the header of a table whose cells begin with marks; ``None`` if it has no header."""
    pattern = _BULLETS if block.info == "list" else _MARKED[text[block.start]]
    first, last = text.find("\n", block.start, block.end) + 1, block.end
    if block.info == "cells":
        first, last = block.start + len("|==="), text.rfind(text[block.start], block.start, block.end)
    marks = list(pattern.finditer(text, first, last))
    ends = [*(mark.start() for mark in marks[1:]), last]
    cells = [(mark["row"], _stripped(text, mark.end(), end)) for mark, end in zip(marks, ends, strict=False)]
    if text[block.start] == "|":
        attributes = text[text.rfind("\n\n", 0, block.start) + 1 : block.start]
        ends_line = text.find("\n", marks[0].end(), last) if marks else last
        columns = _stated_columns(attributes) or sum(mark.start() < ends_line for mark in marks) or 1
        rows = [[cell for _, cell in cells[at : at + columns]] for at in range(0, len(cells), columns)]
        has_header = "header" in attributes or text[ends_line + 1 : last].lstrip(" \t").startswith("\n")
    else:
        rows = []
        for begins, cell in cells:
            rows += [[]] if begins is not None or not rows else []
            rows[-1] += [cell] if begins is None or block.info == "list" else []
        rows = [row for row in rows if row]
        has_header = text.startswith("¦!", marks[1].start()) if len(marks) > 1 else False
        has_header |= ":header-rows:" in text[block.start : marks[0].start() if marks else block.end]
    rows = [row[:MAX_COLUMNS] for row in rows[: MAX_ROWS + 1] if row]
    return (rows[1:], rows[0]) if has_header and rows else (rows[:MAX_ROWS], None)


def _stripped(text: str, start: int, end: int) -> Cell:
    said = text[start:end]
    start += len(said) - len(said.lstrip())
    return Cell(" ".join(said.split()), start, max(start, start + len(said.strip())))


def _stated_columns(attributes: str) -> int:
    """Return how many columns the attributes of an AsciiDoc table state; 0 if they do not state it."""
    stated = _COLS.search(attributes)
    return sum(int(one.partition("*")[0]) if "*" in one else 1 for one in _SPECS.findall(stated[1])) if stated else 0


def _pipes(text: str, first: int, last: int) -> list[int]:
    """Return the starts of the cells of a row. Pipes in code spans or after a backslash are text."""
    cuts = [match.start() for match in _PIPE.finditer(text, first, last) if match[0] == "|"]
    if not cuts or text[first : cuts[0]].strip():
        cuts.insert(0, first - 1)
    if text[cuts[-1] + 1 : last].strip():
        cuts.append(last)
    return cuts


def _cell(text: str, start: int, end: int) -> Cell:
    start += text[start : start + 1] == "|"
    return Cell(" ".join(text[start:end].replace("\\|", "|").split()), start, max(start, end))
