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

_I = re.IGNORECASE
_WORTH_READING = lazy_pattern(
    r"\b(?:waits?|waiting|timed? ?out|times out|expires?|expired|kept|keeps?|retain(?:s|ed)?|retr(?:y|ies|ied)"
    r"|polls?|polled|scrapes?|refresh(?:es|ed)?|after|every|within|of|is|stays? at|remains?|for|over)"
    r"\s+(?=[\w ]{0,30}\d)|\w\s=\s\d", _I,
)  # fmt: skip
_DIGIT = lazy_pattern(r"\d")
_UP_TO = r"(?: up to| at most| for| another| only| a maximum of| after| in| within| at| automatically){0,3}"
_OFTEN = (
    "polls? polled scrapes? scraped refresh(?:es|ed)? checks? checked sends? sent sync(?:s|ed)? flush(?:es|ed)? runs? "
    "reloads? updates? updated collected reported"
).replace(" ", "|")
# Noun of the quantity → the verb that says it; all but retries are counted in time.
_VERBS = tuple(
    (noun, lazy_pattern(rf"\b(?:{verb})\s+(?=\d)", _I))
    for noun, verb in (
        ("timeout", rf"(?:wait(?:s|ed|ing)?|(?:time[sd]?[ -]?out|timing out)(?= a| i)){_UP_TO}"),
        ("expiry", rf"expire[sd]?(?= a| i| w){_UP_TO}"),
        ("retention", r"(?:kept|retained|keeps?|retains?|stored)\b[^.,;\n]{0,30}?\bfor(?: up to| at most)?"),
        ("retries", rf"(?:retr(?:y|ies|ied)|attempts?|tries|tried)(?= u| a){_UP_TO}"),
        ("interval", rf"(?:{_OFTEN})\b[^.,;\n]{{0,40}}?\bevery"),
    )
)
_LINKED = lazy_pattern(
    r"(?:\b(?P<link>of|is|stays? at|remains?(?: at)?|equals)|=)\s+(?:only\s+|set to\s+|just\s+|about\s+)?(?=v?\d|\.\d)",
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
    if _DIGIT.search(page.text, *sentence) is None:
        return
    attribute: Attribute = "default" if "default" in page.lower[slice(*sentence)] else "value"
    for noun, whose, value, start, end in (*_of_verbs(page.text, sentence), *_of_nouns(page, sentence)):
        owner = " > ".join(filter(None, (headings, whose)))
        subject = Subject(name=noun, form="topic", owner=owner)
        fact = page.fact(subject, attribute, value, start, end, sentence=sentence)
        if fact is not None:
            yield fact


def _of_verbs(text: str, sentence: tuple[int, int]) -> Iterator[tuple[str, str, Value, int, int]]:
    """Yield noun, owner, value and place of what a verb says: ``tokens expire after 5 days``."""
    for noun, pattern in _VERBS:
        match = pattern.search(text, *sentence)
        found = number_at(text, match.end(), sentence[1], in_range=noun == "retries") if match else None
        if match is None or found is None or found[0].unit != (None if noun == "retries" else "s"):
            continue
        if noun == "retries" and not re.match(r"\s*(?:times|attempts|retries)\b", text[found[1] : sentence[1]], _I):
            continue
        whose = ""
        if noun != "timeout":
            lead = _PASSIVE.sub("", text[sentence[0] : match.start()])
            whose = noun_before(text, sentence[0], sentence[0] + len(lead))
            if not whose or whose.lower() in _SPEAKERS:  # ``we keep webhook events for 7 days``
                whose = noun_before(text, match.start(), match.start() + max(0, match[0].rfind(" for")))
        yield noun, whose, found[0], match.start(), found[1]


def _of_nouns(page: Page, sentence: tuple[int, int]) -> Iterator[tuple[str, str, Value, int, int]]:
    """Yield what a noun links to a number: ``batch size of 64``, ``the API version is v2.1``."""
    text, is_page = page.text, page.side == "documentation"
    for match in _LINKED.finditer(text, *sentence):
        link = (match["link"] or "").lower()
        noun = noun_before(text, sentence[0], match.start())
        if (link == "of" and is_page) or not noun or words_of(noun)[-1:] == () or words_of(noun)[-1] not in QUANTITIES:
            continue
        found = _quantity(text, noun, match.end(), sentence[1])
        is_vague = found and found[0].unit is None and link == "is" and len(noun.split()) == 1 and is_page
        if found is not None and not is_vague:
            yield noun, "", found[0], match.start(), found[1]


def _quantity(text: str, noun: str, at: int, end: int) -> tuple[Value, int] | None:
    if not noun.lower().endswith("version"):
        return number_at(text, at, end)
    match = _VERSION.match(text, at, end)
    requirement = read_requirement(match[0]) if match else None
    return (Value("version", str(requirement)), match.end()) if match and requirement else None
