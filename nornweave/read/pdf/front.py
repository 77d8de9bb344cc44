"""Find the title, authors and keywords on the first page of a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nornweave.read.pdf.layout import LayoutRow
from nornweave.read.pdf.paragraphs import Paragraph

_KEYWORDS = re.compile(r"(?:key\s?words(?: and phrases)?|index terms)\s*[—–:.-]+\s*(?P<words>\S.*)", re.IGNORECASE)
_NOT_A_NAME = re.compile(
    r"universi|institut|department|dept|laborator|\blabs?\b|research|school|college|cent(?:er|re)\b|facult|academy"
    r"|corporation|company|\binc\b|\bltd\b|gmbh|google|microsoft|facebook|science|engineering|technolog|computer"
    r"|comput|abstract|keywords|conference|journal|proceedings|volume|copyright|street|avenue|hospital|group|team",
    re.IGNORECASE,
)
_NAME_PART = r"(?:[^\W\d_a-z][\w'’.-]*|d[aeiu]|de|der|den|van|von|la|le|bin|al|el|y)"
_NAME = re.compile(rf"{_NAME_PART}(?:\s+{_NAME_PART}){{1,4}}")
_BETWEEN_NAMES = re.compile(r"\s*(?:,|;|·|•|&|\band\b)\s*")
_MARKS = re.compile(r"[\d*∗†‡§¶⋆♠♣♦♥✉(){}\[\]]+|\b(?:Dr|Prof|Jr|Ph\.?D)\.?(?=\s|$)")
_MAX_AUTHORS = 100


def is_styled(paragraph: Paragraph, body: float) -> bool:
    """Tell whether a paragraph is set like a heading: larger than the body, or bold."""
    return paragraph.size >= body + 0.8 or (paragraph.bold and paragraph.size >= body - 0.6)


def title_rows(front: Sequence[Paragraph], body: float, zone: float) -> list[LayoutRow]:
    """Return the rows of the largest print near the top of the first page."""
    rows = [row for p in front if is_styled(p, body) for row in p.rows]
    rows = [row for row in rows if row.baseline < zone and sum(map(str.isalpha, row.text)) > 3 and row.cells == 1]
    if not rows:
        return []
    largest = max(row.size for row in rows)
    first = next(index for index, row in enumerate(rows) if row.size == largest)
    title = [rows[first]]
    for row in rows[first + 1 :]:
        if row.size != largest or row.baseline - title[-1].baseline > 2.5 * row.size or len(title) == 5:
            break
        title.append(row)
    return title


def authors_in(rows: Iterable[LayoutRow]) -> Iterator[str]:
    """Yield the names among ``rows`` that are set like the first name found."""
    style = None
    count = 0
    for row in rows:
        for fragment in row.fragments:
            names = [name for part in _BETWEEN_NAMES.split(fragment.name) if (name := _name(part))]
            if not names or (style is not None and style != (fragment.size, fragment.bold)):
                continue
            style = (fragment.size, fragment.bold)
            yield from names[: _MAX_AUTHORS - count]
            count += len(names)


def _name(text: str) -> str | None:
    text = " ".join(_MARKS.sub(" ", text).split()).strip(" ,.;")
    if not 4 <= len(text) <= 50 or "@" in text or _NOT_A_NAME.search(text) or not _NAME.fullmatch(text):
        return None
    return text


def keywords_in(paragraphs: Sequence[Paragraph]) -> Iterator[str]:
    """Yield the words after "Keywords:" near the beginning."""
    for paragraph in paragraphs[:40]:
        match = _KEYWORDS.match(paragraph.line)
        if match and len(match["words"]) < 600:
            for word in re.split(r"\s*[,;·•|]\s*", match["words"]):
                if 1 < len(word) < 60:
                    yield word.rstrip(" .")
            return
