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
_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HOUR = rf"(?:{'|'.join(_HOURS)}|1[0-2]|[1-9])"
_PART_OF_DAY = r"(?: in the (?:morning|afternoon|evening)\b| at night\b| ?[ap]\.?m\b\.?)"
# Half past seven; ten to six in the morning; nine in the evening; ten o'clock.
_SPOKEN = (
    rf"(?P<past>half|quarter|five|ten|twenty) (?P<to>past|to(?= {_HOUR}{_PART_OF_DAY})|(?<=quarter )to)"
    rf" (?P<hour3>{_HOUR})(?P<part3>{_PART_OF_DAY})?(?!\w)"
    rf"|(?P<hour4>{_HOUR})(?:(?P<part4>{_PART_OF_DAY})| o['’]clock(?P<part5>{_PART_OF_DAY})?)"
)
_TOKEN = lazy_pattern(
    rf"(?P<date>(?:(?P<weekday2>{_WEEKDAY}),? (?:the )?)?(?:"
    r"(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)-(?P<day>[0-3]\d)(?!\d)"
    rf"|(?P<month2>{_MONTH})\.? (?P<day2>[0-3]?\d)(?:st|nd|rd|th)?\b(?:,? (?P<year2>(?:19|20)\d\d)\b)?"
    rf"|(?P<day3>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? (?P<month3>{_MONTH})\b(?:,? (?P<year3>(?:19|20)\d\d)\b)?)"
    rf"|(?:[Ee]nd|[Mm]iddle|[Bb]eginning|(?P<week>first|second|third|last) week) of (?P<month4>{_MONTH})\b"
    rf"|\bin (?P<month5>{_MONTH})\b(?! ?\d)"
    rf"|(?P<weekday>{_WEEKDAY})\b"
    rf"|\b(?:{_SPOKEN})"
    r"|(?<![\d:.])(?:(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?![\d:])(?: ?(?P<half>[ap])\.?m\b\.?)?"
    r"|(?P<hour2>1[0-2]|[1-9]) ?(?P<half2>[ap])\.?m\b\.?))"
    r"|(?<![-\w])\d+(?:,\d{3})+|(?<![-\w])(?:-(?=\d))?v?\d+(?!\d*xx\b)(?:\.(?:\d+|x\b))*(?:e-?\d{1,2}\b)?"
    r"|[^\W\d]\w*(?:-\w+){0,4}-\d+\b|[^\W\d]\w*(?:[./]\w+)*(?:['’][a-z]{1,2}\b)?|[%,;:()–—]"
)
_CONTRACTED = lazy_pattern(r"(\w)n['’]t\b")
_PHRASE = lazy_pattern(rf"\b(?:{'|'.join(map(re.escape, forms.PHRASES))})\b")
_SINGLE = lazy_pattern(r"(?<=\b[A-Za-z])-(?=[a-z]{3})")  # e-mail
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
    plain = _SINGLE.sub("", plain).replace("°C", " celsius")
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


def read_clock(text: str) -> frozenset[str] | None:
    """Return a time of day in the form of ``_moment``; ``None`` if the text is not a time of day."""
    found = _TOKEN.fullmatch(text)
    parts = _moment(found) if found and found.lastgroup == "date" else frozenset[str]()
    return parts if parts and is_clock(parts) else None


def is_clock(parts: Collection[str]) -> bool:
    """Tell whether the parts of a date are a time of day."""
    return next(iter(parts)).startswith("clock")


def _moment(found: re.Match[str]) -> frozenset[str]:
    """Return the parts of a date, ``{"day 3", "month 3"}``, or a time of day in minutes: ``{"clock 1080"}``.

    If the text does not say whether a time is before noon, the result is like ``{"clock12 1080"}``.
    """
    if hour := found["hour"] or found["hour2"]:
        half = found["half"] or found["half2"]
        return _clock(int(hour), int(found["minute"] or 0), half or "", is_known=True)
    if spoken := found["hour3"] or found["hour4"]:
        hours = _HOURS.index(spoken) + 1 if spoken in _HOURS else int(spoken)
        past = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}.get(found["past"] or "", 0)
        part = (found["part3"] or found["part4"] or found["part5"] or "").replace("in the", "").strip()
        half = "a" if part.startswith(("a.", "am", "morning")) else "p" if part else ""
        return _clock(hours, -past if found["to"] == "to" else past, half, is_known=bool(part))
    parts: dict[str, str] = {}
    for name, text in found.groupdict().items():
        if text and name != "date":
            part = name.rstrip("2345")
            month = part == "month" and not text.isdigit()
            parts[part] = str(_MONTHS.index(text[:3].lower()) + 1) if month else text.lstrip("0").lower()
    return frozenset(f"{part} {text}" for part, text in parts.items())


def _clock(hour: int, minute: int, half: str, *, is_known: bool) -> frozenset[str]:
    late = 12 if half == "p" and hour < 12 else -12 if half == "a" and hour == 12 else 0
    return frozenset((f"{'clock' if is_known else 'clock12'} {((hour + late) * 60 + minute) % 1440}",))
