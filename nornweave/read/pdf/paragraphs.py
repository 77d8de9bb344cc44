"""Join rows into paragraphs by gaps, indents, styles and lists, and words that are split by line ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter

from nornweave.read.pdf.glyphs import GlyphBlock, GlyphFragment, PdfPage
from nornweave.read.pdf.layout import CELL, ITEM, LayoutRow, reading_order

_SENTENCE_END = re.compile(r"[.!?:;][\"')\]”’]*(?:\^\w+)?$")

# Careful: "Fig. 3" and "e.g. A" are within a sentence, and one that is not found stands with the next.
_SENTENCE_START = re.compile(r"(?:\w{4}|[\d)\]%])[.!?][\"')\]”’]*(?:\^\w+)?\s+(?=[^\W\d_a-z])")
_NOTE = re.compile(r"[(\[]?(?P<mark>\d{1,3}(?!\d)|[*∗†‡§¶]{1,3}|[a-z](?![a-z]))")
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|tab(?:le|\.)?|listing|algorithm|scheme|chart|abb(?:ildung|\.)|tabelle|figura|tabla|tableau)\s*"
    r"(?:\d+|[IVXL]+)(?:[.-]\d+)*[a-z]?(?:\s*[:.|–—]\s|\s+[A-Z]{3}|$)",
    re.IGNORECASE,
)
_FLOATED = 40  # paragraphs of figures and tables that stand together, at most
_ASIDES = 3  # footnotes without a mark, or boxes, that stand together, at most
_FULL = 0.85  # of the width of a column; a line of text that ends no paragraph is as long
_SMALLER = 0.9  # points that a footnote's letters are smaller than those of the text, at least

_LEADING = 1.35  # times the usual distance of rows, from which on there is a gap


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Rows of one style that belong together.

    ``gap`` means that more than a line of white space separates the paragraph from the text above it.
    """

    rows: tuple[LayoutRow, ...]
    gap: bool = True

    @property
    def page(self) -> int:
        """The page of the first row, from 1."""
        return self.rows[0].page

    @property
    def size(self) -> float:
        """The font size of the letters in most rows."""
        return self.rows[0].size

    @property
    def bold(self) -> bool:
        """Whether every row is bold."""
        return all(row.bold for row in self.rows)

    @property
    def keeps_lines(self) -> bool:
        """Whether the line breaks have a meaning, as in tables and listings."""
        return any(row.tabular for row in self.rows) or all(row.mono for row in self.rows)

    @property
    def line(self) -> str:
        """The text of the paragraph on one line. Hyphens are unchanged."""
        return " ".join(row.text for row in self.rows)


def body_size(pages: Iterable[PdfPage]) -> float:
    """Return the font size in which most of the text is set."""
    weights: Counter[float] = Counter()
    for page in pages:
        for block in page.blocks:
            for fragment in block.fragments:
                weights[fragment.size] += len(fragment.text)
    return max(weights, key=lambda size: (weights[size], size), default=0.0)


def paragraphs_of(page: PdfPage, blocks: Sequence[GlyphBlock]) -> list[Paragraph]:
    """Cut a page's rows into paragraphs, in reading order."""
    regions = groupby(reading_order(page, blocks), attrgetter("region"))
    return [paragraph for _, rows in regions for paragraph in _cut(list(rows))]


def _cut(rows: Sequence[LayoutRow]) -> Iterator[Paragraph]:
    """Cut one region into paragraphs: at gaps, changes of style, list items and indented lines."""
    usual = _usual_leading(rows)
    left, right = min(row.x0 for row in rows), max(row.x1 for row in rows)
    piece: list[LayoutRow] = []
    gap = True
    for row in rows:
        wide = bool(piece) and _is_gap(piece[-1], row, usual)
        if piece and (wide or _style(piece[-1]) != _style(row) or _begins(piece[-1], row, left, right)):
            yield Paragraph(tuple(piece), gap)
            piece, gap = [], wide
        piece.append(row)
    yield Paragraph(tuple(piece), gap)


def _usual_leading(rows: Sequence[LayoutRow]) -> float:
    distances = Counter(round((b.baseline - a.bottom) / a.size, 1) for a, b in pairwise(rows) if a.size == b.size)
    plausible = {distance: n for distance, n in distances.items() if 0.9 <= distance <= 2.5}
    return max(plausible, key=lambda distance: (plausible[distance], -distance), default=1.2)


def _is_gap(above: LayoutRow, row: LayoutRow, usual: float) -> bool:
    distance = row.baseline - above.bottom
    return distance > _LEADING * usual * max(row.size, above.size) or distance < 0


def _style(row: LayoutRow) -> tuple[float, bool, bool, bool]:
    """Return the style of a row. A paragraph ends where the style changes. The size is rounded to whole points."""
    return round(row.size), row.bold, row.mono, row.tabular


def _begins(above: LayoutRow, row: LayoutRow, left: float, right: float) -> bool:
    """Tell whether a new paragraph begins at a row: a list item or an indented line.

    The row above must end a sentence or be short.
    """
    if row.mono or row.tabular:
        return False
    is_last = bool(_SENTENCE_END.search(above.text)) or above.x1 < right - 0.1 * (right - left)
    is_indented = 0.4 * row.size < row.x0 - left < 6 * row.size and row.x0 > above.x0 + 0.4 * row.size
    return is_last and (is_indented or bool(ITEM.match(row.text)))


def continues(above: Paragraph, following: Paragraph) -> bool:
    """Tell whether a paragraph continues at the top of the next column or page."""
    last, first = above.rows[-1], following.rows[0]
    if (last.page, last.region) == (first.page, first.region) or last.size != first.size or last.bold or first.bold:
        return False
    if above.keeps_lines or following.keeps_lines or ITEM.match(first.text):
        return False
    return ends_broken(last.text) or (not _SENTENCE_END.search(last.text) and first.text[:1].islower())


def with_whole_rows(paragraphs: Iterable[Paragraph]) -> list[Paragraph]:
    """Join a table's row that is divided between two pages. The second page must repeat the header of the table."""
    ordered: list[Paragraph] = []
    lines: list[tuple[str, int]] = []  # of tables of the page before
    for _, on_page in groupby(paragraphs, attrgetter("page")):
        page = list(on_page)
        seen, lines = lines, [_place(line) for p in page for row in p.rows if row.cells > 1 for line in row.parted()]
        if ordered and ordered[-1].rows[-1].cells > 1:
            *above, split = ordered[-1].rows
            number, header, rest = _below_header(split, [row for p in page for row in p.rows], seen)
            if header and rest:
                columns = [fragment.x0 for fragment in header[0].fragments]
                ordered[-1] = replace(ordered[-1], rows=(*above, split.with_rest(rest, columns)))
                page = [Paragraph(tuple(header)), *_without_rows(page, number)]
        ordered += page
    return ordered


def _below_header(
    split: LayoutRow, rows: Sequence[LayoutRow], seen: Sequence[tuple[str, int]]
) -> tuple[int, list[LayoutRow], list[GlyphFragment]]:
    """Find the rows at the top of a page that repeat a known header or continue the row ``split``.

    Returns:
        The number of these rows, the rows of the header, and the fragments that continue ``split``.
    """
    header: list[LayoutRow] = []
    rest: list[GlyphFragment] = []
    first_cell, top = split.fragments[0].x1, _place(rows[0].parted()[0])
    at = seen.index(top) if top[1] <= first_cell and top in seen else len(seen)
    for number, row in enumerate(rows):
        lines, known = row.parted(), 0
        while not rest and known < len(lines) and seen[at : at + 1] == [_place(lines[known])]:
            at, known = at + 1, known + 1
        if any(line.x0 <= first_cell for line in lines[known:]):
            return number, header, rest
        header += lines[:known]
        left = {id(fragment) for line in lines[known:] for fragment in line.fragments}
        rest += (fragment for fragment in row.fragments if id(fragment) in left)
    return len(rows), header, rest


def _place(row: LayoutRow) -> tuple[str, int]:
    return row.text, int(row.x0)


def _without_rows(paragraphs: Iterable[Paragraph], number: int) -> Iterator[Paragraph]:
    for paragraph in paragraphs:
        if rows := paragraph.rows[number:]:
            yield replace(paragraph, rows=rows)
        number = max(0, number - len(paragraph.rows))


def interrupted(paragraphs: Sequence[Paragraph], headings: set[int]) -> dict[int, int]:
    """Find paragraphs whose last sentence is interrupted by footnotes, figures or tables.

    Footnotes end a column, and their letters are smaller than those of the text above them. The first footnote begins
    with a mark that is raised in the text of the column. It may also continue the last footnote of the previous column.
    A figure or a table has a caption.

    Returns:
        Index of an interrupted paragraph → index of the paragraph that continues it.
    """
    found: dict[int, int] = {}
    for at, paragraph in enumerate(paragraphs):
        rest = _behind_floats(paragraphs, at + 1, paragraph, headings)
        rest = _behind_asides(paragraphs, at + 1, paragraph, headings) if rest == at + 1 else rest
        if rest > at + 1 and _is_broken_off(paragraph, paragraphs[rest]):
            found[at] = rest
    noted: Paragraph | None = None
    for _, column in groupby(range(len(paragraphs)), lambda at: (paragraphs[at].page, paragraphs[at].rows[0].region)):
        places = list(column)
        last = paragraphs[places[-1]]
        above = next((at for at in reversed(places) if paragraphs[at].size >= last.size + _SMALLER), None)
        if above is None or above == places[-1] or not headings.isdisjoint(range(above + 1, places[-1] + 1)):
            continue
        text = " ".join(p.line for p in paragraphs[places[0] : above + 1])
        if _is_note(paragraphs[above + 1], text, noted):
            noted = last
            while above > places[0] and (paragraphs[above].keeps_lines or _CAPTION.match(paragraphs[above].line)):
                above -= 1
            rest = _behind_floats(paragraphs, places[-1] + 1, paragraphs[above], headings)
            if rest < len(paragraphs) and _goes_on(paragraphs[above], paragraphs[rest]):
                found[above] = rest
    return {above: rest for above, rest in found.items() if not {above, rest} & headings}


def _behind_floats(paragraphs: Sequence[Paragraph], at: int, like: Paragraph, headings: set[int]) -> int:
    """Return the index of the first paragraph of text after the figures and tables that begin at ``at``.

    Only figures and tables with captions count. If there are none, return ``at``. Paragraphs in a smaller font, with
    separate lines or with short lines belong to the figures and tables.
    """
    width = max(row.x1 for row in like.rows) - min(row.x0 for row in like.rows)
    captions = 0
    for place in range(at, min(at + _FLOATED, len(paragraphs))):
        paragraph = paragraphs[place]
        is_caption = _CAPTION.match(paragraph.line) is not None
        is_short = max(row.x1 - row.x0 for row in paragraph.rows) < _FULL * width
        is_apart = is_caption or paragraph.keeps_lines or like.size - paragraph.size >= _SMALLER
        if not is_apart and (place in headings or not is_short or (captions and paragraph.line[:1].islower())):
            return place if captions else at
        captions += is_caption
    return at


def _behind_asides(paragraphs: Sequence[Paragraph], at: int, like: Paragraph, headings: set[int]) -> int:
    """Return the index of the paragraph in the next column that continues the text before some asides.

    Asides are boxes, and footnotes without a mark. They are whole sentences, in smaller letters or alone in a region of
    the page. Return ``at``, where the asides begin, if there are none or if no such paragraph follows.
    """
    regions = Counter((p.page, p.rows[0].region) for p in paragraphs[at : at + _ASIDES + 2])
    for place in range(at, min(at + _ASIDES + 1, len(paragraphs))):
        paragraph = paragraphs[place]
        region = paragraph.page, paragraph.rows[0].region
        if paragraph.line[:1].islower():
            return place if region != (like.page, like.rows[0].region) else at
        is_apart = like.size - paragraph.size >= _SMALLER or (
            regions[region] == 1 and region != (like.page, like.rows[0].region)
        )
        if place in headings or not is_apart or not _SENTENCE_END.search(paragraph.rows[-1].text):
            return at
    return at


def _is_broken_off(above: Paragraph, rest: Paragraph) -> bool:
    """Tell whether a sentence of running text breaks off at the end of a full line and continues in ``rest``."""
    last = above.rows[-1]
    if above.keeps_lines or above.bold or _CAPTION.match(above.line) or len(last.text) <= CELL:
        return False
    widths = [row.x1 - row.x0 for row in (*above.rows, *rest.rows)]
    is_full = last.x1 - last.x0 >= _FULL * max(widths)
    is_told = ends_broken(last.text) or rest.line[:1].islower() or len(above.rows) > 1
    return is_full and is_told and not _SENTENCE_END.search(last.text) and _goes_on(above, rest)


def _is_note(paragraph: Paragraph, text: str, noted: Paragraph | None) -> bool:
    """Tell whether a paragraph below the text is a footnote, or continues the previous column's footnote ``noted``."""
    first = paragraph.rows[0].text
    mark = _NOTE.match(first)
    if mark and (re.search(rf"\^{mark['mark']}(?!\w)", text) if mark["mark"].isalnum() else mark["mark"] in text):
        return True
    return (
        noted is not None
        and noted.size == paragraph.size
        and paragraph.page - noted.page <= 1
        and not _SENTENCE_END.search(noted.rows[-1].text)
    )


def _goes_on(above: Paragraph, following: Paragraph) -> bool:
    """Tell whether the last sentence of a paragraph continues in the following paragraph, which has the same size."""
    if above.keeps_lines or following.keeps_lines or abs(above.size - following.size) >= _SMALLER:
        return False
    is_open = not _SENTENCE_END.search(above.rows[-1].text) and not ITEM.match(following.rows[0].text)
    return is_open or following.rows[0].text[:1].islower()


def last_sentence(text: str) -> int:
    """Return the start of the last sentence that can be recognised in a paragraph; 0 if it has only one sentence."""
    return max((match.end() for match in _SENTENCE_START.finditer(text)), default=0)


_BROKEN_WORD = re.compile(r"([^\W\d_][\w'’-]*)[-\u2010\u00ad]$")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SUSPENDED = frozenset({"and", "or", "to"})  # "short- and long-term"
_BROKEN_RANGE = re.compile(r"\d[-–]$")


def ends_broken(text: str) -> bool:
    """Tell whether a line ends in the middle of a word."""
    return bool(_BROKEN_WORD.search(text[-60:]))


class Hyphens:
    """Decides whether a hyphen at the end of a line belongs to the word. Other places in the document show this."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words: Counter[str] = Counter()
        broken = False
        for line in lines:
            words = _WORD.findall(line.casefold())
            cut = ends_broken(line)
            self._words.update(words[broken : len(words) - cut])
            broken = cut

    def joined(self, lines: Iterable[str]) -> str:
        """Join the lines of a paragraph."""
        parts: list[str] = []
        for line in lines:
            if parts:
                parts[-1], separator = self.seam(parts[-1], line)
                parts.append(separator)
            parts.append(line)
        return "".join(parts)

    def seam(self, line: str, following: str) -> tuple[str, str]:
        """Return ``line`` without a hyphen that only divides a word, and the separator to put before ``following``."""
        broken = _BROKEN_WORD.search(line[-60:])
        rest = _WORD.match(following)
        if not broken or not rest:
            return line, "" if _BROKEN_RANGE.search(line[-9:]) and following[:1].isdigit() else " "
        if rest[0].casefold() in _SUSPENDED:
            return line, " "
        return (line if self._is_compound(broken[1].casefold(), rest[0]) else line[:-1]), ""

    def _is_compound(self, first: str, second: str) -> bool:
        if second[0].isupper() or "-" in first:
            return True
        head = second.split("-")[0].casefold()
        joined, hyphenated = self._words[first + head], self._words[f"{first}-{head}"]
        # Both parts are words of the document: "user-provided"; "ing" and "tion" are none.
        return hyphenated > joined or (not joined and self._words[first] > 0 and self._words[head] > 0)
