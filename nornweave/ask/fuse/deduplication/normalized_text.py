"""Normalise a text for comparison: its words in order, in units of sentences and lines, without markup.

This removes Markdown and HTML, quote marks, list bullets, blank space, punctuation, case, inflection and speaker
labels; numbers and contractions are written in one way. Code keeps its words unchanged, with the operators of each
line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.text.inline_markup import unescaped
from nornweave.core.text.words import CONTENT, FUNCTION, NAME, find_words, name, word

# A bracket that is never closed ends after so many lines.
MAX_JOINED_LINES = 20
# Of some 20 kB each.
REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, heading, list entry, table row or line of code: ``forms[start:end]`` of its text.

    Attributes:
        said: its content words, in order.
    """

    start: int
    end: int
    is_code: bool
    said: tuple[str, ...]
    operators: str = ""

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class TextReading:
    """A text normalised for comparison.

    Attributes:
        forms: the words as they are compared, in order.
        sorts: word → its kind, a number as in ``core/text/words.py``.
        said: the content words, in order.
        ordered: the words in alphabetical order, joined by blanks: what ``token_sort_ratio`` compares.
        shingles: all runs of three words, in order. A text of fewer words is one shingle.
        distinct: the shingles as a set.
    """

    forms: tuple[str, ...]
    sorts: Mapping[str, int]
    said: tuple[str, ...]
    units: tuple[Unit, ...]
    ordered: str
    shingles: tuple[str, ...]
    distinct: frozenset[str]

    def __len__(self) -> int:
        return len(self.forms)


@lru_cache(maxsize=REMEMBERED)
def read(text: str, *, code: bool = False, conversation: bool = False) -> TextReading:
    """Return a normalised text. Recent results are cached, because many questions find the same chunks.

    Args:
        code: the text is a program: lines are units unless they belong to a comment or a docstring.
        conversation: lines may start with a speaker.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)  # composed letters, no ligatures, no full-width figures
    forms: list[str] = []
    sorts: dict[str, int] = {}
    units: list[Unit] = []
    for part, is_code in _code_units(text) if code else _mixed_units(_strip_marks(text, conversation=conversation)):
        words = list(map(name, find_words(part))) if is_code else _prose_words(part)
        if words:
            start = len(forms)
            forms += [form for form, _ in words]
            sorts.update(words)
            operators = " ".join(_OPERATOR.findall(part)) if is_code else ""
            said = tuple([form for form, sort in words if sort > FUNCTION])
            units.append(Unit(start, len(forms), is_code, said, operators))
    # Strings remember their hashes, tuples would not, and the garbage collector does not look at them.
    shingles = tuple(map(" ".join, zip(forms, forms[1:], forms[2:], strict=False))) or (
        (" ".join(forms),) if forms else ()
    )
    said = tuple(form for unit in units for form in unit.said)
    return TextReading(tuple(forms), sorts, said, tuple(units), " ".join(sorted(forms)), shingles, frozenset(shingles))


_OPERATOR = re.compile(r"[-+*/%<>=!&|^~?]+")
_TAG = re.compile(
    r"</?(?:a|abbr|article|aside|b|blockquote|body|br|caption|center|code|dd|details|div|dl|dt|em|font|footer|h[1-6]|"
    r"head|header|hr|html|i|img|kbd|li|main|mark|nav|ol|p|pre|s|section|small|span|strong|sub|summary|sup|table|tbody|"
    r"td|th|thead|tr|u|ul)(?:\s[^<>]{0,500})?/?>",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()\s]{1,500}\)|<https?://[^<>|\s]{1,500}\|([^<>|]{1,200})>")
_SPEAKER = re.compile(
    r"^[ \t]*(?:\[?\d{1,2}:\d\d(?::\d\d)?\]?[ \t]+)?@?\w[\w.-]{0,24}(?: \w[\w.-]{0,24}){0,2}:[ \t]+", re.MULTILINE
)
_QUOTE_MARK = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
# Between sentences, paragraphs, list entries, headings and rows; lines that are only broken stay together.
_BOUNDARY = re.compile(
    r"(?<=[.!?;])[\"'”’)\]*_`]{0,3}\s+|(?<=[。！？])|(?<=:)[ \t]*\n|\n(?=[ \t]*(?:[-*+•#|=~^]|\d{1,3}[.)]\s|\n|$))"
    r"|\n(?=[^|\n]{0,80}\|)"
)
_FENCE = re.compile(r"```|~~~")
# The language that is named beside a fence.
_FENCE_LABEL = re.compile(r"[ \t]*(?:[\w+#.-]+|\{[^{}\n]{0,100}\})?[^\S\n]*\n")
# Indented code under a line that ends with a colon, or under a directive of reStructuredText and its options.
_INDENTED = re.compile(
    r"^(?![ \t]|[-*+] |\d{1,3}[.)] )[^\n]*:[ \t]*(?:[\w+#-]+[ \t]*)?\n(?:[ \t]+:\w[^\n]*\n)*\s*\n"
    r"((?:(?: {3}|\t)[^\n]*(?:\n|$)|[ \t]*\n)+)",
    re.MULTILINE,
)
_CAPITAL_INSIDE = re.compile(r"\s\W?[A-Z]|[^\x00-\x7f]")
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|--\s|;;|%%|\"\"\"|''')")
_REMARK = re.compile(r"\s(?:#|//)\s")
_DOCSTRING = re.compile(r'"""|\'\'\'')


def _strip_marks(text: str, *, conversation: bool) -> str:
    if "<" in text:
        text = _LINK.sub(r"\1\2", text)
        text = _TAG.sub("", text)
    elif "](" in text:
        text = _LINK.sub(r"\1\2", text)
    text = unescaped(text)
    if ">" in text:
        text = _QUOTE_MARK.sub("", text)
    return _SPEAKER.sub(_without_speaker, text) if conversation else text


def _without_speaker(found: re.Match[str]) -> str:
    """Return a line's beginning without the speaker's name. Words in capitals, as ``ERROR:``, stay."""
    return f"\n\n{found[0]}" if found[0].strip(": \t").isupper() else "\n\n"


def _mixed_units(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the units of prose with fenced or indented code, each with whether it is code."""
    for number, part in enumerate(_FENCE.split(text)):
        if number % 2:
            yield from _code_units(_FENCE_LABEL.sub("", part, count=1) if "\n" in part else part)
            continue
        for place, piece in enumerate(_INDENTED.split(part)):
            yield from _code_units(piece) if place % 2 else _prose_units(piece)


def _prose_units(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the units of prose, each with ``False``, because it is not code. ``From the runbook:`` is left out."""
    return ((part, False) for part in _BOUNDARY.split(text) if not part.endswith(":"))


def _code_units(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a program and the sentences of its comments, each with whether it is code.

    Lines inside open brackets are joined.
    """
    prose: list[str] = []
    lines: list[str] = []
    inside = False
    depth = 0
    for line in text.split("\n"):
        quotes = 0 if lines else len(_DOCSTRING.findall(line))
        if inside or quotes or (not lines and _COMMENT.match(line)):
            prose.append(line.strip(" \t#/*-;"))
            inside ^= quotes % 2 == 1
            continue
        yield from _prose_units("\n".join(prose))
        prose = []
        code, remark = _remark_apart(line)
        yield remark, False
        lines.append(code)
        depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        if depth <= 0 or len(lines) >= MAX_JOINED_LINES:
            yield " ".join(lines), True
            lines, depth = [], 0
    yield " ".join(lines), True
    yield from _prose_units("\n".join(prose))


def _remark_apart(line: str) -> tuple[str, str]:
    """Return the code of a line and the comment at its end (perhaps empty). Signs inside quotes begin no comment."""
    found = _REMARK.search(line)
    if found is None or line[: found.start()].count('"') % 2 or line[: found.start()].count("'") % 2:
        return line, ""
    return line[: found.start()], line[found.end() :]


def _prose_words(text: str) -> list[tuple[str, int]]:
    """Return the words, each with its kind. A capital marks a name, unless the word is the first of a sentence."""
    found = find_words(text)
    words = list(map(word, found))
    if _CAPITAL_INSIDE.search(text):
        for place, (form, sort) in enumerate(words):
            if place and sort == CONTENT and found[place][0].isupper():
                words[place] = form, NAME
    return words
