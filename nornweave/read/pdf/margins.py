"""Remove the text around a page: running headers and footers, page numbers, line numbers.

A running line is at most the second from the edge, apart from the text, and alike on nearly all pages; rows that follow
each other at the distance of the text are text, whatever they say.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter, itemgetter
from statistics import median

from nornweave.read.pdf.layout import CELL, GlyphBlock, GlyphFragment, LayoutRow, PdfPage, rows_of, runs_on

_AT_MOST = 2  # running lines at an edge
_APART, _APART_OF_SIZE = 1.2, 1.3  # times the usual distance of rows, and the font's size: more is apart
_FEW_ROWS = 6  # of a page, whose distances say little
_NEARLY_ALL = 0.6  # of the pages: chapters begin without a header
_MAX_LENGTH = 160  # characters of a running line
_SAME_PLACE = 3.0  # points
_BELOW_ROWS = 2  # sizes of letters: "continued on the next page" stands where the last row of a table leaves it
_HEADING = 0.8  # points that a heading is larger than the text
_EDGE, _LATEX_EDGE = 0.09, 0.16  # of the page's height: class article sets the number of a page at .149
_NAMED = 20

_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?:page)?[-–—\[(]*#[-–—\])]*(?:(?:of|/)#)?|(?:[a-z]|#)-#")
_ROMAN = re.compile(r"(l?x{0,3}|x[lc])(ix|iv|v?i{0,3})")
_TENS, _ONES = (
    ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx", "xc"),
    ("", *["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"]),
)
_STAMP = re.compile(r"arXiv:\S+\s")  # up the left margin of the first page
_NOT_SAID = re.compile(r"[\W_]+")

_LINE_NUMBERS = 5  # of a page, at least
_DIGITS = 5
_REVIEW_COPY = 0.5  # of the pages have line numbers
_SAME_STEP = 0.9  # of the line numbers grow by the same
_SMALL = 1.25  # times the size of line numbers is the text's, where they are small


@dataclass(frozen=True, slots=True)
class _EdgeLine:
    """A row at the top or bottom of a page.

    Attributes:
        page: the number of the page, from 0.
        edge: ``top`` or ``bottom``. ``place`` is the distance from this edge.
        text: the text without blanks, with ``#`` in place of each number.
        is_apart: whether white space or font size separates the row from the text.
    """

    page: int
    row: LayoutRow
    edge: str
    place: float
    text: str
    numbers: tuple[int, ...]
    is_apart: bool

    @classmethod
    def of(cls, page: PdfPage, row: LayoutRow, edge: str, *, is_apart: bool) -> _EdgeLine:
        text = row.text.casefold()
        roman = _roman(text.strip("-–— "))
        numbers = (roman,) if roman else tuple(int(number[-9:]) for number in _NUMBER.findall(text))
        place = row.baseline if edge == "top" else page.height - row.baseline
        # Without blanks: PDFium sets them between the letters of some fonts, on some pages.
        said = "#" if roman else "".join(_NUMBER.sub("#", text).split())
        return cls(page.number - 1, row, edge, place, said, numbers, is_apart)

    @property
    def is_page_number(self) -> bool:
        """Whether the line may consist only of a page number."""
        return bool(_PAGE_NUMBER.fullmatch(self.text))

    def is_alike(self, other: _EdgeLine) -> bool:
        """Tell whether a line of another page has the same text, apart from numbers that grow with the page."""
        pages = other.page - self.page
        is_below_rows = self.is_apart and other.is_apart and not self.numbers and self.row.text.count(" ") > 1
        far = _BELOW_ROWS * self.row.size if is_below_rows else _SAME_PLACE
        return abs(self.place - other.place) <= far and all(
            after - before in (0, pages) for before, after in zip(self.numbers, other.numbers, strict=True)
        )


def _roman(text: str) -> int:
    """Return the value of a Roman number below 100; 0 if the text is not such a number."""
    match = _ROMAN.fullmatch(text)
    return _TENS.index(match[1]) * 10 + _ONES.index(match[2]) if match else 0


def without_margins(pages: Sequence[PdfPage], body: float) -> tuple[list[tuple[GlyphBlock, ...]], tuple[str, ...]]:
    """Remove running headers and footers, page numbers, line numbers and the stamp of arXiv.

    Args:
        body: the font size of most of the text.

    Returns:
        The remaining blocks of each page, and a description of what was removed.
    """
    dropped = _line_numbers(pages)
    counted = sum(map(bool, dropped))
    running = _running(list(_edge_lines(pages, dropped)), pages, set().union(*dropped), body)
    if sum(len(line.row.fragments) for line in running) == sum(len(b.fragments) for page in pages for b in page.blocks):
        running = [line for line in running if line.is_page_number]  # there is nothing that others run around
    for line in running:
        dropped[line.page].update(map(id, line.row.fragments))
    stamps = [
        {id(f) for block in page.blocks for f in block.fragments if f.turned and _STAMP.match(f.text)} for page in pages
    ]
    blocks = [
        tuple(_without(page.blocks, gone | stamp)) for page, gone, stamp in zip(pages, dropped, stamps, strict=True)
    ]
    return blocks, tuple(_said(running, counted, sum(map(len, stamps))))


def _said(running: Iterable[_EdgeLine], counted: int, stamps: int) -> Iterator[str]:
    """Yield a description of each kind of removed line. Similar lines are described once."""
    numbers: set[int] = set()
    heads: dict[tuple[str, str], list[_EdgeLine]] = defaultdict(list)
    for line in running:
        if line.is_page_number:
            numbers.add(line.page)
        else:
            heads[line.edge, line.text].append(line)
    if numbers:
        yield f"page numbers ({_pages(len(numbers))})"
    for same in list(heads.values())[:_NAMED]:
        yield f"running line at the {same[0].edge} ({_pages(len(same))}): {same[0].row.text}"
    if len(heads) > _NAMED:
        yield f"{len(heads) - _NAMED:,} more running lines"
    if counted:
        yield f"line numbers in the margin ({_pages(counted)})"
    if stamps:
        yield "the stamp of arXiv"


def _pages(count: int) -> str:
    return f"{count:,} page{'s' * (count != 1)}"


def _edge_lines(pages: Sequence[PdfPage], dropped: Sequence[set[int]]) -> Iterator[_EdgeLine]:
    """Yield the rows at the top and bottom edges of pages."""
    ordered = [
        sorted(
            (f for block in page.blocks for f in block.fragments if not f.turned and id(f) not in gone),
            key=attrgetter("baseline"),
        )
        for page, gone in zip(pages, dropped, strict=True)
    ]
    distances = [
        Counter(step for a, b in pairwise(each) if (step := round(b.baseline - a.baseline)) > 1) for each in ordered
    ]
    of_all = _most_common(sum(distances, Counter[int]()))
    for page, each, among in zip(pages, ordered, distances, strict=True):
        usual = _most_common(among) if among.total() > _FEW_ROWS else of_all
        for edge, inner in (("top", each), ("bottom", each[::-1])):
            rows = rows_of(_first(inner), page.number, 0)
            inwards = rows if edge == "top" else rows[::-1]
            apart = 0 if len(inwards) > _AT_MOST else len(inwards)
            for count, (row, following) in enumerate(pairwise(inwards[: _AT_MOST + 1]), 1):
                if _is_apart(row, following, usual):
                    apart = max(apart, count)
            for place, row in enumerate(inwards[:_AT_MOST]):
                if len(row.text) <= _MAX_LENGTH and (row.baseline < page.height / 2) == (edge == "top"):
                    yield _EdgeLine.of(page, row, edge, is_apart=place < apart)


def _first(fragments: Sequence[GlyphFragment]) -> Sequence[GlyphFragment]:
    """Return the fragments of the first rows: of those that may be edge lines, and of one more row."""
    rows = 0
    for place, (before, after) in enumerate(pairwise(fragments), 1):
        rows += abs(after.baseline - before.baseline) > 1
        if rows > _AT_MOST + 1:
            return fragments[:place]
    return fragments


def _is_apart(row: LayoutRow, inner: LayoutRow, usual: int) -> bool:
    """Tell whether white space or font size separates a row from the next row towards the page's middle, ``inner``.

    The header of a table does not count as separated, because tables repeat it on each page. It has cells directly
    above the cells of ``inner``.
    """
    gap = abs(inner.baseline - row.baseline)
    is_far = gap > max(_APART * usual, _APART_OF_SIZE * min(row.size, inner.size))
    above = sum(any(abs(f.x0 - cell.x0) < 1 for cell in inner.fragments) for f in row.fragments)
    return (is_far or abs(row.size - inner.size) >= 1) and above < 2


def _most_common(distances: Counter[int]) -> int:
    return max(distances, key=lambda distance: (distances[distance], -distance), default=0)


def _running(lines: Sequence[_EdgeLine], pages: Sequence[PdfPage], dropped: set[int], body: float) -> list[_EdgeLine]:
    """Return page numbers and running lines. A running line is alike on nearly all pages, or on most even or odd ones.

    A header with the name of the chapter changes. It is a running line if nearly all pages have a line at the same
    height with the same style, and its text also occurs elsewhere. A line directly above a table is not separated from
    the text. It is a running line if it is alike with a separated running line.
    """
    close = [line for line in lines if not line.is_apart]
    lines = [line for line in lines if line.is_apart]
    written = [page.number - 1 for page in pages if page.blocks]
    alike = _alike_with_neighbours(lines)
    same: dict[tuple[str, str], set[int]] = defaultdict(set)
    places: dict[tuple[str, int], set[int]] = defaultdict(set)
    for line in lines:
        for step in (-1, 0, 1):
            places[line.edge, round(line.place / _SAME_PLACE) + step].add(line.page)
        if id(line) in alike:
            same[line.edge, line.text].add(line.page)
    chosen, changing = [], []
    for line in lines:
        there = places[line.edge, round(line.place / _SAME_PLACE)]
        is_alike, is_styled = id(line) in alike, line.row.size >= body + _HEADING
        if line.is_page_number:
            if is_alike or _is_at_number_place(line, pages[line.page]):
                chosen.append(line)
        elif is_alike and _are_nearly_all(same[line.edge, line.text], written):
            chosen.append(line)
        elif not is_styled and (is_alike or not line.row.bold) and len(there) > 2 and _are_nearly_all(there, written):
            changing.append(line)
    if changing:
        gone = {id(f) for line in (*chosen, *changing) for f in line.row.fragments} | dropped
        chosen += _said_elsewhere(
            changing, (f for page in pages for b in page.blocks for f in b.fragments if id(f) not in gone)
        )
    counted = {(line.page, number) for line in chosen for number in {*line.numbers[:1], *line.numbers[-1:]}}
    known_ids = set(map(id, chosen))
    chosen += (
        line
        for line in lines
        if line.is_page_number
        and id(line) not in known_ids
        and line.row.size < body + _HEADING
        and _goes_on_counting(line, counted)
    )
    known = {(line.edge, line.text): line for line in chosen}
    return chosen + [line for line in close if (one := known.get((line.edge, line.text))) and one.is_alike(line)]


def _said_elsewhere(lines: Sequence[_EdgeLine], fragments: Iterable[GlyphFragment]) -> Iterator[_EdgeLine]:
    """Yield the lines whose text also occurs in an earlier line or in the text of a page.

    Page numbers are ignored, and so is the fixed part of a header, which nearly all lines begin or end with.
    """
    said = _NOT_SAID.sub("", "".join(f.text for f in fragments).casefold())
    offsets = Counter(number - line.page for line in lines for number in {*line.numbers[:1], *line.numbers[-1:]})
    [(offset, times)] = offsets.most_common(1) or [(0, 0)]
    repeated: dict[str, bool] = {}
    pages = {line.page for line in lines}
    seen = Counter(word for line in lines for word in set(line.row.text.split()))
    fixed = {word for word, count in seen.items() if count > max(_AT_MOST, _NEARLY_ALL * len(pages))}
    for line in lines:
        number = str(line.page + offset) if 2 * times >= len(lines) else ""
        changing = _between({*fixed, number}, line.row.text.split())
        words = _NOT_SAID.sub("", changing.casefold()).removeprefix(number).removesuffix(number)
        is_mark = changing != " ".join(line.row.text.split())
        if repeated.setdefault(words, words in said if is_mark else len(words) > 1 and words in said):
            yield line
        repeated[words] = len(words) > 1


def _between(fixed: Collection[str], words: Sequence[str]) -> str:
    """Return the words of a line without the fixed words at its beginning and its end; empty if all are fixed."""
    kept = [place for place, word in enumerate(words) if word not in fixed]
    return " ".join(words[kept[0] : kept[-1] + 1]) if kept else ""


def _alike_with_neighbours(lines: Iterable[_EdgeLine]) -> set[int]:
    """Return the ``id()`` of each line that is alike with a line one or two pages before or after it."""
    groups: dict[tuple[str, str], list[_EdgeLine]] = defaultdict(list)
    alike: set[int] = set()
    for line in lines:
        group = groups[line.edge, line.text]
        for before in group[-2 * _AT_MOST :]:
            if 0 < line.page - before.page <= 2 and before.is_alike(line):
                alike |= {id(before), id(line)}
        group.append(line)
    return alike


def _are_nearly_all(some: set[int], pages: Sequence[int]) -> bool:
    """Tell whether the pages ``some`` are nearly all ``pages``, and at least two.

    It is also enough if they are nearly all even pages or nearly all odd pages, and at least three.
    """
    if len(some) >= max(2, _NEARLY_ALL * len(pages)):
        return True
    sides = {page % 2 for page in some}
    return len(sides) == 1 and len(some) >= max(3, _NEARLY_ALL * sum(page % 2 in sides for page in pages))


def _is_at_number_place(line: _EdgeLine, page: PdfPage) -> bool:
    """Tell whether a line with a number stands at a usual place of page numbers."""
    margin = min(line.row.baseline, page.height - line.row.baseline) / page.height
    return margin < _EDGE or (margin < _LATEX_EDGE and line.numbers[-1] == page.number)


def _goes_on_counting(line: _EdgeLine, counted: Collection[tuple[int, int]]) -> bool:
    """Tell whether two of the four pages around a line continue its number: page 7 has 9, and page 8 has 10.

    ``counted`` has pairs of a page and a number on it.
    """
    return sum((line.page + step, line.numbers[-1] + step) in counted for step in (-2, -1, 1, 2)) > 1


def _line_numbers(pages: Sequence[PdfPage]) -> list[set[int]]:
    """Return for each page the ``id()`` of the fragments that number the lines of running text.

    Line numbers form a column without other text, and the column is at the same place on all even or odd pages. The
    numbers of a program listing are not included, because they are only on few pages.
    """
    upright = [[f for block in page.blocks for f in block.fragments if not f.turned] for page in pages]
    numbers = [[f for f in each if f.text.isdecimal() and len(f.text) <= _DIGITS] for each in upright]
    found: list[set[int]] = [set() for _ in pages]
    for side in (attrgetter("x1"), attrgetter("x0")):
        places: set[int] = set()
        for is_known in (False, True):  # pages with few lines follow those with many
            for own, each, ids in zip(numbers, upright, found, strict=True):
                for column in _columns(own, side):
                    at = round(side(column[0]))
                    is_like_others = not places.isdisjoint((at - 1, at, at + 1))
                    is_long = is_like_others if is_known else len(column) >= _LINE_NUMBERS
                    if is_long and _counts(column) and _stands_beside_prose(column, each, is_known=is_known):
                        ids.update(map(id, column))
                        places.add(at)
    is_usual = sum(map(bool, found)) >= _REVIEW_COPY * sum(map(bool, upright))
    return found if is_usual else [set() for _ in pages]


def _columns(numbers: Iterable[GlyphFragment], side: Callable[[GlyphFragment], float]) -> Iterator[list[GlyphFragment]]:
    """Yield each column of numbers that have nearly the same ``side``, such as the left edge, from the top."""
    column: list[GlyphFragment] = []
    for number in sorted(numbers, key=side):
        if column and side(number) - side(column[-1]) >= 1:
            yield sorted(column, key=attrgetter("baseline"))
            column = []
        column.append(number)
    if column:
        yield sorted(column, key=attrgetter("baseline"))


def _counts(column: Sequence[GlyphFragment]) -> bool:
    """Tell whether the numbers of a column grow, most of them by the same step."""
    steps = Counter(int(below.text) - int(above.text) for above, below in pairwise(column))
    return not steps or (min(steps) > 0 and max(steps.values()) >= _SAME_STEP * (len(column) - 1))


def _stands_beside_prose(
    column: Sequence[GlyphFragment], fragments: Iterable[GlyphFragment], *, is_known: bool
) -> bool:
    """Tell whether a column has only numbers, and the sentences in the lines beside it continue from line to line.

    Other columns of numbers differ: the first column of a table stands beside short cells, and the numbers of a list
    stand beside the beginnings of its items.

    Args:
        is_known: whether other pages have line numbers at this place. The sentences then need not continue.
    """
    left, right = min(f.x0 for f in column), max(f.x1 for f in column)
    baselines = [f.baseline for f in column]
    own = set(map(id, column))
    beside: dict[bool, dict[int, tuple[float, GlyphFragment]]] = {False: {}, True: {}}
    for f in fragments:
        if id(f) in own:
            continue
        is_over = f.x0 < right - 1 and f.x1 > left + 1 and baselines[0] - f.size < f.baseline < baselines[-1] + f.size
        if is_over and f.size < _SMALL * column[0].size:  # small numbers reach into the lines of the column before
            return False
        at = bisect_left(baselines, f.baseline - _SAME_PLACE)
        if at < len(column) and baselines[at] <= f.baseline + _SAME_PLACE and not f.text.isdecimal():
            is_right = f.x0 >= left
            found = (f.x0 - right if is_right else left - f.x1, f)
            beside[is_right][at] = min(found, beside[is_right].get(at, found), key=itemgetter(0))
    nearest = min((lines for lines in beside.values() if lines), key=_distance, default={})
    lines = [f for _, f in nearest.values()]
    return bool(lines) and (is_known or (runs_on(lines) and sum(len(f.text) for f in lines) > CELL * len(lines)))


def _distance(lines: Mapping[int, tuple[float, GlyphFragment]]) -> float:
    return median(distance for distance, _ in lines.values())


def _without(blocks: Iterable[GlyphBlock], gone: set[int]) -> Iterator[GlyphBlock]:
    for block in blocks:
        kept = [f for f in block.fragments if id(f) not in gone]
        if len(kept) == len(block.fragments):
            yield block
        elif kept:
            yield GlyphBlock.of(kept)
