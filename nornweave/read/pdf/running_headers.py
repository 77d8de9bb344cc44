"""Remove running headers, footers and page numbers: text at the same place on many pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nornweave.read.pdf.glyphs import GlyphBlock, PdfPage
from nornweave.read.pdf.layout import LayoutRow, rows_of

_MARGIN = 0.15  # of the page's height at the top and at the bottom: where running lines are looked for
_NUMBER_MARGIN = 0.09  # a bare number further in than this may be anything
_MAX_HEADER = 160  # characters
_SAME_PLACE = 8.0  # points
_NUMBER = re.compile(r"\d+|\b[ivxl]{1,6}\b")
_PAGE_NUMBER = re.compile(r"(?:page )?[-–— ]*#[-–— ]*(?:(?:of|/) *#)?")
_STAMP = re.compile(r"arXiv:\S+\s")  # up the left margin of the first page


def without_running_lines(pages: Sequence[PdfPage]) -> list[tuple[GlyphBlock, ...]]:
    """Take page numbers, arXiv's stamp, and what is repeated at the top and bottom of pages out of the blocks."""
    margins = [_margin_rows(page) for page in pages]
    repeated = Counter(mark for rows in margins for mark in {_mark(row) for row in rows})
    often = max(2, min(3, len(pages) // 2))
    cleaned = []
    for page, rows in zip(pages, margins, strict=True):
        running = {id(f) for row in rows if _is_running(row, page, repeated, often) for f in row.fragments}
        running |= {id(f) for block in page.blocks for f in block.fragments if f.turned and _STAMP.match(f.text)}
        cleaned.append(tuple(_without(page.blocks, running)))
    return cleaned


def _margin_rows(page: PdfPage) -> list[LayoutRow]:
    fragments = [f for block in page.blocks for f in block.fragments if not f.turned]
    low, high = _MARGIN * page.height, (1 - _MARGIN) * page.height
    return rows_of([f for f in fragments if f.baseline < low or f.baseline > high], page.number, 0)


def _mark(row: LayoutRow) -> tuple[str, int]:
    """Return what is the same on every page that repeats a row: its text without numbers, and its height."""
    return _NUMBER.sub("#", row.text.casefold()), int(row.baseline / _SAME_PLACE)


def _is_running(row: LayoutRow, page: PdfPage, repeated: Counter[tuple[str, int]], often: int) -> bool:
    text, place = _mark(row)
    if _PAGE_NUMBER.fullmatch(text):
        return min(row.baseline, page.height - row.baseline) < _NUMBER_MARGIN * page.height
    # What stands half a point lower on some pages may be in the next cell.
    return len(text) <= _MAX_HEADER and max(repeated[text, place + step] for step in (-1, 0, 1)) >= often


def _without(blocks: Iterable[GlyphBlock], running: set[int]) -> Iterator[GlyphBlock]:
    for block in blocks:
        kept = [f for f in block.fragments if id(f) not in running]
        if len(kept) == len(block.fragments):
            yield block
        elif kept:
            yield GlyphBlock.of(kept)
