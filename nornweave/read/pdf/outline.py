"""Find title, authors, abstract, headings and references among the paragraphs of a PDF."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nornweave.core.types import SectionKind
from nornweave.read.pdf.front import authors_in, is_styled, keywords_in, title_rows
from nornweave.read.pdf.paragraphs import Paragraph, is_run_in

_KNOWN = re.compile(
    r"(?:abstract|introduction|background|motivation|related works?|preliminaries|problem (?:statement|definition)"
    r"|(?:materials and )?methods?|methodology|(?:our )?approach|experiments?|experimental (?:setup|results)"
    r"|results(?: and (?:discussion|analysis))?|(?:general )?discussion|evaluation|analysis|limitations"
    r"|ethics statement|ethical considerations|broader impacts?|conclusions?(?: and (?:future work|outlook))?"
    r"|future work"
    r"|summary|acknowledge?ments?|funding|data availability|author contributions|conflicts? of interest"
    r"|references(?: cited)?|bibliography|literature cited|works cited|appendi(?:x|ces)|supplementary materials?"
    r"|(?:table of )?contents|preface|foreword|glossary|index)",
    re.IGNORECASE,
)
_REFERENCES = re.compile(r"references(?: cited)?|bibliography|literature cited|works cited", re.IGNORECASE)
_ABSTRACT = re.compile(r"a\s?b\s?s\s?t\s?r\s?a\s?c\s?t[.:]?", re.IGNORECASE)
_ABSTRACT_RUN_IN = re.compile(r"abstract\s*(?:[—–:.]|-\s)\s*\S", re.IGNORECASE)
_NUMBERED = re.compile(
    r"(?:(?P<arabic>\d{1,2}(?:\.\d{1,3}){0,4})\.?|(?P<roman>[IVX]{1,6})\.|(?P<appendix>[A-Z](?:\.\d{1,2}){1,3})\.?"
    r"|(?P<letter>[A-Z])\.?|(?P<chapter>chapter|part|appendix|annex)\s+(?:\d{1,3}|[A-Z]|[IVXL]{1,6})\b[.:]?)"
    r"\s+(?P<name>[^\W\d_].*)",
    re.IGNORECASE,
)
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|table|listing|algorithm|example|scheme)\s*[\dA-Z]+(?:[-.]\d+)*\b", re.IGNORECASE
)
_LEADER = " ... "

_MAX_HEADING = 130  # characters
_MAX_HEADING_WORDS = 18
_BODY_LETTERS = 120  # a paragraph of the body's size with as many characters ends the front matter
_TITLE_ZONE = 0.6  # of the first page


@dataclass(frozen=True, slots=True)
class Heading:
    """Where a section starts: the index of its first paragraph, and what it is called."""

    paragraph: int
    text: str
    level: int
    kind: SectionKind = "section"


@dataclass(frozen=True, slots=True)
class Outline:
    """What the layout says about a paper's parts; ``front`` counts the paragraphs of title and authors."""

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
    """Find title, authors and sections.

    Args:
        paragraphs: of the whole document, in reading order.
        body: font size of the body, points.
        height: of the first page, points.
        bookmarks: level per title (as ``letters_of`` gives it) of the document's own table of contents.
        declared_title: the title in the document's metadata, if it looks like one; wins where the page shows it too.
    """
    front = _front_end(paragraphs, body)
    title = title_rows(paragraphs[:front], body, _TITLE_ZONE * height)
    shown = " ".join(row.text for row in title) or None
    lead = letters_of(" ".join(p.line for p in paragraphs[:front]))
    if declared_title and (shown is None or letters_of(declared_title) in lead):
        shown = declared_title
    inside = {id(row) for row in title}
    after = [p for p in paragraphs[:front] if not any(id(row) in inside for row in p.rows)]
    return Outline(
        front=front if title else 0,
        title=shown,
        authors=tuple(authors_in(row for p in after for row in p.rows)) if title else (),
        keywords=tuple(keywords_in(paragraphs)),
        headings=tuple(_headings(paragraphs, body, front, bookmarks)),
    )


def letters_of(text: str) -> str:
    """Return what two spellings of one heading share: letters and digits, without case."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _is_body(paragraph: Paragraph, body: float) -> bool:
    long = sum(len(row.text) for row in paragraph.rows) >= _BODY_LETTERS and len(paragraph.rows) > 1
    return long and not paragraph.bold and abs(paragraph.size - body) <= 1.6 and not paragraph.is_table


def _front_end(paragraphs: Sequence[Paragraph], body: float) -> int:
    """Return the index of the first paragraph after title and authors."""
    for index, paragraph in enumerate(paragraphs):
        line = paragraph.line
        if paragraph.page > paragraphs[0].page or _ABSTRACT.fullmatch(line) or _ABSTRACT_RUN_IN.match(line):
            return index
        if index and _is_known(paragraph, body):
            return index
        if _is_body(paragraph, body):
            return index - (index > 1 and _is_chapter(paragraphs[index - 1], body))
    return len(paragraphs)


def _is_chapter(paragraph: Paragraph, body: float) -> bool:
    if _numbered(paragraph.line) and is_styled(paragraph, body):
        return True
    return paragraph.size >= body + 0.8 and len(paragraph.line) < _MAX_HEADING and not list(authors_in(paragraph.rows))


def _headings(
    paragraphs: Sequence[Paragraph], body: float, front: int, bookmarks: Mapping[str, int]
) -> Iterator[Heading]:
    found = [index for index in range(front, len(paragraphs)) if _is_heading(paragraphs, index, body, bookmarks)]
    levels = _Levels([paragraphs[index] for index in found], bookmarks)
    run_in = _run_in_abstract(paragraphs, front, found)
    for index in sorted({*found, *run_in}):
        paragraph = paragraphs[index]
        if index in run_in:
            yield Heading(index, "Abstract", 1, "abstract")
        else:
            text = _heading_text(paragraph)
            kind = _kind(text)
            yield Heading(index, text, 1 if kind != "section" else levels.of(paragraph), kind)


def _run_in_abstract(paragraphs: Sequence[Paragraph], front: int, found: Sequence[int]) -> set[int]:
    if any(_ABSTRACT.fullmatch(paragraphs[index].line) for index in found):
        return set()
    indexes = range(front, min(front + 10, len(paragraphs)))
    return set([index for index in indexes if _ABSTRACT_RUN_IN.match(paragraphs[index].line)][:1])


def _is_heading(paragraphs: Sequence[Paragraph], index: int, body: float, bookmarks: Mapping[str, int]) -> bool:
    paragraph = paragraphs[index]
    line = paragraph.line
    if len(line) > _MAX_HEADING or len(line.split()) > _MAX_HEADING_WORDS or _LEADER in line:
        return False
    if _is_known(paragraph, body) or letters_of(line) in bookmarks:
        return True
    if paragraph.keeps_lines or _CAPTION.match(line) or line[-1] in ".,;:?!•" or not _is_wordy(line):
        return False
    number = _numbered(line)
    if number is None and (paragraph.rows[0].cells > 1 or not (line[0].isupper() or line[0].isdigit())):
        return False
    if is_styled(paragraph, body):
        return index + 1 == len(paragraphs) or not is_run_in(paragraph, paragraphs[index + 1])
    if number is None:
        return False
    if line.isupper():  # "4 CARD32 OFFSET" is a table's row
        return paragraph.gap and (number["arabic"] is None or line[len(number["arabic"])] == ".")
    return all(row.italic for row in paragraph.rows)


def _is_wordy(line: str) -> bool:
    letters = sum(map(str.isalpha, line))
    return letters >= 3 and letters > 0.4 * len(line) and "@" not in line


def _is_known(paragraph: Paragraph, body: float) -> bool:
    if len(paragraph.rows) > 1 or len(paragraph.line) > 60:
        return False
    number = _numbered(paragraph.line)
    name = number["name"] if number else paragraph.line
    if _ABSTRACT.fullmatch(paragraph.line):
        return True
    return bool(_KNOWN.fullmatch(name)) and (
        is_styled(paragraph, body) or paragraph.line.isupper() or (paragraph.gap and name[:1].isupper())
    )


def _numbered(line: str) -> re.Match[str] | None:
    match = _NUMBERED.match(line)
    if match is None or (match["chapter"] is None and not match["name"][0].isupper()):
        return None
    # The pattern ignores case for "Chapter"; a number in small letters ("i. e.", "a good") is none.
    number = match["roman"] or match["letter"] or match["appendix"] or "I"
    if not number[0].isupper() or (match["letter"] and line[1:2] != "." and not line.isupper() and len(line) > 60):
        return None
    return match


def _heading_text(paragraph: Paragraph) -> str:
    text = paragraph.line
    return "Abstract" if _ABSTRACT.fullmatch(text) else text.strip(" :")


def _kind(text: str) -> SectionKind:
    number = _numbered(text)
    name = number["name"] if number else text
    if _ABSTRACT.fullmatch(name):
        return "abstract"
    return "references" if _REFERENCES.fullmatch(name) else "section"


class _Levels:
    """Levels of headings: by their numbers, else by the document's bookmarks, else by size among the headings."""

    def __init__(self, headings: Sequence[Paragraph], bookmarks: Mapping[str, int]) -> None:
        self._bookmarks = bookmarks
        self._has_roman = any(match["roman"] for p in headings if (match := _numbered(p.line)))
        self._sizes: list[float] = []
        numbered = [(p.size, depth) for p in headings if (depth := self._depth(p.line))]
        if numbered:
            for depth in range(1, 4):
                sizes = [size for size, level in numbered if level == depth]
                self._sizes.append(max(sizes, default=self._sizes[-1] if self._sizes else numbered[0][0]))
        else:
            for size in sorted({p.size for p in headings}, reverse=True):
                if not self._sizes or self._sizes[-1] - size > 0.6:
                    self._sizes.append(size)

    def of(self, paragraph: Paragraph) -> int:
        """Return a heading's level, from 1 to 5."""
        depth = self._depth(paragraph.line) or self._bookmarks.get(letters_of(paragraph.line), 0)
        if depth:
            return min(depth, 5)
        nearest = min(range(len(self._sizes)), key=lambda rank: abs(self._sizes[rank] - paragraph.size))
        return min(nearest + 1, 4)

    def _depth(self, line: str) -> int:
        match = _numbered(line)
        if match is None:
            return 0
        if match["arabic"]:
            return 1 + match["arabic"].count(".")
        if match["appendix"]:
            return 1 + match["appendix"].count(".")
        return 2 if match["letter"] and self._has_roman else 1
