"""Join rows into paragraphs by gaps, indents, lists, tables and listings, and words that a line end parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter

from nornweave.read.pdf.glyphs import GlyphBlock, PdfPage
from nornweave.read.pdf.layout import LayoutRow, reading_order

_SYMBOL = re.compile(r"[•◦▪‣∙●○■]\s*\S")
_BULLET = re.compile(r"(?:[•◦▪‣·∙●○■–—*]\s+|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)]\s+)\S")
_REFERENCE = re.compile(r"\[\w{1,12}\]\s+\S|\d{1,3}\.\s+[A-Z]")
_ITALIC_HEADING = re.compile(r"(?:[A-Z]\.|\d{1,2}(?:\.\d{1,2})+\.?|\d{1,2}\))\s+[A-Z]")
_NOTE = re.compile(r"(?:\d{1,2}(?![\d.,)\]])|[∗*†‡§¶])\s*\S")
_SENTENCE_END = re.compile(r"[.!?:;][\"')\]”’]*(?:\^\w+)?$")

_LEADING = 1.35  # times the usual distance of rows, from which on there is a gap


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Rows that belong together. All of them share one style when ``is_styled`` (bold, or larger than the body).

    ``gap`` says that white space of more than a line separates it from what stands above.
    """

    rows: tuple[LayoutRow, ...]
    gap: bool = True

    @property
    def page(self) -> int:
        """Page of its first row, from 1."""
        return self.rows[0].page

    @property
    def size(self) -> float:
        """Font size of most rows' letters."""
        return self.rows[0].size

    @property
    def bold(self) -> bool:
        """Whether every row is bold."""
        return all(row.bold for row in self.rows)

    @property
    def is_table(self) -> bool:
        """Whether a row has several cells or consists of figures."""
        return any(row.tabular for row in self.rows)

    @property
    def keeps_lines(self) -> bool:
        """Whether its line breaks mean something (tables, listings)."""
        return self.is_table or all(row.mono for row in self.rows)

    @property
    def line(self) -> str:
        """Its text on one line, hyphens as they stand."""
        return " ".join(row.text for row in self.rows)


def body_size(pages: Iterable[PdfPage]) -> float:
    """Return the font size in which most of the text is set."""
    weights: Counter[float] = Counter()
    for page in pages:
        for block in page.blocks:
            for fragment in block.fragments:
                weights[fragment.size] += len(fragment.text)
    return max(weights, key=lambda size: (weights[size], size), default=0.0)


def paragraphs_of(page: PdfPage, blocks: Sequence[GlyphBlock], body: float) -> list[Paragraph]:
    """Cut a page's rows into paragraphs, in reading order; footnotes move from the columns to the page's end."""
    found: list[Paragraph] = []
    notes: list[Paragraph] = []
    regions = [list(rows) for _, rows in groupby(reading_order(page, blocks), attrgetter("region"))]
    for rows in regions:
        paragraphs = list(_cut(rows, body))
        kept = len(paragraphs)
        while kept > 1 and _is_note(paragraphs[kept - 1], page, body):
            kept -= 1
        if rows is not regions[-1]:
            notes += paragraphs[kept:]
            paragraphs = paragraphs[:kept]
        found += paragraphs
    return found + notes


def _is_note(paragraph: Paragraph, page: PdfPage, body: float) -> bool:
    small = paragraph.size <= body - 1 and not paragraph.is_table
    return small and paragraph.rows[0].baseline > 0.6 * page.height and bool(_NOTE.match(paragraph.line))


def _cut(rows: list[LayoutRow], body: float) -> Iterator[Paragraph]:
    """Cut one region at gaps, changes of style, list items; then each piece at its indents."""
    usual = _usual_leading(rows)
    piece: list[LayoutRow] = []
    gap = True
    for row in rows:
        wide = bool(piece) and _is_gap(piece[-1], row, usual)
        if piece and (wide or _changes(piece[-1], row, body)):
            yield from _cut_at_indents(piece, gap)
            piece, gap = [], wide
        piece.append(row)
    if piece:
        yield from _cut_at_indents(piece, gap)


def _usual_leading(rows: Sequence[LayoutRow]) -> float:
    distances = Counter(round((b.baseline - a.baseline) / a.size, 1) for a, b in pairwise(rows) if a.size == b.size)
    plausible = {distance: n for distance, n in distances.items() if 0.9 <= distance <= 2.5}
    return max(plausible, key=lambda distance: (plausible[distance], -distance), default=1.2)


def _is_gap(above: LayoutRow, row: LayoutRow, usual: float) -> bool:
    distance = row.baseline - above.baseline
    return distance > _LEADING * usual * max(row.size, above.size) or distance < 0


def _changes(above: LayoutRow, row: LayoutRow, body: float) -> bool:
    if above.mono != row.mono or above.tabular != row.tabular:
        return True
    if _is_italic_heading(row) or (_is_italic_heading(above) and not row.italic):
        return True
    return _style(above, body) != _style(row, body)


def _is_italic_heading(row: LayoutRow) -> bool:
    """IEEE sets "A. Data" and "1) Cleaning:" in italics of the body's size."""
    return row.italic and row.cells <= 2 and bool(_ITALIC_HEADING.match(row.text))


def _style(row: LayoutRow, body: float) -> tuple[float, bool]:
    """Tell styles apart that make a paragraph of their own: size, and bold rows as a whole."""
    return (row.size if abs(row.size - body) > 0.6 else body, row.bold)


def _cut_at_indents(rows: list[LayoutRow], gap: bool) -> Iterator[Paragraph]:
    left = min(row.x0 for row in rows)
    right = max(row.x1 for row in rows)
    indented = [0.4 * row.size < row.x0 - left < 6 * row.size for row in rows]
    hanging = len(rows) > 1 and not indented[0] and 2.5 * sum(indented) > len(rows)
    piece: list[LayoutRow] = []
    keeps_lines = rows[0].mono or rows[0].tabular
    for row, shifted in zip(rows, indented, strict=True):
        listed = (
            bool(piece) and _BULLET.match(row.text) and abs(row.x0 - piece[0].x0) < 1 and _BULLET.match(piece[0].text)
        )
        if piece and not keeps_lines and (listed or _starts_paragraph(piece[-1], row, shifted != hanging, left, right)):
            yield Paragraph(tuple(piece), gap)
            piece, gap = [], False
        piece.append(row)
    yield Paragraph(tuple(piece), gap)


def _starts_paragraph(above: LayoutRow, row: LayoutRow, moved: bool, left: float, right: float) -> bool:
    if _SYMBOL.match(row.text):
        return True
    if _BULLET.match(row.text) or _REFERENCE.match(row.text):
        return bool(_SENTENCE_END.search(above.text)) or above.x1 < right - 0.1 * (right - left)
    ended = bool(_SENTENCE_END.search(above.text))
    if row.begins_bold and ended and not above.bold:  # "Scale: Our dataset is …"
        return True
    if moved and (ended or above.x1 < right - row.size):
        return True
    return ended and above.x1 < right - 0.25 * (right - left) and row.text[:1].isupper()


def is_run_in(above: Paragraph, following: Paragraph) -> bool:
    """Tell whether a bold line goes on in the middle of a word or sentence: a paragraph's start, no heading."""
    if not above.bold or following.bold or following.gap or above.size != following.size:
        return False
    return bool(ends_broken(above.rows[-1].text)) or following.rows[0].text[:1].islower()


def continues(above: Paragraph, following: Paragraph) -> bool:
    """Tell whether a paragraph goes on, at the top of the next column or page or after a bold beginning."""
    last, first = above.rows[-1], following.rows[0]
    if above.keeps_lines or following.keeps_lines:
        return False
    if (last.page, last.region) == (first.page, first.region):
        return is_run_in(above, following)
    if last.size != first.size or last.bold or first.bold or _BULLET.match(first.text) or len(last.text) < 20:
        return False
    if ends_broken(last.text):
        return True
    return not _SENTENCE_END.search(last.text) and first.text[:1].islower()


def lines_of(paragraph: Paragraph) -> list[str]:
    """Return a table's or listing's lines, listings with their indentation."""
    if paragraph.is_table:
        return [row.text for row in paragraph.rows]
    left = min(row.x0 for row in paragraph.rows)
    widths = [(row.x1 - row.x0) / len(row.text) for row in paragraph.rows if len(row.text) > 3]
    letter = min(widths, default=0.6 * paragraph.size) or 1.0
    return [" " * min(round((row.x0 - left) / letter), 40) + row.text for row in paragraph.rows]


_BROKEN_WORD = re.compile(r"([^\W\d_][\w'’-]*)[-\u2010\u00ad]$")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_PREFIXES = "all cross end ex half high long low non quasi real self short state well"
_ENDINGS = "aware based driven free level like oriented scale sized specific term wise"
_KEPT_PREFIXES, _SECOND_PARTS = frozenset(_PREFIXES.split()), frozenset(_ENDINGS.split())
_BROKEN_RANGE = re.compile(r"\d[-–]$")
_SUSPENDED = frozenset({"and", "or", "to", "und", "oder"})  # "short- and long-term"


def ends_broken(text: str) -> bool:
    """Tell whether a line ends inside a word."""
    return bool(_BROKEN_WORD.search(text[-60:]))


class Hyphens:
    """Decides whether a hyphen at the end of a line belongs to the word, by how the document writes it elsewhere."""

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
        """Return ``line`` without its hyphen where that has to go, and what stands between it and ``following``."""
        broken = _BROKEN_WORD.search(line[-60:])
        rest = _WORD.match(following)
        if not broken or not rest:
            return line, "" if _BROKEN_RANGE.search(line[-9:]) and following[:1].isdigit() else " "
        if line.endswith("\u00ad"):
            return line[:-1], ""
        first, second = broken.group(1), rest.group()
        if second.casefold() in _SUSPENDED and not self._words[f"{first}-{second}".casefold()]:
            return line, " "
        return (line if self._is_compound(first, second) else line[:-1]), ""

    def _is_compound(self, first: str, second: str) -> bool:
        if second[0].isupper() or "-" in first or first.casefold() == second.casefold():
            return True
        head = second.split("-")[0].casefold()
        joined = self._words[f"{first}{head}".casefold()]
        hyphenated = self._words[f"{first}-{second}".casefold()] + self._words[f"{first}-{head}".casefold()]
        if joined != hyphenated:
            return hyphenated > joined
        known = self._words[first.casefold()] > 0 and len(first) > 2
        return first.casefold() in _KEPT_PREFIXES or (known and self._is_second_part(head))

    def _is_second_part(self, word: str) -> bool:
        """Tell whether a compound like "user-provided" may end so; "ing" and "tion" are no words of their own."""
        return word in _SECOND_PARTS or (len(word) > 4 and word.endswith(("ed", "ing")) and self._words[word] > 0)
