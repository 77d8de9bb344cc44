"""Read what a sentence asserts: of what, and whether it is so, with which status or number, or when.

An assertion is *about* the set of the sentence's content words, each as its stem. Taken out of it is that in which two
sentences contradict each other if they differ in nothing else: what denies (``not``, ``no longer``, ``removed``),
HTTP statuses and dates. Verbs that say the same of a thing's presence, of an answer or of an event count as one word:
``supports`` and ``is available``, ``returns 201`` and ``responds with 201``, ``shipped`` and ``deployed``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import TypeAlias

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.words import CONTENT, FUNCTION, NAME, VALUE, find_words, word
from nornweave.core.types import Span
from nornweave.disagree.facts.documentation.qualifiers import sentences

Moment: TypeAlias = "frozenset[tuple[str, str]]"
"""The parts of a date that are written: ``{("day", "3"), ("month", "mar")}``."""

LONGEST = 300
"""Characters of a sentence that is read: longer ones are tables, lists or generated."""
_I = re.IGNORECASE
_MONTH = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = lazy_pattern(
    r"\b(?:on )?(?:(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)-(?P<day>[0-3]\d)"
    rf"|(?P<month2>{_MONTH})\.? (?P<day2>[0-3]?\d)(?:st|nd|rd|th)?\b(?:,? (?P<year2>(?:19|20)\d\d)\b)?"
    rf"|(?P<day3>[0-3]?\d)(?:st|nd|rd|th)? (?P<month3>{_MONTH})\b(?:,? (?P<year3>(?:19|20)\d\d)\b)?"
    r"|(?P<weekday>(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day))\b"
)
_NOT = lazy_pattern(r"\b(?:not|no longer|never|cannot)\b|n['’]t\b", _I)
# A clause that such a word opens is no statement of its own.
_CLAUSE = lazy_pattern(r"\b(?:that|which|who|where|because|since|so|or|and)\b", _I)
# Questions, code, tables, hedges, advice, history.
_NO_STATEMENT = lazy_pattern(
    r"\?|[|{}=]|;$|```|://|\b(?:not (?:only|necessarily|yet|always|all|every|just|too|so)|or not|used to|make sure)\b"
    r"|\b(?:was|were|had|did)(?: not|n['’]t)\b|^\W*(?:check|verify|ensure|please|do not|don['’]t|never)\b"
    r"|\b(?:if|when|unless|whether|until|while|as long as|in case|previously|formerly|should|must|may|might|could|would"
    r"|examples?|e\.g|maybe|perhaps|sometimes|usually|propos\w+|think|guess|otherwise|todo|fixme)\b",
    _I,
)
# Words that choose among things; elsewhere they are function words.
_CHOOSING = frozenset("some other another all every each most few many both same own if when only my our".split())  # noqa: SIM905
THERE, _ANSWERED, _HAPPENED, _IS = "<there>", "<answered>", "<happened>", "<is>"
_COPULA = frozenset(("is", "are", "be", "isn", "aren", "can", "cannot"))
# Stem or word → what it says of a thing, and whether it denies that. ``remove`` says nothing: somebody does that.
_VERBS = MappingProxyType(
    dict.fromkeys(("support", "available", "enabled", "provid", "offer"), (THERE, False))
    | dict.fromkeys(("removed", "dropped", "discontinued", "disabled", "unsupported", "unavailable"), (THERE, True))
    | dict.fromkeys(("return", "respond", "repli", "answer", "send"), (_ANSWERED, False))
    | dict.fromkeys(("ship", "deploy", "releas", "launch", "publish"), (_HAPPENED, False))
)
_ANSWERS = lazy_pattern(r"\b(?:http|status|returns?|responds?|response|answers?|repl(?:y|ies)|sends?)\b", _I)
_STATUS = lazy_pattern("[1-5]\\d\\d")
_PHRASES = MappingProxyType(
    {str(each.value): {word(part)[0] for part in re.findall(r"\w+", each.phrase)} for each in HTTPStatus}
)
_STATUS_WORDS = {word(each)[0] for each in ("http", "status", "code")}
# Since which version something is so is not what it is about.
_VERSION = lazy_pattern(r"\b(?:in|since|as of|from|with) (?:version |release )?v?\d+(?:\.\d+)*(?=\W*$)", _I)
_TICKED = lazy_pattern(r"`([^`\n]{1,60})`")
# What tells quickly that a sentence has nothing in which assertions differ.
_STEMS = (
    " not ", "n't", "n’t", "support", "avail", "nabled", "isabled", "never", "cannot", "no longer", "provid", "offer",
    "removed", "dropped", "discontinued",
)  # fmt: skip
_DIGIT = lazy_pattern(r"\d")
_TIMED = lazy_pattern(r"(?<![\d.])(?:[1-5]\d\d(?![\d.%])|(?:19|20)\d\d-\d\d)|\d [A-Z][a-z]{2}|[A-Z][a-z]{2,8}\.? \d")
REMEMBERED, REMEMBERED_CHARACTERS = 2_048, 4_000
"""Passages that were read, and characters of each, at most: some 10 MB."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What one sentence asserts.

    Attributes:
        about: its content words; two assertions are compared if these are equal.
        names: those that name a single thing: identifiers, acronyms, words with a capital.
        subject: its content words as they are written, for people.
        denied: whether it says that it is not so.
        statuses, figures: its HTTP statuses, and its other numbers with what they count, in order.
        moments: its dates.
        span: where it stands in the text.
    """

    about: frozenset[str]
    names: frozenset[str]
    subject: str
    denied: bool
    statuses: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    moments: tuple[Moment, ...]
    span: Span


def read_text(text: str, *, code: bool) -> tuple[list[Assertion], list[tuple[int, str]]]:
    """Return what the sentences of a text assert, and with their places the others, which something else may deny."""
    asserted, plain = [], []
    for start, sentence in stretches(text, code=code):
        if not _may_assert(sentence):
            plain.append((start, sentence))
        elif (assertion := read(sentence, start)) is not None:
            asserted.append(assertion)
    return asserted, plain


_remembered = lru_cache(REMEMBERED)(read_text)


def remembered_text(text: str, *, code: bool) -> tuple[list[Assertion], list[tuple[int, str]]]:
    """Read a text as ``read_text`` does, or remember it: good passages come again with other questions."""
    return (_remembered if len(text) <= REMEMBERED_CHARACTERS else read_text)(text, code=code)


def stretches(text: str, *, code: bool) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text with where they start; of a program those of its comments and docstrings."""
    for start, prose in _comments(text) if code else ((0, _MARKED.sub(_blanked, text)),):
        for first, last in sentences(prose, 0, len(prose)):
            if last - first <= LONGEST:
                for found in _PART.finditer(prose, first, last):
                    yield start + found.start(), found[0]


_PART = lazy_pattern(r"(?:[^;]|;(?!\s)){8,}")
_COMMENT = lazy_pattern(
    r"(?:^[ \t]*(?:#(?!!)|//|/\*|\*(?!/))[^\n]*\n?)+|\"\"\"(?:[^\"]|\"(?!\"\")){1,4000}\"\"\"", re.MULTILINE
)
_MARK = lazy_pattern(r"^[ \t]*(?:#+|//+|/?\*+/?)|\"\"\"", re.MULTILINE)


# Who speaks in a thread, and code.
_MARKED = lazy_pattern(
    r"^[ \t]*@?\w[\w.-]{0,24}(?: \w[\w.-]{0,24})?:(?=[ \t])"
    r"|^(?:```|~~~)[^\n]*\n(?:[^\n]*\n){0,200}?(?:```|~~~)",
    re.MULTILINE,
)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for found in _COMMENT.finditer(text):
        yield found.start(), _MARK.sub(_blanked, found[0])


def _blanked(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _may_assert(sentence: str) -> bool:
    for stem in _STEMS:  # a loop: three times as fast as ``any`` over a generator
        if stem in sentence:
            return True
    return (_DIGIT.search(sentence) and _TIMED.search(sentence)) is not None or "day" in sentence


def read(sentence: str, start: int) -> Assertion | None:
    """Return what a sentence asserts; ``None`` if it hedges, asks, or denies something in a clause of its own."""
    if _NO_STATEMENT.search(sentence):
        return None
    moments = tuple(_moment(found) for found in _DATE.finditer(sentence))
    plain = _VERSION.sub("", _DATE.sub(" ", sentence) if moments else sentence)
    denials = list(_NOT.finditer(plain))
    if len(denials) > 1 or (denials and _in_clause(plain, denials[0].start())):
        return None
    words = find_words(plain)
    reading = _Reading(denied=bool(denials), answers=_ANSWERS.search(plain) is not None)
    ticked = {each for part in _TICKED.findall(plain) for each in find_words(part)} if "`" in plain else ()
    for place, written in enumerate(words):
        reading.add(words, place, is_name=written in ticked or (place > 0 and written[:1].isupper()))
    stripped = sentence.strip()
    begin = start + sentence.index(stripped) if stripped else start
    return reading.assertion(moments, Span(begin, begin + len(stripped)))


def _in_clause(text: str, at: int) -> bool:
    """Tell whether a place lies in a clause that depends on another one."""
    opened = [found.end() for found in _CLAUSE.finditer(text, 0, at)]
    return bool(opened) and "," not in text[opened[-1] : at]


class _Reading:
    """The words of a sentence, sorted into what an assertion is about and what it says of it."""

    def __init__(self, *, denied: bool, answers: bool) -> None:
        self._denied = denied
        self._answers = answers
        self._about: dict[str, str] = {}
        self._names: set[str] = set()
        self._copula = False
        self._is_mixed = False
        self._statuses: list[str] = []
        self._figures: list[tuple[str, str]] = []

    def add(self, words: Sequence[str], place: int, *, is_name: bool) -> None:
        """Add a word of the sentence."""
        written = words[place].lower()
        form, sort = word(words[place])
        self._copula |= written in _COPULA
        if form == "not" or (written in {"longer", "anymore"} and self._denied):
            return
        said = _VERBS.get(form) or _VERBS.get(written)
        if said is not None and not (written.endswith(("ed", "able")) and _qualifies(words, place)):
            self._is_mixed |= said[0] in self._about and not self._denied
            self._denied ^= said[1]
            self._about[said[0]] = written
            return
        if sort == VALUE:
            self._add_figure(form, words, place)
        elif sort != FUNCTION or written in _CHOOSING:
            self._about.setdefault(form, words[place])
            if sort == NAME or is_name or (len(written) > 1 and words[place].isupper()):
                self._names.add(form)

    def _add_figure(self, form: str, words: Sequence[str], place: int) -> None:
        if self._answers and form in _PHRASES and _STATUS.fullmatch(form):
            self._statuses.append(form)
            return
        before = word(words[place - 1])[1] if place else FUNCTION
        after = word(words[place + 1]) if place + 1 < len(words) else ("", FUNCTION)
        counts = after[1] == CONTENT or (before == FUNCTION and after[1] == FUNCTION)
        if counts and words[place][:1].isdigit():
            self._figures.append((form, after[0] if after[1] == CONTENT else ""))
        else:  # it tells one of several: Python 3, step 4, v2
            self._about.setdefault(form, words[place])
            if not words[place].isdigit():
                self._names.add(form)

    def assertion(self, moments: tuple[Moment, ...], span: Span) -> Assertion | None:
        """Return what the words assert; ``None`` if they say it of a thing twice (``enabled or disabled``)."""
        if self._is_mixed:
            return None
        said = set().union(*(_PHRASES[status] | _STATUS_WORDS for status in self._statuses))
        about = {form: written for form, written in self._about.items() if form not in said}
        if self._statuses:
            about.setdefault(_ANSWERED, "")
        if self._copula and THERE not in about:
            about[_IS] = ""
        subject = " ".join(written for form, written in about.items() if not form.startswith("<"))
        return Assertion(frozenset(about), frozenset(self._names & about.keys()), subject, self._denied,
                         tuple(self._statuses), tuple(self._figures), moments, span)  # fmt: skip


def _qualifies(words: Sequence[str], place: int) -> bool:
    """Tell whether a word only says which things are meant: ``available tools`` says nothing of them."""
    following = words[place + 1 : place + 2]
    return any(word(each)[1] in {CONTENT, NAME} and word(each)[0] not in _VERBS for each in following)


def _moment(found: re.Match[str]) -> Moment:
    parts: dict[str, str] = {}
    for name, text in found.groupdict().items():
        if text:
            part = name.rstrip("23")
            month = part == "month" and not text.isdigit()
            parts[part] = str(_MONTHS.index(text[:3].lower()) + 1) if month else text.lstrip("0").lower()
    return frozenset(parts.items())
