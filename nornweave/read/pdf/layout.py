"""Order the fragments of a PDF page into rows, column by column."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from nornweave.read.pdf.glyphs import GlyphBlock, GlyphFragment, PdfPage, is_wide_gap

_TABLE_CELLS = 3
_COMPARED = 50  # fragments of a row that a further one may overlap; keeps rows of thousands of cells linear
_FIGURE = re.compile(r"[(+±−-]?\d(?:[\d.,]*\d)?[%*)]*$|[–—-]$")
_CELL = 25
"""Characters of a line that may be a table's cell."""


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
    """Order the text of a page as its file does, which is column by column; text that is turned comes last.

    A region ends where the file goes back up the page, or beside the last block to lines too long for cells.
    """
    regions: list[list[GlyphFragment]] = []
    turned: list[GlyphFragment] = []
    last: GlyphBlock | None = None
    for block in page_blocks:
        if block.fragments[0].turned:
            turned += block.fragments
            continue
        if last is None or block.y1 <= last.y0 + 1 or _is_column(last, block):
            regions.append([])
        regions[-1] += block.fragments
        last = block
    regions += [turned] if turned else []
    return [row for number, region in enumerate(regions) for row in rows_of(region, page.number, number)]


def _is_column(last: GlyphBlock, block: GlyphBlock) -> bool:
    beside = block.x0 >= last.x1 - 1 or block.x1 <= last.x0 + 1
    return beside and block.y0 < last.y1 - 1 and max(len(f.text) for f in block.fragments) > _CELL


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
