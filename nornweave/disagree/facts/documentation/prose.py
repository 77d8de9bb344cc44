"""Templates of sentences: required versions, returned statuses, quantities in plain words.

``waits 30 seconds``, ``retried at most 3 times`` and ``batch size of 256`` need no announcing word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.disagree.facts.documentation.naming import QUANTITIES, noun_before
from nornweave.disagree.facts.documentation.tokens import tokens_of
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import PRODUCTS, read_requirement

_I = re.IGNORECASE


class Stated(NamedTuple):
    """A statement of a sentence. If ``name`` is empty, it is about the name before it or the sentence's subject."""

    attribute: Attribute
    name: str
    value: Value
    start: int
    end: int
    owner: str = ""


_REQUIRES = lazy_pattern(
    r"\b(?:(?P<strict>requires?|required|needs?|must have|prerequisites?)|supports?|compatible with|runs on"
    r"|works (?:with|on)|accepts|allows)(?![\w-])[\s:`*_\[(]{1,6}"
    r"(?:(?:an?|the|only|minimum|recent|officially|installed|either)\s+){0,3}(?P<thing>\.?[a-z][\w.]{0,20}\b)?[\s`(\"']{0,3}"
    r"(?:(?:js|sdk|engine|runtime|framework|core|api|level|versions?)\s+){0,3}"
    r"(?P<version>(?:at least |[<>=~^≥]{1,2}\s?)?v?\d{1,4}(?:\.(?:\d{1,4}|x)){0,3}(?![\w%])\+?"
    r"(?:,? (?:or|and) (?:newer|later|above|higher|up|greater|more recent))?)", _I,
)  # fmt: skip
_STATUS = lazy_pattern(
    r"\b(?:returns?|responds?|repl(?:y|ies)|answers?|served?|serves|sends?|fails?|rejects?|gets?|receives?|results? in"
    r"|status code)\b[^.;\n]{0,50}?(?<![\d.])([1-5]\d\d)\b"
    r"(?![.\d%:]|\s?(?:ms|seconds?|bytes|milliseconds|items|requests|MB|KB|characters))", _I,
)  # fmt: skip


def stated(text: str, start: int, end: int) -> Iterator[Stated]:
    """Yield the requirements and statuses that a sentence states.

    ``requires Python 3.8 or newer``, ``engines.node accepts >=16``, ``responds with a 404``, ``served as 301 Found``.
    """
    for match in _REQUIRES.finditer(text, start, end):
        requirement, thing = read_requirement(match["version"]), PRODUCTS.get((match["thing"] or "").lower(), "")
        is_told = thing or (not match["thing"] and not match["version"][0].isalnum())
        if requirement and is_told and (requirement.is_open or match["strict"]):
            yield Stated("requires", thing, Value("version", str(requirement)), match.start(), match.end())
    for match in _STATUS.finditer(text, start, end):
        yield Stated("status", "", Value("status", match[1]), match.start(), match.end())


_DIGIT = lazy_pattern(r"\d")
_UP_TO = r"(?: up to| at most| for| another| only| a maximum of| after| in| within| at| automatically){0,3}"
# Noun of the quantity → the verb that says it; all but retries are counted in time.
_VERBS = tuple(
    (noun, lazy_pattern(rf"\b(?:{verb})\s+(?=\d)", _I))
    for noun, verb in (
        ("timeout", rf"(?:wait(?:s|ed|ing)?|(?:time[sd]?[ -]?out|timing out)(?= a| i)){_UP_TO}"),
        ("retention", r"(?:kept|retained|keeps?|retains?|stored)\b[^.,;\n]{0,30}?\bfor(?: up to| at most)?"),
        (
            "retries",
            rf"(?:retr(?:y|ies|ied)|attempts?|tries|tried)(?= u| a){_UP_TO}(?=\s+\d+ (?:times|attempts|retries))",
        ),
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


def quantities(text: str, start: int, end: int, *, is_page: bool) -> Iterator[Stated]:
    """Yield the quantities of a sentence whose noun is known. If ``is_page``, vague ones (``of 64``) do not count.

    ``events are kept for 5 days``, ``batch size of 64``, ``the API version is v2.1``.
    """
    if _DIGIT.search(text, start, end) is None:
        return
    attribute: Attribute = "default" if "default" in text[start:end].lower() else "value"
    for noun, pattern in _VERBS:
        match = pattern.search(text, start, end)
        found = _number_at(text, match.end(), end) if match else None
        if match and found and found[0].unit == (None if noun == "retries" else "s"):
            yield Stated(attribute, noun, found[0], match.start(), found[1], _whose(text, start, match, noun))
    for match in _LINKED.finditer(text, start, end):
        link, noun = (match["link"] or "").lower(), noun_before(text, start, match.start())
        if (link == "of" and is_page) or not noun or words_of(noun)[-1:] == () or words_of(noun)[-1] not in QUANTITIES:
            continue
        found = (_version_at if noun.lower().endswith("version") else _number_at)(text, match.end(), end)
        is_vague = found and found[0].unit is None and link == "is" and len(noun.split()) == 1 and is_page
        if found is not None and not is_vague:
            yield Stated(attribute, noun, found[0], match.start(), found[1])


def _whose(text: str, start: int, verb: re.Match[str], noun: str) -> str:
    """Return the subject of a verb (*events* are kept for) or, if that is a speaker, its object (we keep *events* for).

    The result is empty for a timeout.
    """
    if noun == "timeout":
        return ""
    lead = _PASSIVE.sub("", text[start : verb.start()])
    whose = noun_before(text, start, start + len(lead))
    if whose and whose.lower() not in _SPEAKERS:
        return whose
    return noun_before(text, verb.start(), verb.start() + max(0, verb[0].rfind(" for")))


def _version_at(text: str, at: int, end: int) -> tuple[Value, int] | None:
    match = _VERSION.match(text, at, end)
    requirement = read_requirement(match[0]) if match else None
    return (Value("version", str(requirement)), match.end()) if match and requirement else None


def _number_at(text: str, at: int, end: int) -> tuple[Value, int] | None:
    """Return the number that begins at ``at``, and its end; ``None`` without one, or if it begins a date or a range."""
    token = next(tokens_of(text[at:end]), None)
    if token is None or token.value is None or token.value.kind != "number":
        return None
    return None if _GOES_ON.match(text, at + token.end, end) else (token.value, at + token.end)
