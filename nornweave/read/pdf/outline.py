"""Find title, authors, abstract, headings and references among the paragraphs of a PDF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nornweave.core.types import SectionKind
from nornweave.read.pdf.layout import LayoutRow
from nornweave.read.pdf.paragraphs import Paragraph

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
_CAPTION = re.compile(r"(?:fig(?:ure|\.)?|table|listing|algorithm|example|scheme)\s*[\dA-Z]+(?:[-.]\d+)*\b", re.I)
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
    if letters < max(3, 0.4 * len(line)) or line[-1] in ".,;:?!•" or "@" in line or _CAPTION.match(line):
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
