"""Find the words that announce a statement (``default``, ``requires``, ``HTTP``), and read the value near them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.disagree.facts.documentation.literals import value_at, value_before, whole_value
from nornweave.disagree.facts.documentation.naming import identifier_of
from nornweave.disagree.facts.values import TRUE, Value
from nornweave.disagree.facts.versions import PRODUCTS, read_requirement

MAX_STATED = 20
"""Statements of one sentence; one with more is a table or generated."""
_I = re.IGNORECASE
# The name of a group is that of its reader.
_ANNOUNCES = lazy_pattern(
    r"\b(?:(?P<default>default(?:s|ed|ing)?\b)"
    r"|(?P<requires>(?:requires?|needs?|must have|supports?|compatible with|runs on|works with|works on|accepts|allows"
    r"|prerequisites?|required)(?![\w-]))"
    r"|(?P<status>(?:http|status(?: code)?|error code|response code|(?:responds?|repl(?:y|ies)|answers?|fails?) with)\b"
    r"|[1-5]\d\d(?= [a-z])))", _I,
)  # fmt: skip
_EMPTY_NOUNS = frozenset("value values setting behavior behaviour one option it this which configuration".split())  # noqa: SIM905
_LINE_START = lazy_pattern(r"[ \t>*_+•#\d.)(-]*$")
"""What may stand before the first word of a line: marks of quotes, lists and emphasis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A value that a text gives to an attribute of something that is not known yet.

    Attributes:
        start: of what announces it; ``end`` behind the value.
        name: what it says itself that it is about, as it is written; empty: its subject has to be looked for.
        is_line: a line of its own (``Default: 5``), not a part of a sentence.
        is_bound: it can only be about the name right before it (``x must be at least 5``), or about the entry it is in.
    """

    attribute: Attribute
    value: Value
    start: int
    end: int
    name: str = ""
    is_line: bool = False
    is_bound: bool = False
    negated: bool = False


def statements(text: str, start: int, end: int) -> Iterator[Statement]:
    """Yield what one sentence says, in order; the same attribute is read from one value only once."""
    seen: set[tuple[str, int]] = set()
    for match in _ANNOUNCES.finditer(text, start, end):
        kind = match.lastgroup or ""
        if kind != "status" and text.count("`", start, match.start()) % 2:
            continue  # inside of code
        one = _READERS[kind](text, start, end, match)
        if one is not None and (one.attribute, one.end) not in seen and len(seen) < MAX_STATED:
            seen.add((one.attribute, one.end))
            yield one


def is_empty_noun(phrase: str) -> bool:
    """Tell whether a noun phrase names nothing (``the default value``)."""
    return not phrase or phrase.split()[-1].lower() in _EMPTY_NOUNS


_LINK = lazy_pattern(
    r"(?:\s+(?:values?|settings?))?[*_\"`”]{0,4}\s*"
    r"(?P<link>:|=|\bis (?:set to|just)\b|\b(?:is|are|to|of|being)\b|-|–|—)?"
    r"(?:(?<=[:=])|(?!\w))[*_]{0,3}\s*", _I,
)  # fmt: skip
_OF_NAME = lazy_pattern(
    r"(?:\s+values?)?(?:\s+(?:of|for))?(?:\s+the)?\s+(?:`{1,2}(?P<span>[\w.-]{3,60})`{1,2}"
    r"|(?P<bare>[a-z]\w{0,40}(?:_|[a-z][A-Z])\w{1,40}))(?:\s+(?:option|setting|parameter|flag))?(?=\s*[:=]|\s+(?:is|of)\b)"
)
_NEGATION = lazy_pattern(r"(?<!or )\b(?:not|n't|never|no longer|doesn't|isn't)\s+(?:\w+\s+)?$", _I)
_ENDS = lazy_pattern(r"[*_ ]*(?:$|[).,;\]\n]|(?:of|for|in|and|but|while)\b)")
"""What follows ``default`` where its value stands before it."""
_GIVEN_BEFORE = lazy_pattern(
    r"(?:\s*(?:\(|,|—|–|-))?\s*(?:\(?(?:is|as|being|which is|the|its|a|by|current|overall"
    r"|\w+'s)\s+){0,3}(?:[\w-]+\s+)?$", _I,
)  # fmt: skip
_AFTER_BY = lazy_pattern(
    r"\s*[,:]?\s*(?:\(|(?:it|this|they|the value|the setting|that)\s+(?:is|are|was)\s+(?:set to\s+)?)?", _I
)
_BY = lazy_pattern(r"\bby\s$", _I)


def _default(text: str, start: int, end: int, match: re.Match[str]) -> Statement | None:
    """Read the value behind ``default``, or the one before it: ``defaults to 5``, ``5 by default``, ``5 (default)``."""
    (at, stop), word = match.span(), match[0].lower()
    base = Statement(attribute="default", value=TRUE, start=at, end=stop)
    if _BY.search(text[max(start, at - 4) : at]):
        base = replace(base, start=at - 3)
        return _value_first(text, start, replace(base, is_bound=True)) or _linked(text, end, base, _AFTER_BY)
    is_line = word == "default" and _LINE_START.match(text[max(text.rfind("\n", 0, at) + 1, at - 60) : at])
    negated = bool(_NEGATION.search(text[max(start, at - 20) : at]))
    base = replace(base, negated=negated, is_line=bool(is_line), is_bound=word != "default")
    named_by = _OF_NAME.match(text, stop, end)
    name = identifier_of(named_by["span"] or named_by["bare"]) if named_by else ""
    if named_by and name:
        base = replace(base, name=name, end=named_by.end())
    said = _linked(text, end, base, _LINK)
    is_last = word == "default" and _ENDS.match(text, stop, end)
    return said or (_value_first(text, start, replace(base, name="")) if is_last else None)


def _linked(text: str, end: int, base: Statement, pattern: re.Pattern[str]) -> Statement | None:
    """Read on from the word: its value stands behind it."""
    link = pattern.match(text, base.end, end)
    if link is None:
        return None
    sign = (link.groupdict().get("link") or "").lower()
    is_aside = text[max(0, base.start - 1) : base.start] == "("  # ``(Defaults 10)``
    is_verb = text[base.start : base.end].lower() == "defaults"
    if is_verb and sign not in {"to", ":", "=", "of", "is"} and not is_aside:
        return None
    found = value_at(text, link.end(), end, words=bool(sign) or pattern is _AFTER_BY)
    is_closed = pattern is _AFTER_BY and found is not None and text[found[2] : found[2] + 1] in {"", *".,;)\n"}
    if found is not None and (sign or is_closed or not _runs_on(text, found, end)):
        return replace(base, value=found[0], end=found[2])
    rest = text[link.end() : end].partition("\n")[0].partition(". ")[0]
    is_whole = sign in {":", "="} and (base.is_line or rest[:1].isdigit())  # ``Default: 30 * time.Second``
    value = whole_value(rest) if is_whole else None
    return replace(base, value=value, end=link.end() + len(rest)) if value else None


def _runs_on(text: str, found: tuple[Value, int, int], end: int) -> bool:
    """Tell whether what looks like a value is the beginning of something else: ``default on the server``."""
    value, start, stop = found
    rest = text[stop : min(end, stop + 400)].lstrip()
    if value.kind == "number":  # ``the default 404 handler``
        return value.unit is None and rest[:1].isalpha()
    return text[start] not in "`\"'[" or (value.kind == "string" and not re.match(r"[.;)\](]|,(?!\s*`)|$", rest))


def _value_first(text: str, start: int, base: Statement) -> Statement | None:
    """Read ``None as its default``, ``the 5 second default``, ``30 seconds (the server default)``, ``5 by default``."""
    window = max(start, base.start - 40)
    lead = None if base.is_bound else _GIVEN_BEFORE.search(text[window : base.start])
    found = value_before(text, start, base.start) or (
        value_before(text, start, window + lead.start()) if lead else None
    )
    return replace(base, value=found[0], start=found[1], is_line=False) if found else None


_PRODUCT = lazy_pattern(
    r"[\s:`*_\[(]{1,6}(?:(?:an?|the|only|at least|minimum|recent|officially|installed|either)\s+){0,3}"
    r"`{0,2}(?P<thing>[A-Za-z][\w.+#]{0,30}(?:[ -](?:JS|SDK|Server|JDK|JRE))?)`{0,2}[\s(]{1,3}(?:versions?\s+|v)?"
    r"(?P<version>(?:at least |>=|=>|>|~=|~>|\^|==|≥|=)?\s?v?\d{1,4}(?:\.(?:\d{1,4}|x)){0,3}(?![\w%])\+?"
    r"(?:,? (?:or|and) (?:newer|later|above|higher|up|greater|more recent))?)"
    r"(?!\s*(?i:%|(?:ms|s|seconds?|minutes?|hours?|days?|bytes?|[KMGT]i?B|times|arguments?|parameters?)\b))"
)
_SPECIFIER = lazy_pattern(r"\s+`{0,2}[\"']?((?:>=|<=|>|<|\^|~>?|==)\s?v?\d{1,4}(?:\.\d{1,4}){0,3})")
_STRICT = ("require", "need", "must", "minimum", "at least", "prereq")


def _requires(text: str, _start: int, end: int, match: re.Match[str]) -> Statement | None:
    """Read ``requires Python 3.8 or newer``, ``must have Node.js 22``, ``engines.node accepts >=16``."""
    found = _PRODUCT.match(text, match.end(), end)
    written = found or _SPECIFIER.match(text, match.end(), end)
    requirement = read_requirement(written["version"] if found else written[1]) if written else None
    if written is None or requirement is None:
        return None
    value = Value("version", str(requirement))
    base = Statement(attribute="requires", value=value, start=match.start(), end=written.end(), is_bound=not found)
    if found is None:
        return base
    is_strict = match[0].lower().startswith(_STRICT)
    is_open = bool(re.search(r"[+>≥^~]|or |and ", found["version"]))
    thing = PRODUCTS.get(found["thing"].lower(), "")
    if not thing and is_strict and found["thing"][0].isupper() and (is_open or "." in found["version"]):
        thing = found["thing"]
    return replace(base, name=thing) if thing and (is_strict or is_open) else None


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


def _status(text: str, start: int, end: int, match: re.Match[str]) -> Statement | None:
    """Read ``responds with a 404``, ``answers HTTP 400``, ``served with a `301 Found` status code``."""
    if match[0].isdigit() and not _REASON.match(text, match.end(), end):
        return None
    found = _STATUS.search(text, max(start, match.start() - 80), min(end, match.end() + 40))
    if found is None or _POSSIBLE.search(text[max(start, found.start() - 12) : found.start()]):
        return None
    value = Value("status", found[1])
    return Statement(attribute="status", value=value, start=found.start(), end=found.end(1), is_bound=True)


_READERS: dict[str, Callable[[str, int, int, re.Match[str]], Statement | None]] = {
    "default": _default,
    "requires": _requires,
    "status": _status,
}
