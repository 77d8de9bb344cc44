"""Order the fragments of a PDF page into rows: columns, and bands across them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from nornweave.read.pdf.glyphs import GlyphBlock, GlyphFragment, PdfPage, is_wide_gap

_TABLE_CELLS = 3
_COMPARED = 50  # fragments of a row that a further one may overlap; keeps rows of thousands of cells linear
_FIGURE = re.compile(r"[(+±−-]?\d(?:[\d.,]*\d)?[%*)]*$|[–—-]$")
_LONG = 0.2  # of the region's width: shorter lines (table cells, labels) say nothing about columns
_MIN_SIDE = 0.1  # of the long lines that must stand on either side of a gutter
_MAX_CROSSING = 0.65  # of the long lines that may cross a gutter (title, full-width abstract, tables)
_MIN_GUTTER = 6.0
_MIN_COLUMN_LINES = 3
_MAX_COLUMN_DEPTH = 4


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """Fragments on one baseline of one column, from left to right.

    ``region`` numbers the columns and bands of its page; a row is ``tabular`` with three cells or mostly figures.
    """

    fragments: tuple[GlyphFragment, ...]
    page: int
    region: int
    x0: float
    x1: float
    baseline: float
    size: float
    bold: bool
    mono: bool
    tabular: bool
    cells: int
    text: str

    @classmethod
    def of(cls, fragments: tuple[GlyphFragment, ...], page: int, region: int) -> LayoutRow:
        """Join fragments, at least one, from left to right."""
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
            size=longest.size,
            bold=all(f.bold for f in fragments),
            mono=all(f.mono for f in fragments),
            tabular=cells >= _TABLE_CELLS or _is_mostly_figures(text),
            cells=cells,
            text=text,
        )


def reading_order(page: PdfPage, page_blocks: Iterable[GlyphBlock]) -> list[LayoutRow]:
    """Order the text of a page: bands over the full width from the top, between them columns from the left.

    Text that is turned on the page comes last.
    """
    upright = [block for block in page_blocks if not block.fragments[0].turned]
    turned = [block for block in page_blocks if block.fragments[0].turned]
    regions = [region for blocks in (upright, turned) if blocks for region in _regions(blocks, 0)]
    return [row for number, region in enumerate(regions) for row in rows_of(region, page.number, number)]


def rows_of(fragments: Iterable[GlyphFragment], page: int, region: int) -> list[LayoutRow]:
    """Join fragments that stand on one baseline, from the top."""
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


def _is_mostly_figures(text: str) -> bool:
    words = text.split()
    figures = sum(bool(_FIGURE.match(word)) for word in words)
    return figures >= 3 and 2.5 * figures >= len(words)


def _regions(blocks: Sequence[GlyphBlock], depth: int) -> Iterator[list[GlyphFragment]]:
    gutter = _find_gutter([f for block in blocks for f in block.fragments]) if depth < _MAX_COLUMN_DEPTH else None
    if gutter is None:
        yield [f for block in blocks for f in block.fragments]
        return
    left, right, across = _sides(blocks, gutter)
    for band, bar in _bands(sorted([*left, *right], key=attrgetter("y0")), across):
        for side in ([b for b in band if b.x1 <= gutter + 1], [b for b in band if b.x1 > gutter + 1]):
            if side:
                yield from _regions(side, depth + 1)
        if bar:
            yield [f for block in bar for f in block.fragments]


def _bands(columns: list[GlyphBlock], across: list[GlyphBlock]) -> Iterator[tuple[list[GlyphBlock], list[GlyphBlock]]]:
    """Pair what stands above each full-width bar with that bar; bars without anything between them are one."""
    band: list[GlyphBlock] = []
    bar: list[GlyphBlock] = []
    rest = iter([*columns, None])
    following = next(rest)
    for block in sorted(across, key=attrgetter("middle")):
        fresh: list[GlyphBlock] = []
        while following is not None and following.middle < block.middle:
            fresh.append(following)
            following = next(rest)
        if fresh and bar:
            yield band, bar
            band, bar = [], []
        band += fresh
        bar.append(block)
    yield band, bar
    tail = [block for block in [following, *rest] if block is not None]
    if tail:
        yield tail, []


def _sides(blocks: Sequence[GlyphBlock], gutter: float) -> tuple[list[GlyphBlock], list[GlyphBlock], list[GlyphBlock]]:
    left: list[GlyphBlock] = []
    right: list[GlyphBlock] = []
    across: list[GlyphBlock] = []
    for block in blocks:
        if block.x1 <= gutter + 1:
            left.append(block)
        elif block.x0 >= gutter - 1:
            right.append(block)
        else:
            across.append(block)
    return left, right, across


def _find_gutter(fragments: Sequence[GlyphFragment]) -> float | None:
    """Find the x at which long lines end on the left and begin on the right, side by side; ``None`` in one column."""
    if not fragments:
        return None
    start, end = min(f.x0 for f in fragments), max(f.x1 for f in fragments)
    width = end - start
    long = [f for f in fragments if f.x1 - f.x0 >= _LONG * width]
    if len(long) < 2 * _MIN_COLUMN_LINES or width < 150 or width > 20_000:
        return None
    bins = int(width) + 2
    ends, starts = [0] * (bins + 1), [0] * (bins + 1)
    for f in long:
        ends[min(math.ceil(f.x1 - start), bins)] += 1
        starts[max(int(f.x0 - start), 0)] += 1
    gap = _widest_gap(ends, starts, len(long), bins)
    if gap is None:
        return None
    gutter = start + gap
    left = [f for f in long if f.x1 <= gutter]
    right = [f for f in long if f.x0 >= gutter]
    return gutter if _side_by_side(left, right) else None


def _widest_gap(ends: list[int], starts: list[int], total: int, bins: int) -> float | None:
    """Return the middle of the widest run of x that the fewest lines cross, with enough lines on either side."""
    least = max(_MIN_COLUMN_LINES, math.ceil(_MIN_SIDE * total))
    left, right = 0, total
    runs: list[tuple[int, int, int]] = []  # lines that cross, first x, last x
    for x in range(bins + 1):
        left += ends[x]
        if left >= least and right >= least:
            crossing = total - left - right
            if runs and runs[-1][0] == crossing and runs[-1][2] == x - 1:
                runs[-1] = (crossing, runs[-1][1], x)
            else:
                runs.append((crossing, x, x))
        right -= starts[x]
    runs = [run for run in runs if run[2] - run[1] >= _MIN_GUTTER and run[0] <= _MAX_CROSSING * total]
    if not runs:
        return None
    _, first, last = min(runs, key=lambda run: (run[0], run[1] - run[2]))
    return (first + last) / 2


def _side_by_side(left: Sequence[GlyphFragment], right: Sequence[GlyphFragment]) -> bool:
    """Tell whether most lines of the side with fewer stand at a height where the other side has lines too."""
    fewer, more = sorted((left, right), key=len)
    if len(fewer) < _MIN_COLUMN_LINES:
        return False
    top, bottom = min(f.y0 for f in more), max(f.y1 for f in more)
    return 2 * sum(top <= f.baseline <= bottom for f in fewer) >= len(fewer)
