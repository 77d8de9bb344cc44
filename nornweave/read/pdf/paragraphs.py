"""Join rows into paragraphs by gaps, indents and styles; find title, authors, abstract and headings among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter

from nornweave.core.types import SectionKind
from nornweave.read.pdf.layout import CELL, ITEM, GlyphBlock, GlyphFragment, LayoutRow, PdfPage, reading_order

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
        if ordered and ordered[-1].rows[-1].cells > 1:
            *above, split = ordered[-1].rows
            number, header, rest = _below_header(split, [row for p in page for row in p.rows], lines)
            if header and rest:
                columns = [fragment.x0 for fragment in header[0].fragments]
                ordered[-1] = replace(ordered[-1], rows=(*above, split.with_rest(rest, columns)))
                page = [Paragraph(tuple(header)), *_without_rows(page, number)]
        lines = [_place(line) for p in page for row in p.rows if row.cells > 1 for line in row.parted()]
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
        is_apart |= all(row.cells > 1 for row in paragraph.rows)
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


_KNOWN = re.compile(
    r"introduction|background|motivation|related works?|preliminaries|problem (?:statement|definition)"
    r"|(?:materials and )?methods?|methodology|(?:our )?approach|experiments?|experimental (?:setup|results)"
    r"|results(?: and (?:discussion|analysis))?|(?:general )?discussion|evaluation|analysis|limitations"
    r"|ethics statement|conclusions?(?: and (?:future work|outlook))?|future work|summary|acknowledge?ments?|funding"
    r"|references(?: cited)?|bibliography|literature cited|works cited|appendi(?:x|ces)|supplementary materials?"
    r"|(?:table of )?contents|preface|foreword|glossary|index",
    re.IGNORECASE,
)
_REFERENCES = re.compile(r"references(?: cited)?|bibliography|literature cited|works cited", re.IGNORECASE)
_ABSTRACT = re.compile(r"a\s?b\s?s\s?t\s?r\s?a\s?c\s?t[.:]?", re.IGNORECASE)
_ABSTRACT_RUN_IN = re.compile(r"abstract\s*(?:[—–:.]|-\s)\s*\S", re.IGNORECASE)
_NUMBERED = re.compile(
    r"(?:(?P<depth>(?:\d{1,2}|[A-Z](?=\.\d))(?:\.\d{1,3}){0,4})\.?|(?:[IVX]{1,6}|[A-Z])\."
    r"|(?i:chapter|part|appendix|annex)\s+(?:\d{1,3}|[A-Z]|[IVXL]{1,6})\b[.:]?)\s+(?P<name>[^\W\d_].*)"
)
_CAPTION_LINE = re.compile(r"(?:fig(?:ure|\.)?|table|listing|algorithm|example|scheme)\s*[\dA-Z]+(?:[-.]\d+)*\b", re.I)
_KEYWORDS = re.compile(r"(?:key\s?words(?: and phrases)?|index terms)\s*[—–:.-]+\s*(?P<words>\S.{,600})$", re.I)
_LEADER = " ... "

_MAX_HEADING = 130  # characters
_MAX_HEADING_WORDS = 18
_BODY_LETTERS = 120  # a paragraph of the body's size with as many characters ends the front matter
_TITLE_ZONE = 0.6  # of the first page

_NOT_A_NAME = re.compile(
    r"universi|institut|department|dept|laborator|\blabs?\b|research|school|college|cent(?:er|re)\b|facult|academy"
    r"|corporation|company|\binc\b|\bltd\b|gmbh|google|microsoft|facebook|science|engineering|technolog|computer"
    r"|comput|abstract|keywords|conference|journal|proceedings|volume|copyright|street|avenue|hospital|group|team",
    re.IGNORECASE,
)
_NAME_PART = r"(?:[^\W\d_a-z][\w'’.-]*|d[aeiu]|de|der|den|van|von|la|le|bin|al|el|y)"
_NAME = re.compile(rf"{_NAME_PART}(?:\s+{_NAME_PART}){{1,4}}")
_BETWEEN_NAMES = re.compile(r"\s*(?:,|;|·|•|&|\band\b)\s*")
_MARKS = re.compile(r"\^\w+|[\d*∗†‡§¶⋆♠♣♦♥✉(){}\[\]]+|\b(?:Dr|Prof|Jr|Ph\.?D)\.?(?=\s|$)")
_MAX_AUTHORS = 100


@dataclass(frozen=True, slots=True)
class Heading:
    """The beginning of a section: the index of its first paragraph, and its title."""

    paragraph: int
    text: str
    level: int
    kind: SectionKind = "section"


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of a paper as its layout shows them.

    ``front`` is the number of paragraphs with the title and authors.
    """

    front: int
    title: str | None
    authors: tuple[str, ...]
    keywords: tuple[str, ...]
    headings: tuple[Heading, ...]


def outline_of(
    paragraphs: Sequence[Paragraph],
    body: float,
    height: float,
    bookmarks: Mapping[str, int],
    declared_title: str | None,
) -> Outline:
    """Find the title, the authors and the sections of a paper.

    Args:
        paragraphs: all paragraphs of the document, in reading order.
        body: the font size of most of the text, in points.
        height: the height of the first page, in points.
        bookmarks: title of a bookmark, as ``letters_of`` returns it → its level in the file's own table of contents.
        declared_title: the title in the file's metadata; ``None`` if there is no usable title. It is preferred if the
            first page shows it too.
    """
    front = _front_end(paragraphs, body)
    title = _title_rows(paragraphs[:front], body, _TITLE_ZONE * height)
    shown = " ".join(row.text for row in title) or None
    lead = letters_of(" ".join(p.line for p in paragraphs[:front]))
    if declared_title and (shown is None or letters_of(declared_title) in lead):
        shown = declared_title
    inside = {id(row) for row in title}
    after = (row for p in paragraphs[:front] if inside.isdisjoint(map(id, p.rows)) for row in p.rows)
    return Outline(
        front=front if title else 0,
        title=shown,
        authors=tuple(_authors_in(after))[:_MAX_AUTHORS] if title else (),
        keywords=tuple(_keywords_in(paragraphs)),
        headings=tuple(_headings(paragraphs, body, front, bookmarks)),
    )


def letters_of(text: str) -> str:
    """Return the letters and digits of a heading in lower case. All spellings of a heading give the same result."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _front_end(paragraphs: Sequence[Paragraph], body: float) -> int:
    """Return the index of the first paragraph after the title and the authors."""
    for index, paragraph in enumerate(paragraphs):
        line = paragraph.line
        is_text = len(line) >= _BODY_LETTERS and len(paragraph.rows) > 1 and abs(paragraph.size - body) <= 1.6
        if (
            paragraph.page > paragraphs[0].page
            or _is_abstract(line)
            or (is_text and not paragraph.bold and not paragraph.keeps_lines)
            or (index and _is_known(paragraph, body))
        ):
            return index
    return len(paragraphs)


def _is_abstract(line: str) -> bool:
    return bool(_ABSTRACT.fullmatch(line) or _ABSTRACT_RUN_IN.match(line))


def _is_styled(paragraph: Paragraph, body: float) -> bool:
    """Tell whether a paragraph has the style of a heading, because it is larger than the body text or bold."""
    return paragraph.size >= body + 0.8 or (paragraph.bold and paragraph.size >= body - 0.6)


def _title_rows(front: Sequence[Paragraph], body: float, zone: float) -> list[LayoutRow]:
    """Return the rows with the largest letters near the top of the first page."""
    rows = [row for p in front if _is_styled(p, body) for row in p.rows]
    rows = [row for row in rows if row.baseline < zone and sum(map(str.isalpha, row.text)) > 3 and row.cells == 1]
    largest = max((row.size for row in rows), default=0.0)
    title: list[LayoutRow] = []
    for row in rows:
        if row.size == largest and (not title or row.baseline - title[-1].baseline <= 2.5 * row.size):
            title.append(row)
        elif title:
            break
    return title[:5]


def _authors_in(rows: Iterable[LayoutRow]) -> Iterator[str]:
    """Yield the names in those rows that have the style of the first name."""
    style = None
    for row in rows:
        for fragment in row.fragments:
            names = [name for part in _BETWEEN_NAMES.split(fragment.text) if (name := _name(part))]
            if names and style in (None, (fragment.size, fragment.bold)):
                style = (fragment.size, fragment.bold)
                yield from names


def _name(text: str) -> str | None:
    text = " ".join(_MARKS.sub(" ", text).split()).strip(" ,.;")
    if not 4 <= len(text) <= 50 or "@" in text or _NOT_A_NAME.search(text) or not _NAME.fullmatch(text):
        return None
    return text


def _keywords_in(paragraphs: Sequence[Paragraph]) -> Iterator[str]:
    """Yield the keywords after "Keywords:" near the beginning of the paper."""
    for paragraph in paragraphs[:40]:
        if match := _KEYWORDS.match(paragraph.line):
            words = re.split(r"\s*[,;·•|]\s*", match["words"])
            yield from (word.rstrip(" .") for word in words if 1 < len(word) < 60)
            return


def _headings(
    paragraphs: Sequence[Paragraph], body: float, front: int, bookmarks: Mapping[str, int]
) -> Iterator[Heading]:
    found = [index for index in range(front, len(paragraphs)) if _is_heading(paragraphs[index], body, bookmarks)]
    sizes = sorted({round(paragraphs[index].size) for index in found}, reverse=True)
    beginning = range(front, min(front + 10, len(paragraphs)))
    abstract = next((index for index in beginning if _is_abstract(paragraphs[index].line)), None)
    for index in sorted({*found, *([] if abstract is None else [abstract])}):
        if index == abstract:
            yield Heading(index, "Abstract", 1, "abstract")
            continue
        line = paragraphs[index].line.strip(" :")
        number = _NUMBERED.match(line)
        if _REFERENCES.fullmatch(number["name"] if number else line):
            yield Heading(index, line, 1, "references")
        elif number:
            yield Heading(index, line, min(5, 1 + (number["depth"] or "").count(".")))
        else:
            by_size = min(4, 1 + sizes.index(round(paragraphs[index].size)))
            yield Heading(index, line, min(5, bookmarks.get(letters_of(line), by_size)))


def _is_heading(paragraph: Paragraph, body: float, bookmarks: Mapping[str, int]) -> bool:
    line = paragraph.line
    if len(line) > _MAX_HEADING or len(line.split()) > _MAX_HEADING_WORDS or _LEADER in line:
        return False
    if _is_known(paragraph, body) or letters_of(line) in bookmarks:
        return True
    letters = sum(map(str.isalpha, line))
    if letters < max(3, 0.4 * len(line)) or line[-1] in ".,;:?!•" or "@" in line or _CAPTION_LINE.match(line):
        return False
    is_begun = (line[0].isupper() or line[0].isdigit()) and paragraph.rows[0].cells == 1
    return _is_styled(paragraph, body) and not paragraph.keeps_lines and (is_begun or bool(_NUMBERED.match(line)))


def _is_known(paragraph: Paragraph, body: float) -> bool:
    """Tell whether a paragraph is a usual heading of papers that stands alone on a line."""
    line = paragraph.line
    number = _NUMBERED.match(line)
    name = number["name"] if number else line
    if len(paragraph.rows) > 1 or not (_KNOWN.fullmatch(name) or _ABSTRACT.fullmatch(line)):
        return False
    return _is_styled(paragraph, body) or (paragraph.gap and name[:1].isupper())
