"""Take tables apart into their rows, cells and header."""

from __future__ import annotations

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
_PIPE = lazy_pattern(r"(`{1,2})(?!`)[^`\n]{1,200}\1(?!`)|(?<!\\)\|")


def read_table(text: str, block: DocumentedBlock) -> tuple[list[Row], Row | None]:
    """Return the rows of a table block and its header; the header is ``None`` if the text has none."""
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
