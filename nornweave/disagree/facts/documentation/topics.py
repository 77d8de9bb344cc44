"""Read quantities in plain words: ``waits 30 seconds``, ``retried at most 3 times``, ``batch size of 256``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact
from nornweave.disagree.facts.documentation.literals import number_at
from nornweave.disagree.facts.documentation.naming import QUANTITIES, noun_before
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import read_requirement

_WORTH_READING = lazy_pattern(
    r"\b(?:waits?|waiting|timed? ?out|times out|expires?|expired|kept|keeps?|retain(?:s|ed)?|retr(?:y|ies|ied)"
    r"|polls?|polled|scrapes?|refresh(?:es|ed)?|"
    r"after|every|within|of|is|stays? at|remains?|for|over)\s+(?=[\w ]{0,30}\d)|\w\s=\s\d", re.IGNORECASE
)  # fmt: skip
_I = re.IGNORECASE
_DIGIT = lazy_pattern(r"\d")
# Verb with its preposition → noun of the quantity, and whether it is counted in time.
_UP_TO = r"(?: up to| at most| for| another| only| a maximum of| after| in| within| at| automatically){0,3}"
_OFTEN = (
    "polls? polled scrapes? scraped refresh(?:es|ed)? checks? checked sends? sent sync(?:s|ed)? flush(?:es|ed)? runs? "
    "reloads? updates? updated collected reported"
).replace(" ", "|")
_NOUNS_OF_VERBS: tuple[tuple[str, str, bool], ...] = (
    (rf"wait(?:s|ed|ing)?{_UP_TO}", "timeout", True),
    (rf"(?:time[sd]?[ -]?out|timing out)(?= a| i){_UP_TO}", "timeout", True),
    (rf"expire[sd]?(?= a| i| w){_UP_TO}", "expiry", True),
    (r"(?:kept|retained|keeps?|retains?|stored)\b[^.,;\n]{0,30}?\bfor(?: up to| at most)?", "retention", True),
    (rf"(?:retr(?:y|ies|ied)|attempts?|tries|tried)(?= u| a){_UP_TO}", "retries", False),
    (rf"(?:{_OFTEN})\b[^.,;\n]{{0,40}}?\bevery", "interval", True),
)
_VERBS = tuple((lazy_pattern(rf"\b(?:{verb})\s+(?=\d)", _I), noun, is_time) for verb, noun, is_time in _NOUNS_OF_VERBS)
_LINKED = lazy_pattern(
    r"(?:\b(?P<link>of|is|stays? at|remains?(?: at)?|equals|to|are)|(?P<sign>=))\s+(?:only\s+|set to\s+|just\s+"
    r"|about\s+)?(?=v?\d|\.\d)",
    _I,
)
_VERSION = lazy_pattern(r"v?\d{1,4}(?:\.\d{1,4}){1,3}\b|v\d{1,4}\b")
_SPEAKERS = frozenset(("we", "i", "it", "they", "you"))
_PASSIVE = lazy_pattern(r"\s+(?:is|are|was|were|be|been|will be|gets?)\s*$", _I)


def is_worth_reading(text: str, start: int, end: int) -> bool:
    """Tell quickly whether a stretch may have a quantity."""
    return _DIGIT.search(text, start, end) is not None and _WORTH_READING.search(text, start, end) is not None


def topic_facts(page: Page, sentence: tuple[int, int], headings: str) -> Iterator[Fact]:
    """Yield the quantities of a sentence whose noun says what they are; the owner is the heading."""
    text = page.text
    if _DIGIT.search(text, *sentence) is None:
        return
    for pattern, noun, timed in _VERBS:
        match = pattern.search(text, *sentence)
        if match is None:
            continue
        found = number_at(text, match.end(), sentence[1], in_range=not timed)
        if found is None or (timed and found[0].unit != "s") or (not timed and found[0].unit):
            continue
        if not timed and not re.match(r"\s*(?:times|attempts|retries)\b", text[found[1] : sentence[1]], _I):
            continue
        subject_end = sentence[0] + len(_PASSIVE.sub("", text[sentence[0] : match.start()]))
        whose = noun_before(text, sentence[0], subject_end) if noun != "timeout" else ""
        if noun != "timeout" and (not whose or whose.lower() in _SPEAKERS):  # ``we keep webhook events for 7 days``
            whose = noun_before(text, match.start(), match.start() + max(0, match[0].rfind(" for")))
        owner = f"{headings} > {whose}" if whose and headings else whose or headings
        yield from _fact(page, noun, found[0], (match.start(), found[1]), sentence, owner)
    yield from _nouns(page, sentence, headings)


def _fact(
    page: Page,
    noun: str,
    value: Value,
    place: tuple[int, int],
    sentence: tuple[int, int],
    headings: str,
) -> Iterator[Fact]:
    subject = Subject(name=noun, form="topic", owner=headings)
    attribute: Attribute = "default" if "default" in page.lower[slice(*sentence)] else "value"
    fact = page.fact(subject, attribute, value, *place, sentence=sentence)
    if fact is not None:
        yield fact


def _nouns(page: Page, sentence: tuple[int, int], headings: str) -> Iterator[Fact]:
    text = page.text
    for match in _LINKED.finditer(text, *sentence):
        link = (match["link"] or match["sign"]).lower()
        if link in {"of", "to", "are"} and page.side == "documentation":
            continue
        if link in {"to", "are"}:
            continue
        noun = noun_before(text, sentence[0], match.start())
        if not noun or words_of(noun)[-1:] == () or words_of(noun)[-1] not in QUANTITIES:
            continue
        value, end = _quantity(text, noun, match.end(), sentence[1])
        if value is not None and not (
            value.unit is None and link == "is" and len(noun.split()) == 1 and page.side == "documentation"
        ):
            yield from _fact(page, noun, value, (match.start(), end), sentence, headings)


def _quantity(text: str, noun: str, at: int, end: int) -> tuple[Value | None, int]:
    if noun.lower().endswith("version"):
        match = _VERSION.match(text, at, end)
        requirement = read_requirement(match[0]) if match else None
        return (Value("version", str(requirement)), match.end()) if match and requirement else (None, at)
    found = number_at(text, at, end)
    return found if found is not None else (None, at)
