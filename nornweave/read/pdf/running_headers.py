"""Remove running headers, footers and page numbers: text at the same place on many pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nornweave.read.pdf.glyphs import GlyphBlock, GlyphFragment, PdfPage
from nornweave.read.pdf.layout import LayoutRow, rows_of

_MARGIN = 0.2  # of the page's height at the top and at the bottom: where running lines are looked for
_HEADER_MARGIN = 0.15
_MAX_HEADER = 160  # characters
_NUMBER_MARGIN = 0.09  # a bare number further in than this may be anything
_SAME_PLACE = 4.0  # points
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"(?:page\s+)?[-–—]?\s*(?:\d{1,4}|[ivxlc]{1,7})\s*[-–—]?(?:\s*(?:of|/)\s*\d{1,4})?", re.IGNORECASE
)
_STAMP = re.compile(r"arXiv:\S+\s")  # up the left margin of the first page
_EDGE_NUMBER = re.compile(r"^(?:\d{1,4}|[ivxl]{1,6})\b|\b(?:\d{1,4}|[ivxl]{1,6})$")


def without_running_lines(pages: Sequence[PdfPage]) -> list[tuple[GlyphBlock, ...]]:
    """Take page numbers, arXiv's stamp, and what is repeated at the top and bottom of pages out of the blocks."""
    margins = [_margin_rows(page) for page in pages]
    repeated: Counter[tuple[str, int]] = Counter()
    places: Counter[int] = Counter()
    for rows in margins:
        repeated.update({(_without_numbers(row.text), place) for row in rows for place in _places(row)})
        places.update({place for row in rows if _EDGE_NUMBER.search(row.text) for place in _places(row)})
    often = max(2, min(3, len(pages) // 2))
    usual = {place for place, count in places.items() if len(pages) >= 4 and 2 * count >= len(pages)}
    headers = {line for line, count in repeated.items() if count >= often}
    cleaned = []
    for page, rows in zip(pages, margins, strict=True):
        edges = _edges(page)
        found = [row for row in rows if _is_number(row, page, edges) or _is_header(row, page, headers, usual)]
        running = {id(fragment) for row in found for fragment in row.fragments}
        running |= {id(f) for block in page.blocks for f in block.fragments if f.turned and _STAMP.match(f.text)}
        cleaned.append(tuple(_without(page.blocks, running)))
    return cleaned


def _margin_rows(page: PdfPage) -> list[LayoutRow]:
    low, high = _MARGIN * page.height, (1 - _MARGIN) * page.height
    fragments = [f for block in page.blocks for f in block.fragments if not f.turned]
    return rows_of([f for f in fragments if f.baseline < low or f.baseline > high], page.number, 0)


def _places(row: LayoutRow) -> tuple[int, int]:
    # Two overlapping grids, so that rows half a point apart never fall into different cells of both.
    return 2 * int(row.baseline / _SAME_PLACE), 2 * int(row.baseline / _SAME_PLACE + 0.5) + 1


def _without_numbers(text: str) -> str:
    return "#" if _PAGE_NUMBER.fullmatch(text) else _NUMBER.sub("#", text).casefold()


def _is_number(row: LayoutRow, page: PdfPage, edges: Sequence[float]) -> bool:
    return _without_numbers(row.text) == "#" and (_from_edge(row, page) < _NUMBER_MARGIN or _is_outermost(row, edges))


def _is_header(row: LayoutRow, page: PdfPage, headers: set[tuple[str, int]], usual: set[int]) -> bool:
    text = _without_numbers(row.text)
    if text == "#" or len(text) > _MAX_HEADER or _from_edge(row, page) > _HEADER_MARGIN:
        return False
    if any((text, place) in headers for place in _places(row)):
        return True
    # Headers that name the chapter differ from page to page, but stand at one place with the page's number.
    numbered = bool(_EDGE_NUMBER.search(row.text)) and _from_edge(row, page) < _NUMBER_MARGIN
    return numbered and not usual.isdisjoint(_places(row))


def _from_edge(row: LayoutRow, page: PdfPage) -> float:
    """Return the distance from the nearer of top and bottom as a part of the page's height."""
    return min(row.baseline, page.height - row.baseline) / max(page.height, 1.0)


def _is_outermost(row: LayoutRow, edges: Sequence[float]) -> bool:
    """Tell whether nothing stands beyond ``row`` or near it: on pages with wide margins the number is far inside."""
    if len(edges) < 2:
        return False
    place = round(row.baseline)
    last = place >= edges[-1] and edges[-1] - edges[-2] > 2 * row.size
    return last or (place <= edges[0] and edges[1] - edges[0] > 2 * row.size)


def _edges(page: PdfPage) -> list[float]:
    """Return the heights of a page's rows, from the top; what stands less than a point apart is one row."""
    return sorted({round(f.baseline) for block in page.blocks for f in block.fragments if not f.turned})


def _without(blocks: Iterable[GlyphBlock], running: set[int]) -> Iterator[GlyphBlock]:
    for block in blocks:
        kept: list[GlyphFragment] = [f for f in block.fragments if id(f) not in running]
        if len(kept) == len(block.fragments):
            yield block
        elif kept:
            yield GlyphBlock.of(kept)
