"""Extract facts from sentences: what each states and about which thing; and quantities in plain words.

``waits 30 seconds``, ``retried at most 3 times`` and ``batch size of 256`` need no word that announces them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact
from nornweave.disagree.facts.documentation.literals import number_at
from nornweave.disagree.facts.documentation.naming import QUANTITIES, Mention, mentions, noun_before
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.documentation.qualifiers import sentences
from nornweave.disagree.facts.documentation.statements import Statement, is_empty_noun, statements
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import read_requirement

MAX_SENTENCES = 500
"""Of one paragraph; a longer one is a table or generated."""
_I = re.IGNORECASE
_ADJACENT = lazy_pattern(r"(?:[^\w.;]*\b(?!and\b|but\b|if\b|when\b|while\b|uses?\b)[a-z]+\b){0,5}[^\w.;]*$", _I)
"""What may stand between a name and what is stated of it: a few words of one clause."""
_PLAIN_LEAD = lazy_pattern(r"[\W_]*(?:[a-z]+\b[\W_]*){0,3}$", _I)
"""A clause that names nothing else than what its entry is about."""
_BREAK = lazy_pattern(r"[;:]\s|,\s|\s[-–—]\s|\b(?:but|while|and|whereas|although)\s", _I)


def prose_facts(page: Page, start: int, end: int, subject: Subject | None, *, headings: str = "") -> Iterator[Fact]:
    """Yield what the sentences of a stretch state.

    Args:
        subject: what the stretch is about (an entry, a heading), if that is known.
        headings: owner of what the sentences name themselves.
    """
    for sentence in sentences(page.text, start, end)[:MAX_SENTENCES]:
        yield from _sentence(page, sentence, subject, headings)


def _sentence(page: Page, sentence: tuple[int, int], subject: Subject | None, headings: str) -> Iterator[Fact]:
    told: set[tuple[str, str, str]] = set()
    named: list[Mention] | None = None
    for statement in statements(page.text, *sentence):
        named = mentions(page.text, *sentence) if named is None else named
        about = _about(page, statement, sentence, subject, headings, named)
        if about is None:
            continue
        key = (about.name, statement.attribute, statement.value.text)
        is_again = about is subject and not statement.is_line and any(one[:2] == key[:2] for one in told)
        if key in told or is_again:
            continue
        fact = page.fact(
            about, statement.attribute, statement.value, statement.start, statement.end, sentence=sentence,
            negated=statement.negated,
        )  # fmt: skip
        if fact is not None:
            told.add(key)
            yield fact
    if not told and (subject is None or subject.is_weak):
        yield from _topics(page, sentence, headings)


def _about(
    page: Page, statement: Statement, sentence: tuple[int, int], subject: Subject | None, owner: str,
    named: Sequence[Mention],
) -> Subject | None:  # fmt: skip
    """Decide what a statement is about; ``None`` if that is not clear enough."""
    strong = subject if subject is not None and not subject.is_weak else None
    if statement.name:
        if strong and statement.attribute == "requires":  # what one function or option needs
            return None
        return Subject(name=statement.name, form="sentence", owner=strong.path if strong else owner)
    text, begin, at = page.text, sentence[0], statement.start
    if statement.is_line and subject is not None:
        return subject
    if strong is not None and statement.attribute == "default" and text[max(begin, at - 1) : at] == "(":
        return strong  # ``rows of a page (default=100)``
    earlier = [one for one in named if one.end <= at]
    nearest = earlier[-1] if earlier else None
    if nearest and at - nearest.end < 80 and _ADJACENT.match(text[nearest.end : at]):
        is_same = subject is not None and words_of(nearest.name) == words_of(subject.name)
        return subject if is_same else Subject(name=nearest.name, form="sentence", owner=owner)
    lead = _BREAK.split(text[max(begin, at - 160) : at])[-1]
    if strong is not None:
        return strong if not statement.is_bound or _PLAIN_LEAD.match(lead) else None
    is_free = not statement.is_bound or re.search(r"\b(?:the|its)\s*$", lead, _I)
    if nearest and is_free and len({one.name for one in earlier}) == 1 and at - nearest.end <= 60:
        return Subject(name=nearest.name, form="sentence", owner=owner)
    noun = _noun_of(text, statement, begin, has_names=bool(named))
    return Subject(name=noun, form="topic", owner=owner) if noun else None


_IS_BEFORE = lazy_pattern(r"\s(?:is|are|=|of)\s+(?:set to\s+)?$", _I)


def _noun_of(text: str, statement: Statement, begin: int, *, has_names: bool) -> str:
    """Return the noun phrase before a statement that says what it is about; empty if none does."""
    before = _IS_BEFORE.sub("", text[begin : statement.start]).rstrip("*_ `(,")
    noun = noun_before(text, begin, begin + len(before))
    if statement.attribute == "status":  # ``the payment module answers 400``
        return "" if has_names or is_empty_noun(noun) else noun
    is_quantity = statement.attribute == "default" and noun and noun.split()[-1].lower() in QUANTITIES
    return noun if is_quantity else ""


_DIGIT = lazy_pattern(r"\d")
_UP_TO = r"(?: up to| at most| for| another| only| a maximum of| after| in| within| at| automatically){0,3}"
_OFTEN = "poll|scrape|refresh|check|send|sent|sync|flush|run|reload|update|collect|report"
# Noun of the quantity → the verb that says it; all but retries are counted in time.
_VERBS = tuple(
    (noun, lazy_pattern(rf"\b(?:{verb})\s+(?=\d)", _I))
    for noun, verb in (
        ("timeout", rf"(?:wait(?:s|ed|ing)?|(?:time[sd]?[ -]?out|timing out)(?= a| i)){_UP_TO}"),
        ("expiry", rf"expire[sd]?(?= a| i| w){_UP_TO}"),
        ("retention", r"(?:kept|retained|keeps?|retains?|stored)\b[^.,;\n]{0,30}?\bfor(?: up to| at most)?"),
        ("retries", rf"(?:retr(?:y|ies|ied)|attempts?|tries|tried)(?= u| a){_UP_TO}"),
        ("interval", rf"(?:{_OFTEN})(?:e?s|e?d)?\b[^.,;\n]{{0,40}}?\bevery"),
    )
)
_LINKED = lazy_pattern(
    r"(?:\b(?P<link>of|is|stays? at|remains?(?: at)?|equals)|=)\s+(?:only\s+|set to\s+|just\s+|about\s+)?(?=v?\d|\.\d)",
    _I,
)
_VERSION = lazy_pattern(r"v?\d{1,4}(?:\.\d{1,4}){1,3}\b|v\d{1,4}\b")
_SPEAKERS = frozenset(("we", "i", "it", "they", "you"))
_PASSIVE = lazy_pattern(r"\s+(?:is|are|was|were|be|been|will be|gets?)\s*$", _I)


def _topics(page: Page, sentence: tuple[int, int], headings: str) -> Iterator[Fact]:
    """Yield the quantities of a sentence whose noun says what they are; the owner is the heading."""
    if _DIGIT.search(page.text, *sentence) is None:
        return
    attribute: Attribute = "default" if "default" in page.text[slice(*sentence)].lower() else "value"
    for noun, whose, value, start, end in (*_of_verbs(page.text, sentence), *_of_nouns(page, sentence)):
        subject = Subject(name=noun, form="topic", owner=" > ".join(filter(None, (headings, whose))))
        fact = page.fact(subject, attribute, value, start, end, sentence=sentence)
        if fact is not None:
            yield fact


def _of_verbs(text: str, sentence: tuple[int, int]) -> Iterator[tuple[str, str, Value, int, int]]:
    """Yield noun, owner, value and place of what a verb says: ``tokens expire after 5 days``."""
    for noun, pattern in _VERBS:
        match = pattern.search(text, *sentence)
        found = number_at(text, match.end(), sentence[1]) if match else None
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
