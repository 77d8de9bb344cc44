"""Read the sentences of a passage, and their words and dates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.words import CONTENT, FUNCTION, NAME, VALUE, find_words, word
from nornweave.disagree.assertions import forms
from nornweave.disagree.facts.documentation.prose import sentences

LONGEST = 300
"""Characters of a sentence that is read: longer ones are tables, lists or generated."""
REMEMBERED, REMEMBERED_CHARACTERS = 2_048, 4_000
"""Passages that were read, and characters of each, at most: some 10 MB."""
_I = re.IGNORECASE
# Questions, code, tables (of a PDF's text, whose cells are numbers side by side), directives, synopses, advice.
NO_PROSE = lazy_pattern(
    r"\?|[😂🤣😉😜😆]|[:;]-\)|[|{}=<]|>(?!\s\W*[A-Z])|^\s*>|;$|```|://|\\|::|^\s*\.\.\s|\[\W?--|\d\s\d(?s:.*)\d\s\d"
    r"|^\s*#{1,6}\s|^\W*(?:check|verify|ensure|please|do not|don['’]t|never|make sure|better|set your)\b(?!-)", _I,
)  # fmt: skip
_MONTH = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SEASON = lazy_pattern(rf"\b({_MONTH})\.? ?(?:to|till|until|through|and|[-–]) ?({_MONTH})\b", _I)
_WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_TOKEN = lazy_pattern(
    rf"(?P<date>(?:(?P<weekday2>{_WEEKDAY}),? (?:the )?)?(?:"
    r"(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)-(?P<day>[0-3]\d)(?!\d)"
    rf"|(?P<month2>{_MONTH})\.? (?P<day2>[0-3]?\d)(?:st|nd|rd|th)?\b(?:,? (?P<year2>(?:19|20)\d\d)\b)?"
    rf"|(?P<day3>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? (?P<month3>{_MONTH})\b(?:,? (?P<year3>(?:19|20)\d\d)\b)?)"
    rf"|(?:[Ee]nd|[Mm]iddle|[Bb]eginning|(?P<week>first|second|third|last) week) of (?P<month4>{_MONTH})\b"
    rf"|\bin (?P<month5>{_MONTH})\b(?! ?\d)"
    rf"|(?P<weekday>{_WEEKDAY})\b"
    r"|(?<![\d:.])(?:(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?![\d:])(?: ?(?P<half>[ap])\.?m\b\.?)?"
    r"|(?P<hour2>1[0-2]|[1-9]) ?(?P<half2>[ap])\.?m\b\.?))"
    r"|(?<![-\w])\d+(?:,\d{3})+|(?<![-\w])(?:-(?=\d))?v?\d+(?!\d*xx\b)(?:\.(?:\d+|x\b))*(?:e-?\d{1,2}\b)?"
    r"|[^\W\d]\w*(?:-\w+){0,4}-\d+\b|[^\W\d]\w*(?:[./]\w+)*(?:['’][a-z]{1,2}\b)?|[%,;:()–—]"
)
_CONTRACTED = lazy_pattern(r"(\w)n['’]t\b")
_PHRASE = lazy_pattern(rf"\b(?:{'|'.join(map(re.escape, forms.PHRASES))})\b")
_NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDINAL = lazy_pattern(rf"\b({'|'.join(_NTH)}|\d+(?:st|nd|rd|th)) ({'|'.join(sorted(forms.EDITIONS))})\b", _I)
_NAMED = lazy_pattern(r"(?!v\d)[^\W\d][\w-]*\d")
_PART = lazy_pattern(r"(?:[^;?]|[;?](?!\s)){8,}\??")
DOCSTRING = r"\"\"\"(?:[^\"]|\"(?!\"\")){1,4000}\"\"\""
_COMMENT = lazy_pattern(
    rf"(?:^[ \t]*(?:#(?!!)|//|/\*|\*(?!/))[^\n]*\n?)+|{DOCSTRING}"
    r"|(?<=[\"'])[A-Z][^\"'\n{}<>\\%]{15,200}\.(?=[\"'])", re.MULTILINE,
)  # fmt: skip
_MARK = lazy_pattern(r"^[ \t]*(?:#+|//+|/?\*+/?)|\"\"\"|\*/", re.MULTILINE)
# Who speaks in a thread, and code.
_MARKED = lazy_pattern(
    r"^[ \t]*@?\w[\w.-]{0,24}(?: \w[\w.-]{0,24})?:(?=[ \t])"
    r"|^(?:```|~~~)[^\n]*\n(?:[^\n]*\n){0,200}?(?:```|~~~)",
    re.MULTILINE,
)


_ROW = lazy_pattern(r"^\|([^|\n]{3,80})\|([^|\n]{0,20}\d[^|\n]{0,20})\|(?=[ \t]*$)", re.MULTILINE)
"""A row of a table with a name and a number, which says what a sentence would say."""


def stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    return frozenset(content(text))


def content(text: str) -> dict[str, str]:
    """Return a mapping from the stems of a text's content words, in order, to the words as they are written."""
    read = ((word(written), written) for written in find_words(text))
    return {form: written for (form, sort), written in read if sort in {CONTENT, NAME}}


def months(text: str) -> frozenset[int]:
    """Return the months, from 0, of the season in which a sentence says that it holds; none if it names no season."""
    found = _SEASON.search(text)
    if not found:
        return frozenset[int]().union(*(held for season, held in forms.MONTHS_OF.items()
                                        if re.search(rf"\b{season}\b", text, re.IGNORECASE)))  # fmt: skip
    first, last = (_MONTHS.index(each[:3].lower()) for each in found.groups())
    return frozenset(each % 12 for each in range(first, last + 1 if last >= first else last + 13))


class SaidSentence(NamedTuple):
    """A sentence of a text, where it starts, and the stems of its content words."""

    start: int
    text: str
    stems: frozenset[str]


def _read_sentences(text: str, *, code: bool) -> tuple[SaidSentence, ...]:
    return tuple(SaidSentence(start, said, stems(said)) for start, said in stretches(text, code=code))


_remembered_sentences = lru_cache(REMEMBERED)(_read_sentences)


def remembered_sentences(text: str, *, code: bool) -> tuple[SaidSentence, ...]:
    """Return the sentences of ``stretches`` with their stems, cached because good passages are read again."""
    return (_remembered_sentences if len(text) <= REMEMBERED_CHARACTERS else _read_sentences)(text, code=code)


def stretches(text: str, *, code: bool) -> Iterator[tuple[int, str]]:
    """Yield the start and the text of each sentence. In a program, of comments, docstrings and quotes."""
    for start, prose in _comments(text) if code else ((0, _ROW.sub(r"\n\1:\2.", _MARKED.sub(_blanked, text))),):
        for first, last in sentences(prose, 0, len(prose)):
            if last - first <= LONGEST:
                for found in _PART.finditer(prose, first, last):
                    yield start + found.start(), found[0]


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for found in _COMMENT.finditer(text):
        yield found.start(), _MARK.sub(_blanked, found[0])


def _blanked(found: re.Match[str]) -> str:
    """Return blanks in place of a match. For a speaker's name they begin with a newline, which begins a paragraph."""
    blank = re.sub(r"[^\n]", " ", found[0])
    return "\n" + blank[1:] if found[0].endswith(":") else blank


class Words(NamedTuple):
    """The words of a sentence as they are written, their stems, sorts and clauses, and the dates by place.

    All sentences of the same text share one object, so nobody may change it.
    """

    written: list[str]
    forms: list[str]
    sorts: list[int]
    clauses: list[int]
    dates: dict[int, frozenset[str]]


@lru_cache(REMEMBERED)
def read_words(text: str) -> Words:
    """Return the words of a sentence."""
    plain = _CONTRACTED.sub(r"\1 not", text) if "n't" in text or "n’t" in text else text
    plain = _PHRASE.sub(lambda found: forms.PHRASES[found[0]], plain)
    plain = plain.replace("°C", " celsius")
    plain = _ORDINAL.sub(lambda found: f"{found[2]} {_ordinal(found[1].lower())}", plain)
    words = Words([], [], [], [], {})
    clause = 0
    tokens = list(_TOKEN.finditer(plain))
    for found, behind in zip_longest(tokens, tokens[1:]):
        form, sort = word(found[0])
        if found.lastgroup == "date":
            words.dates[len(words.written)] = _moment(found)
            sort = FUNCTION
        elif found[0].lower() in forms.BREAKS and not (found[0] == "as" and behind and behind[0][0].isupper()):
            clause += 1
            sort = FUNCTION
        elif (sort == VALUE and _NAMED.match(found[0])) or found[0] in {"US", "IT"}:
            sort = NAME
        elif form == "one" and words.sorts[-1:] == [CONTENT]:
            form = "1"  # shed one
        words.written.append(found[0])
        words.forms.append(form)
        words.sorts.append(sort)
        words.clauses.append(clause)
    return words


def _ordinal(written: str) -> str:
    return str(_NTH.index(written) + 1) if written in _NTH else written[:-2]


def is_clock(parts: Collection[str]) -> bool:
    """Tell whether the parts of a date are a time of day."""
    return next(iter(parts)).startswith("clock")


def _moment(found: re.Match[str]) -> frozenset[str]:
    """Return the parts of a date, ``{"day 3", "month 3"}``, or a time of day in minutes: ``{"clock 1080"}``."""
    if hour := found["hour"] or found["hour2"]:
        half = found["half"] or found["half2"]
        late = 12 if half == "p" and int(hour) < 12 else -12 if half == "a" and int(hour) == 12 else 0
        return frozenset((f"clock {((int(hour) + late) * 60 + int(found['minute'] or 0)) % 1440}",))
    parts: dict[str, str] = {}
    for name, text in found.groupdict().items():
        if text and name != "date":
            part = name.rstrip("2345")
            month = part == "month" and not text.isdigit()
            parts[part] = str(_MONTHS.index(text[:3].lower()) + 1) if month else text.lstrip("0").lower()
    return frozenset(f"{part} {text}" for part, text in parts.items())
