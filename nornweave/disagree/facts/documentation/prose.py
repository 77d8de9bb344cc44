"""Extract facts from sentences: what each states and about which thing; and quantities in plain words.

``waits 30 seconds``, ``retried at most 3 times`` and ``batch size of 256`` need no word that announces them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact
from nornweave.disagree.facts.documentation.naming import QUANTITIES, identifier_of, noun_before
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.documentation.tokens import tokens_of
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import PRODUCTS, read_requirement

_I = re.IGNORECASE
_ADJACENT = lazy_pattern(r"(?:[^\w.;]*\b(?!and\b|but\b|if\b|when\b|while\b|uses?\b)[a-z]+\b){0,5}[^\w.;]*$", _I)
"""What may stand between a name and what is stated of it: a few words of one clause."""


def sentence_facts(
    page: Page, sentence: tuple[int, int], subject: Subject | None, owner: str, *, has_default: bool
) -> Iterator[Fact]:
    """Yield the requirements, statuses and quantities that a sentence states.

    Args:
        subject: what it is about (an entry, a heading), if that is known.
        owner: of what the sentence names itself.
        has_default: it states a default: then its quantities are this.
    """
    strong = subject if subject is not None and not subject.is_weak else None
    for attribute, name, value, start, end in (*_required(page.text, *sentence), *_statuses(page.text, *sentence)):
        about = strong
        if name and strong:  # what one function or option needs
            continue
        if name or (noun := _name_before(page.text, sentence[0], start)):
            about = Subject(name=name or noun, form="sentence", owner=owner)
        elif strong is None and attribute == "status" and (noun := noun_before(page.text, sentence[0], start)):
            about = Subject(name=noun, form="topic", owner=owner)
        fact = page.fact(about, attribute, value, start, end, sentence=sentence) if about else None
        if fact is not None:
            yield fact
            has_default = True
    if not has_default and strong is None:
        yield from _topics(page, sentence, owner)


def _name_before(text: str, begin: int, at: int) -> str:
    """Return the name that is mentioned right before a place; empty if none is."""
    *_, last = ("", *(one for one in tokens_of(text[begin:at]) if one.quoted or one.is_identifier))
    return identifier_of(last.name) if last and _ADJACENT.match(text, begin + last.end, at) else ""


_PRODUCT = lazy_pattern(
    r"[\s:`*_\[(]{1,6}(?:(?:an?|the|only|at least|minimum|recent|officially|installed|either)\s+){0,3}"
    r"`{0,2}(?P<thing>[A-Za-z][\w.+#]{0,30}(?:[ -](?:JS|SDK|Server|JDK|JRE))?)`{0,2}[\s(]{1,3}(?:versions?\s+|v)?"
    r"(?P<version>(?:at least |>=|=>|>|~=|~>|\^|==|≥|=)?\s?v?\d{1,4}(?:\.(?:\d{1,4}|x)){0,3}(?![\w%])\+?"
    r"(?:,? (?:or|and) (?:newer|later|above|higher|up|greater|more recent))?)"
    r"(?!\s*(?i:%|(?:ms|s|seconds?|minutes?|hours?|days?|bytes?|[KMGT]i?B|times|arguments?|parameters?)\b))"
)
_SPECIFIER = lazy_pattern(r"\s+`{0,2}[\"']?((?:>=|<=|>|<|\^|~>?|==)\s?v?\d{1,4}(?:\.\d{1,4}){0,3})")
_STRICT = ("require", "need", "must", "minimum", "at least", "prereq")


_REQUIRES = lazy_pattern(
    r"\b(?:requires?|needs?|must have|supports?|compatible with|runs on|works with|works on|accepts|allows"
    r"|prerequisites?|required)(?![\w-])", _I,
)  # fmt: skip
_Stated = tuple[Attribute, str, Value, int, int]


def _required(text: str, start: int, end: int) -> Iterator[_Stated]:
    """Read ``requires Python 3.8 or newer``, ``must have Node.js 22``, ``engines.node accepts >=16``."""
    for match in _REQUIRES.finditer(text, start, end):
        found = _PRODUCT.match(text, match.end(), end)
        written = found or _SPECIFIER.match(text, match.end(), end)
        requirement = read_requirement(written["version"] if found else written[1]) if written else None
        if written is None or requirement is None:
            continue
        thing = ""
        if found:
            is_strict = match[0].lower().startswith(_STRICT)
            is_open = bool(re.search(r"[+>≥^~]|or |and ", found["version"]))
            thing = PRODUCTS.get(found["thing"].lower(), "")
            if not thing and is_strict and found["thing"][0].isupper() and (is_open or "." in found["version"]):
                thing = found["thing"]
            if not thing or not (is_strict or is_open):
                continue
        yield "requires", thing, Value("version", str(requirement)), match.start(), written.end()


_ANNOUNCED = lazy_pattern(
    r"\b(?:(?:http|status(?: code)?|error code|response code|(?:responds?|repl(?:y|ies)|answers?|fails?) with)\b"
    r"|[1-5]\d\d(?= [a-z]))", _I,
)  # fmt: skip
_STATUS = lazy_pattern(
    r"\b(?:returns?|responds?|repl(?:y|ies)|answers?|served?|serves|sends?|fails?|rejects?|gets?|receives?|results? in"
    r"|status code)\b[^.;\n]{0,50}?(?<![\d.])([1-5]\d\d)\b"
    r"(?![.\d%:]|\s?(?:ms|seconds?|bytes|milliseconds|items|requests|MB|KB|characters))", _I,
)  # fmt: skip
_REASON = lazy_pattern(
    r" (?:status|error|response|OK|Not |Bad |Found|Moved |Created|Accepted|No |Unau|Unpr|Forb|Inte|Conf|Too "
    r"|Gone|Serv|Pay|Gate|Temp|Perm)"
)
_POSSIBLE = lazy_pattern(r"\b(?:can|could|may|might|to)\s+(?:also\s+)?$", _I)


def _statuses(text: str, start: int, end: int) -> Iterator[_Stated]:
    """Read ``responds with a 404``, ``answers HTTP 400``, ``served with a `301 Found` status code``."""
    seen = -1
    for match in _ANNOUNCED.finditer(text, start, end):
        if match[0].isdigit() and not _REASON.match(text, match.end(), end):
            continue
        found = _STATUS.search(text, max(start, match.start() - 80), min(end, match.end() + 40))
        if (
            found is None
            or found.end(1) == seen
            or _POSSIBLE.search(text[max(start, found.start() - 12) : found.start()])
        ):
            continue
        seen = found.end(1)
        yield "status", "", Value("status", found[1]), found.start(), seen


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
_GOES_ON = lazy_pattern(r"\.\d|[/:]\d|\s?(?:[-–—]|to)\s?\d|\.x\b|\^|-per-|\s[+*/]\s|\w")
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
        found = _number_at(text, match.end(), sentence[1]) if match else None
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
        return _number_at(text, at, end)
    match = _VERSION.match(text, at, end)
    requirement = read_requirement(match[0]) if match else None
    return (Value("version", str(requirement)), match.end()) if match and requirement else None


def _number_at(text: str, at: int, end: int) -> tuple[Value, int] | None:
    """Read a number with its unit; ``None`` for a part of a date, a version, a range or a multiple."""
    token = next(tokens_of(text[at:end]), None)
    if token is None or token.value is None or token.value.kind != "number":
        return None
    return None if _GOES_ON.match(text, at + token.end, end) else (token.value, at + token.end)
