"""Find the tables of a PDF page whose cells have several lines.

A file writes such a table cell by cell, and goes back to the left below a row. Columns of text have no such rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from nornweave.read.pdf.glyphs import GlyphFragment, is_wide_gap

Cell: TypeAlias = list[GlyphFragment]
TableRow: TypeAlias = list[Cell]

CELL = 25
"""Characters of a line that may be a table's cell."""
ITEM = re.compile(r"[•◦▪‣∙●○■]\s*\S|(?:[·–—*]\s+|\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)]\s+|\[\w{1,12}\]\s+)\S")
"""Begins an item of a list."""
_FIGURE = re.compile(r"[(+±−-]?\d(?:[\d.,]*\d)?[%*)]*$|[–—-]$")

_ROWS = 3  # of a table, at least, unless all of its cells stand below each other and some in each row are wrapped
_COLUMN = 5  # lines of a column of text, at least
_TALL = 12  # times the size of letters that a cell may begin above the ones before it
_WRAPPED = 0.25  # of its rows have a cell of several lines
_LINE, _LEADING, _ROW_GAP = 0.5, 2.1, 4.0  # times the size of letters: less is one line, more is another cell or table
_SAME = 2.0  # points between baselines of one line, or edges of a cell, at most
_LOOKED_BACK = 3  # rows, for cells that are empty
_COMPARED = 50  # lines of a cell, or cells of a row; keeps thousands of them linear


def tables_of(fragments: Sequence[GlyphFragment]) -> Iterator[tuple[int, int, list[TableRow]]]:
    """Yield each table: the index of its first fragment, the index after its last fragment, and its rows."""
    table: list[TableRow] = []
    start = at = 0
    for row in (*_rows(fragments), []):
        is_row = len(row) > 1 and not all(map(_is_column, row))
        if table and not (is_row and _goes_on(table, row)):
            if _is_table(table):
                yield start, at, table
            table = []
        if is_row:
            start = start if table else at
            table.append(row)
        at += sum(map(len, row))


def _rows(fragments: Sequence[GlyphFragment]) -> list[TableRow]:
    """Return the rows that the fragments form. Each fragment is put into the last cell, a new cell or a new row."""
    rows: list[TableRow] = []
    for f in fragments:
        if not rows:
            rows.append([[f]])
            continue
        row, cell = rows[-1], rows[-1][-1]
        left = max(line.x1 for line in row[-2][-_COMPARED:]) if len(row) > 1 else None
        if _is_in_cell(cell, f, left):
            cell.append(f)
            continue
        top = _first_beside(rows, f)
        if top is None or f.x0 < max(line.x1 for line in cell[top:]) - 1:
            rows.append([[f]])
        elif top:
            rows[-1:] = [[*row[:-1], cell[:top]], [cell[top:], [f]]]
        else:
            row.append([f])
    return rows


def _first_beside(rows: Sequence[TableRow], f: GlyphFragment) -> int | None:
    """Return the index of the first line in the last cell that stands beside a fragment.

    The lines of the cell before this index are text above the table. The result is ``None`` if the fragment does not
    belong to the last row.
    """
    row, cell = rows[-1], rows[-1][-1]
    if any(abs(other[0].baseline - f.baseline) < _SAME for other in row[:_COMPARED]):
        return 0
    if len(row) > _COMPARED:
        return None
    above = _bottom(rows[-2]) if len(rows) > 1 else -math.inf
    highest = max(above if above < _top(row) else -math.inf, _top(row) - _TALL * f.size)
    if not highest < f.baseline < _bottom(row) + _SAME:
        return None
    beside = (place for place, line in enumerate(cell) if line.baseline > f.baseline - _SAME)
    return next(beside, 0) if len(row) == 1 else 0


def _is_in_cell(cell: Cell, f: GlyphFragment, left: float | None) -> bool:
    """Tell whether a fragment continues a cell.

    ``left`` is the right edge of the cell to the left of this cell; ``None`` for the first cell of a row.
    """
    last = cell[-1]
    lines = cell[-_COMPARED:]
    begins, ends = min(line.x0 for line in lines), max(line.x1 for line in lines)
    down = (f.baseline - last.baseline) / max(f.size, last.size)
    if abs(down) < _LINE:  # words of justified lines may stand far apart
        return f.x0 >= last.x1 - 1 and (not is_wide_gap(last, f) or (left is not None and f.x1 <= ends + 1))
    is_centred = abs(f.x0 + f.x1 - last.x0 - last.x1) < 2 * _SAME
    is_aligned = begins - _SAME < f.x0 < ends or is_centred or abs(f.x1 - last.x1) < _SAME
    return 0 < down < _LEADING and is_aligned and begins < f.x1 and (left is None or f.x0 >= left - 1)


def _is_column(cell: Cell) -> bool:
    """Tell whether a cell has longer lines than a table's cells have. A row of only such cells is columns of text."""
    return len(cell) >= _COLUMN and sum(len(f.text) for f in cell) > CELL * len(cell)


def _goes_on(table: Sequence[TableRow], row: TableRow) -> bool:
    """Tell whether a row continues the table directly above it. Two of its cells must be below cells of one row."""
    gap = _top(row) - _bottom(table[-1])
    return 0 < gap < _ROW_GAP * row[0][0].size and any(
        sum(any(_overlap(cell, above) for above in before[:_COMPARED]) for cell in row[:_COMPARED]) > 1
        for before in table[-_LOOKED_BACK:]
    )


def _overlap(cell: Cell, above: Cell) -> bool:
    return min(f.x0 for f in cell) < max(f.x1 for f in above) and max(f.x1 for f in cell) > min(f.x0 for f in above)


def _is_table(rows: Sequence[TableRow]) -> bool:
    """Tell whether rows are a table and not columns of text or a list.

    In a table, enough rows have cells of several lines beside each other.
    """
    wrapped = sum(_bottom(row) - _top(row) > _LINE * row[0][0].size for row in rows)
    is_list = all(len(row) == 2 and ITEM.match(f"{row[0][0].text} x") for row in rows)
    named = sum(any(map(_is_of_figures, row)) for row in rows)  # names beside rows of another table
    is_short = len(rows) == _ROWS - 1 == wrapped and len(rows[0]) == len(rows[1])
    is_short = is_short and all(abs(above[0].x0 - cell[0].x0) < _SAME for above, cell in zip(*rows, strict=True))
    return (len(rows) >= _ROWS or is_short) and wrapped >= max(_WRAPPED * len(rows), 2 * named) and not is_list


def _top(row: TableRow) -> float:
    return min(f.baseline for cell in row for f in cell)


def _bottom(row: TableRow) -> float:
    return max(f.baseline for cell in row for f in cell)


def _is_of_figures(cell: Cell) -> bool:
    return _bottom([cell]) - _top([cell]) > cell[0].size and is_mostly_figures(" ".join(f.text for f in cell))


def is_mostly_figures(text: str) -> bool:
    """Tell whether a line has at least three numbers, and few other words."""
    words = text.split()
    figures = sum(bool(_FIGURE.match(word)) for word in words)
    return figures >= 3 and 2.5 * figures >= len(words)
