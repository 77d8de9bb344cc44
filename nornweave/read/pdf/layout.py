"""Order the fragments of a PDF page into rows, column by column."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby, pairwise
from operator import attrgetter, itemgetter

from nornweave.read.pdf.glyphs import GlyphBlock, GlyphFragment, PdfPage, is_wide_gap
from nornweave.read.pdf.tables import CELL, TableRow, is_mostly_figures, tables_of

_TABLE_CELLS = 3
_COMPARED = 50  # fragments of a row that a further one may overlap; keeps rows of thousands of cells linear
_LINES = 5  # of a column, at least
_WITHIN_SENTENCES = 0.25  # of the lines of running text begin with a small letter
_BESIDE = 0.3  # of the lines of columns that the file goes through row by row are followed by one beside them
_SAME_SIZE, _SMALLER, _APART = 0.3, 0.95, 4.0  # points, of the body's size, points from its edge
_NEXT_LINE = 1.8  # em from one line of a note to the next
_MOST, _WIDE = 0.6, 0.8  # of the lines of a column are nearly as wide as it is


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """Fragments on one baseline of one column, from left to right.

    ``region`` is the number of the column or band on the page. A row is ``tabular`` if it has three cells or consists
    mostly of figures. If the cells of a table's row have several lines, the fragments are sorted by cell, and
    ``bottom`` is the baseline of the lowest line.
    """

    fragments: tuple[GlyphFragment, ...]
    page: int
    region: int
    x0: float
    x1: float
    baseline: float
    bottom: float
    size: float
    bold: bool
    mono: bool
    tabular: bool
    cells: int
    text: str

    @classmethod
    def of(cls, fragments: tuple[GlyphFragment, ...], page: int, region: int) -> LayoutRow:
        """Return a row with these fragments, which are sorted from left to right. There must be at least one."""
        longest = max(fragments, key=lambda f: len(f.text))
        cells = 1 + sum(is_wide_gap(a, b) for a, b in pairwise(fragments))
        text = " ".join(f.text for f in fragments)
        return cls(
            fragments,
            page,
            region,
            x0=fragments[0].x0,
            x1=max(f.x1 for f in fragments),
            baseline=longest.baseline,
            bottom=longest.baseline,
            size=longest.size,
            bold=all(f.bold for f in fragments),
            mono=all(f.mono for f in fragments),
            tabular=cells >= _TABLE_CELLS or is_mostly_figures(text),
            cells=cells,
            text=text,
        )

    @classmethod
    def of_cells(cls, cells: TableRow, page: int, region: int) -> LayoutRow:
        """Return a table's row with these cells. The lines of each cell stay together."""
        row = cls.of(tuple(f for cell in cells for f in cell), page, region)
        places = [f.baseline for f in row.fragments]
        return replace(row, baseline=min(places), bottom=max(places), tabular=True, cells=len(cells))

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts of the row's lines. In a table's row the lines of the first cell come first."""
        return (self.text,) if self.bottom == self.baseline else tuple(f.text for f in self.fragments)

    def parted(self) -> list[LayoutRow]:
        """Return a separate row for each line in the cells of a table's row, from the top."""
        return rows_of(self.fragments, self.page, self.region) if self.bottom != self.baseline else [self]

    def with_rest(self, rest: Iterable[GlyphFragment], columns: Sequence[float]) -> LayoutRow:
        """Return a table's row with the lines ``rest`` added to its cells.

        They are the rest of the row on the next page. ``columns`` are the left edges of the columns on the next page.
        """
        fragments = sorted((*self.fragments, *rest), key=lambda fragment: bisect_right(columns, fragment.x0 + 2))
        return replace(self, fragments=tuple(fragments), text=" ".join(f.text for f in fragments))


def reading_order(page: PdfPage, page_blocks: Iterable[GlyphBlock]) -> list[LayoutRow]:
    """Return the rows of a page in reading order, column by column. Margin notes come last, then turned text.

    Regions are read in the order of the file. A region ends where the file moves back up the page. It also ends where
    lines that are too long for cells stand beside the last block. A file may write several columns row by row. The
    columns are then found by the gaps between them.
    """
    blocks = list(page_blocks)
    turned = [f for block in blocks if block.fragments[0].turned for f in block.fragments]
    blocks = [block for block in blocks if not block.fragments[0].turned]
    notes = _margin_notes([f for block in blocks for f in block.fragments])
    if notes:
        kept = ([f for f in block.fragments if f not in notes] for block in blocks)
        blocks = [GlyphBlock.of(fragments) for fragments in kept if fragments]
    rows: list[LayoutRow] = []
    regions = count()
    for above, table in _around_tables(blocks):
        fragments = [f for block in above for f in block.fragments]
        gutters = _gutters(fragments)
        for column in _columns(fragments, gutters) if gutters else _as_written(above):
            rows += rows_of(column, page.number, next(regions))
        region = next(regions)
        rows += (LayoutRow.of_cells(cells, page.number, region) for cells in table)
    rows += rows_of(notes, page.number, next(regions))
    return rows + rows_of(turned, page.number, next(regions))


def _margin_notes(fragments: Sequence[GlyphFragment]) -> frozenset[GlyphFragment]:
    """Return the notes in the margin beside running text. Their letters are smaller than those of the text."""
    letters: Counter[float] = Counter()
    for f in fragments:
        letters[round(f.size, 1)] += len(f.text)
    size = letters.most_common(1)[0][0] if letters else 0.0
    body = [f for f in fragments if abs(f.size - size) < _SAME_SIZE and len(f.text) > CELL]
    if len(body) < _LINES or not runs_on(body):
        return frozenset()
    left, right = min(f.x0 for f in body), max(f.x1 for f in body)
    rows = rows_of((f for f in fragments if f.size < _SMALLER * size), 0, 0)  # a small table's cells are in one row
    notes: list[list[LayoutRow]] = []
    for row in rows:
        is_outside = row.x0 >= right + _APART or row.x1 <= left - _APART
        if not is_outside or not any(map(str.isalpha, row.text)):  # lines may be numbered
            continue
        if notes and row.baseline - notes[-1][-1].baseline < _NEXT_LINE * row.size:
            notes[-1].append(row)
        else:
            notes.append([row])
    # A word left of a paragraph is its label.
    kept = [note for note in notes if len(note) > 1 or len(note[0].text) > CELL or note[0].x0 > right]
    return frozenset(f for note in kept for row in note for f in row.fragments)


def _around_tables(blocks: Iterable[GlyphBlock]) -> Iterator[tuple[list[GlyphBlock], list[TableRow]]]:
    """Yield each table together with the text above it. The last item is the text below the last table."""
    placed = [(number, f) for number, block in enumerate(blocks) for f in block.fragments]
    at = 0
    for start, stop, table in (*tables_of([f for _, f in placed]), (len(placed), 0, [])):
        above = groupby(placed[at:start], itemgetter(0))
        yield [GlyphBlock.of([f for _, f in block]) for _, block in above], table
        at = stop


def _as_written(blocks: Iterable[GlyphBlock]) -> list[list[GlyphFragment]]:
    regions: list[list[GlyphFragment]] = []
    last: GlyphBlock | None = None
    for block in blocks:
        if last is None or block.y1 <= last.y0 + 1 or _is_column(last, block):
            regions.append([])
        regions[-1] += block.fragments
        last = block
    return regions


def _is_column(last: GlyphBlock, block: GlyphBlock) -> bool:
    beside = block.x0 >= last.x1 - 1 or block.x1 <= last.x0 + 1
    if not beside or block.y0 >= last.y1 - 1:
        return False
    is_long = max(len(f.text) for f in block.fragments) > CELL
    return is_long or all(len(each.fragments) >= _LINES and runs_on(each.fragments) for each in (last, block))


def runs_on(lines: Sequence[GlyphFragment]) -> bool:
    """Tell whether sentences continue from line to line, because many lines begin with a small letter.

    Cells and list items begin with a capital.
    """
    return sum(line.text[0].islower() for line in lines) >= _WITHIN_SENTENCES * len(lines)


def _gutters(fragments: Sequence[GlyphFragment]) -> list[float]:
    """Return the left edges of the columns of text, without the first column; empty if there is only one column.

    The result is also empty if the fragments beside each other are cells of a table. In cells, sentences do not
    continue from line to line, and lines are shorter than the column.
    """
    begins = Counter(
        int(after.x0)
        for before, after in pairwise(fragments)
        if abs(before.baseline - after.baseline) < 2 and is_wide_gap(before, after)
    )
    gutters: list[float] = []
    for x in sorted(x for x in begins if begins[x] + begins[x + 1] >= _LINES):
        column = [f for f in fragments if (not gutters or f.x0 >= gutters[-1]) and f.x1 <= x]
        beyond = sum(f.x0 >= x for f in fragments)
        times = begins[x] + begins[x + 1]
        if len(column) >= _LINES and times >= _BESIDE * max(len(column), beyond):
            gutters.append(x - 1.0)
    sides = ([f for f in fragments if _side(f, gutters) == side] for side in range(len(gutters) + 1))
    return gutters if gutters and all(map(_is_running_text, sides)) else []


def _is_running_text(lines: Sequence[GlyphFragment]) -> bool:
    """Tell whether lines are running text and not cells.

    Running text has longer lines than cells. In addition, either its sentences continue from line to line, or its lines
    are almost as wide as their column.
    """
    if len(lines) < _LINES:
        return False
    width = max(f.x1 for f in lines) - min(f.x0 for f in lines)
    is_long = sum(len(f.text) for f in lines) > CELL * len(lines)
    is_full = sum(f.x1 - f.x0 >= _WIDE * width for f in lines) >= _MOST * len(lines)
    return is_long and (is_full or runs_on(lines))


def _side(fragment: GlyphFragment, gutters: Sequence[float]) -> int | None:
    """Return the number of the column of a fragment, from the left; ``None`` if it crosses several columns."""
    side = bisect_right(gutters, fragment.x0)
    return side if bisect_right(gutters, fragment.x1 - 1) == side else None


def _columns(fragments: Sequence[GlyphFragment], gutters: Sequence[float]) -> Iterator[list[GlyphFragment]]:
    """Yield the columns of a page from the top. Lines that cross several columns are yielded in between."""
    columns: list[list[GlyphFragment]] = [[] for _ in range(len(gutters) + 1)]
    across: list[GlyphFragment] = []
    for fragment in sorted(fragments, key=attrgetter("baseline")):
        side = _side(fragment, gutters)
        if across and side is not None:
            yield across
            across = []
        elif side is None and any(columns):
            yield from filter(None, columns)
            columns = [[] for _ in columns]
        (across if side is None else columns[side]).append(fragment)
    yield from filter(None, (*columns, across))


def rows_of(fragments: Iterable[GlyphFragment], page: int, region: int) -> list[LayoutRow]:
    """Return the rows of some fragments, from the top. Fragments on one baseline are a row."""
    rows: list[list[GlyphFragment]] = []
    for fragment in sorted(fragments, key=lambda f: (f.baseline, f.x0)):
        if rows and _same_row(rows[-1], fragment):
            rows[-1].append(fragment)
        else:
            rows.append([fragment])
    return [LayoutRow.of(tuple(sorted(row, key=attrgetter("x0"))), page, region) for row in rows]


def _same_row(row: list[GlyphFragment], fragment: GlyphFragment) -> bool:
    first = row[0]
    if abs(fragment.baseline - first.baseline) > 0.35 * min(max(fragment.size, 5.0), first.size):
        return False
    return all(fragment.x0 >= other.x1 - 1 or fragment.x1 <= other.x0 + 1 for other in row[-_COMPARED:])
