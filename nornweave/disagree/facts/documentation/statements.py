"""Find the words that announce a statement (``default``, ``requires``, ``HTTP``), and read the value near them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.disagree.facts.documentation.literals import value_at, value_before, whole_value
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of
from nornweave.disagree.facts.values import TRUE, Value
from nornweave.disagree.facts.versions import PRODUCTS, read_requirement

MAX_STATED = 20
"""Statements of one sentence; one with more is a table or generated."""
_I = re.IGNORECASE
# Lower case, as the text that is searched; the name of a group is that of its reader.
_ANNOUNCES = lazy_pattern(
    r"\b(?:(?P<default>default(?:s|ed|ing)?\b)"
    r"|(?P<requires>(?:requires?|needs?|must have|supports?|compatible with|runs on|works with|works on|accepts|allows"
    r"|prerequisites?|required)(?![\w-]))"
    r"|(?P<status>(?:http|status(?: code)?|error code|response code|(?:responds?|repl(?:y|ies)|answers?|fails?) with)\b"
    r"|[1-5]\d\d(?= [a-z])))"
)
# What tells quickly that a stretch has none of them; the most frequent come first.
_STEMS = (
    "default", "require", "status", "http", "need", "must have", "support", "compatible", "runs on", "works", "accepts",
    "allows", "prerequisite", "error", " code", " with",
)  # fmt: skip
_NUMBERED = lazy_pattern(r"\b[1-5]\d\d [a-z]")
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


def lowered(text: str) -> str:
    """Return a text in lower case, of the same length."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def announced(lower: str, start: int, end: int) -> bool:
    """Tell quickly whether anything may be stated in a stretch of lower-case text."""
    part = lower[start:end]
    for stem in _STEMS:  # a loop: three times as fast as ``any`` over a generator
        if stem in part:
            return True
    return _NUMBERED.search(part) is not None


def statements(text: str, lower: str, start: int, end: int) -> Iterator[Statement]:
    """Yield what one sentence says, in order; the same attribute is read from one value only once."""
    seen: set[tuple[str, int]] = set()
    for match in _ANNOUNCES.finditer(lower, start, end):
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
    r"(?:\s+(?:values?|settings?))?[*_\"`”]{0,4}\s*(?P<link>:|=|\bis set to\b|\bis just\b|\bis\b|\bare\b|\bto\b"
    r"|\bof\b|\bbeing\b|-|–|—)?"
    r"(?:(?<=[:=])|(?!\w))[*_]{0,3}\s*", _I,
)  # fmt: skip
_OF_NAME = lazy_pattern(
    r"(?:\s+values?)?(?:\s+(?:of|for))?(?:\s+the)?\s+(?:`{1,2}(?P<span>[\w.-]{3,60})`{1,2}"
    r"|(?P<bare>[a-z]\w{0,40}(?:_|[a-z][A-Z])\w{1,40}))(?:\s+(?:option|setting|parameter|flag))?(?=\s*[:=]|\s+(?:is|of)\b)"
)
_NEGATION = lazy_pattern(r"(?<!or )\b(?:not|n't|never|no longer|doesn't|isn't)\s+(?:\w+\s+)?$", _I)


def _default(text: str, start: int, end: int, match: re.Match[str]) -> Statement | None:
    """Read the value behind ``default``, or the one before it: ``defaults to 5``, ``5 by default``, ``5 (default)``."""
    (at, stop), word = match.span(), match[0]
    is_by = text[max(start, at - 3) : at].lower() in {"by ", "by\n"}
    if is_by:
        base = Statement(attribute="default", value=TRUE, start=at - 3, end=stop, is_bound=True)
        return _value_first(text, start, base) or _after_by_default(text, end, replace(base, is_bound=False))
    is_line = word == "default" and _LINE_START.match(text[max(text.rfind("\n", 0, at) + 1, at - 60) : at])
    negated = bool(_NEGATION.search(text[max(start, at - 20) : at]))
    base = Statement(attribute="default", value=TRUE, start=at, end=stop, negated=negated, is_line=bool(is_line))
    following = text[stop : stop + 16].lstrip("*_ ")
    may_end = word == "default" and (following[:1] in {"", *").,;]\n"} or _GOES_ON.match(following))
    return _linked(text, end, base, word) or (_value_first(text, start, base) if may_end else None)


def _linked(text: str, end: int, base: Statement, word: str) -> Statement | None:
    """Read on from the word: its value stands behind it."""
    named_by = _OF_NAME.match(text, base.end, end)
    name = identifier_of(named_by["span"] or named_by["bare"]) if named_by else ""
    link = _LINK.match(text, named_by.end() if named_by and name else base.end, end)
    sign = (link["link"] or "").lower() if link else ""
    is_aside = text[max(0, base.start - 1) : base.start] == "("  # ``(Defaults 10)``
    if link is None or (word == "defaults" and sign not in {"to", ":", "=", "of", "is"} and not is_aside):
        return None
    found = value_at(text, link.end(), end, words=bool(sign))
    if found is not None and not _runs_on(text, found, end, linked=bool(sign)):
        return replace(base, value=found[0], end=found[2], is_bound=word != "default", name=name)
    line_end = text.find("\n", link.end(), end)
    rest = text[link.end() : line_end if line_end >= 0 else end]
    value = whole_value(rest.partition(". ")[0]) if base.is_line and sign in {":", "="} else None
    return replace(base, value=value, end=link.end() + len(rest.partition(". ")[0])) if value else None


def _runs_on(text: str, found: tuple[Value, int, int], end: int, *, linked: bool) -> bool:
    """Tell whether what looks like a value is the beginning of something else: ``default on the server``."""
    value, start, stop = found
    if re.match(r"\s*[+*/](?:\s|\d)|\(\w|\.\w", text[stop : min(end, stop + 12)]):
        return True
    if linked:
        return False
    rest = text[stop : min(end, stop + 400)].lstrip()
    if value.kind == "number" and value.unit is None and rest[:1].isalpha():
        return True  # ``the default 404 handler``
    if value.kind == "string" and not re.match(r"[.;)\](]|,(?!\s*`)|$", rest):
        return True
    return value.kind in {"boolean", "none"} and text[start] != "`"


_GOES_ON = lazy_pattern(r"(?:of|for|in|and|but|while)\b")
_GIVEN_BEFORE = lazy_pattern(
    r"(?:\s*(?:\(|,|—|–|-))?\s*(?:\(?(?:is|as|being|which is|the|its|a|by|current|overall"
    r"|\w+'s)\s+){0,3}(?:[\w-]+\s+)?$", _I,
)  # fmt: skip


def _value_first(text: str, start: int, base: Statement) -> Statement | None:
    """Read ``None as its default``, ``the 5 second default``, ``30 seconds (the server default)``, ``5 by default``."""
    at = base.start
    window = max(start, at - 40)
    lead = None if base.is_bound else _GIVEN_BEFORE.search(text[window:at])
    found = value_before(text, start, at) or (value_before(text, start, window + lead.start()) if lead else None)
    is_read = found is not None and (base.is_bound or found[0].kind != "list")
    return replace(base, value=found[0], start=found[1], is_line=False) if found and is_read else None


_VERB = lazy_pattern(r"\b(?:is set to|is|are|will be|uses?|set to|has|have|was|gets?|=)(?=\s)", _I)
_AFTER_BY = lazy_pattern(
    r"\s*[,:]?\s*(?:\(|(?:it|this|they|the value|the setting|that)\s+(?:is|are|was)\s+(?:set to\s+)?)?", _I
)


def _after_by_default(text: str, end: int, base: Statement) -> Statement | None:
    """Read what follows: ``by default 5``, ``by default it is `x```."""
    skipped = _AFTER_BY.match(text, base.end, end)
    found = value_at(text, skipped.end() if skipped else base.end, end)
    if found is None or (CODE.match(text, found[1]) and _VERB.match(text[found[2] : found[2] + 20].lstrip())):
        return None
    is_loose = found[0].kind in {"boolean", "none"} and text[found[1]] != "`"
    if is_loose and not re.match(r"\s*(?:[.,;)]|$)", text[found[2] : min(end, found[2] + 8)]):
        return None
    return replace(base, value=found[0], end=found[2])


_PRODUCT = lazy_pattern(
    r"[\s:`*_\[(]{1,6}(?:(?:an?|the|only|at least|minimum|recent|officially|installed|either)\s+){0,3}"
    r"`{0,2}(?P<thing>[A-Za-z][\w.+#]{0,30}(?:[ -](?:JS|SDK|Server|JDK|JRE))?)`{0,2}[\s(]{1,3}(?:versions?\s+|v)?"
    r"(?P<version>(?:at least |>=|=>|>|~=|~>|\^|==|≥|=)?\s?v?\d{1,4}(?:\.(?:\d{1,4}|x)){0,3}(?![\w%])\+?"
    r"(?:,? (?:or|and) (?:newer|later|above|higher|up|greater|more recent))?)"
)
_SPECIFIER = lazy_pattern(r"\s+`{0,2}[\"']?((?:>=|<=|>|<|\^|~>?|==)\s?v?\d{1,4}(?:\.\d{1,4}){0,3})")
_NO_VERSION_AFTER = lazy_pattern(
    r"\s*(?:%|(?:ms|s|seconds?|minutes?|hours?|days?|bytes?|[KMGT]i?B|times|arguments?|parameters?"
    r"|or more (?!recent))\b)", _I,
)  # fmt: skip
_STRICT = ("require", "need", "must", "minimum", "at least", "prereq")


def _requires(text: str, _start: int, end: int, match: re.Match[str]) -> Statement | None:
    """Read ``requires Python 3.8 or newer``, ``must have Node.js 22``, ``engines.node accepts >=16``."""
    found = _PRODUCT.match(text, match.end(), end)
    bare = _SPECIFIER.match(text, match.end(), end) if found is None else None
    if bare is not None and (requirement := read_requirement(bare[1])):
        value = Value("version", str(requirement))
        return Statement(attribute="requires", value=value, start=match.start(), end=bare.end(1), is_bound=True)
    if found is None or _NO_VERSION_AFTER.match(text, found.end(), end):
        return None
    is_strict = match[0].startswith(_STRICT)
    is_open = bool(re.search(r"[+>≥^~]|or |and ", found["version"]))
    requirement = read_requirement(found["version"])
    thing = PRODUCTS.get(found["thing"].lower(), "")
    if not thing and is_strict and found["thing"][0].isupper() and (is_open or "." in found["version"]):
        thing = found["thing"]
    if requirement is None or not thing or not (is_strict or is_open):
        return None
    value = Value("version", str(requirement))
    return Statement(attribute="requires", value=value, start=match.start(), end=found.end(), name=thing)


_CODE_NUMBER = lazy_pattern(
    r"[\s:=(*_]{0,4}(?:(?:an?|the|of|is|with|status|code|error|HTTP)\s+|\(){0,5}`{0,2}([1-5]\d\d)\b"
    r"(?![.\d%:]|\s?(?:ms|seconds?|bytes|milliseconds|items|requests|MB|KB|characters))", _I,
)  # fmt: skip
_NUMBER_BEFORE = lazy_pattern(
    r"(?<![\d.])`{0,2}([1-5]\d\d)(?: [A-Z][A-Za-z ]{1,25})?`{0,2}\s+(?:HTTP\s+)?(?:error\s+|response\s+)?$"
)
_REASON = lazy_pattern(
    r" (?:status|error|response|OK|Not |Bad |Found|Moved |Created|Accepted|No |Unau|Unpr|Forb|Inte|Conf|Too "
    r"|Gone|Serv|Pay|Gate|Temp|Perm)"
)
_STATUS_VERB = lazy_pattern(
    r"\b(?:returns?|responds?|repl(?:y|ies)|answers?|served|serves?|sends?|fails?|rejects?|gets?|receives?"
    r"|results? in|status code)\b", _I,
)  # fmt: skip
_POSSIBLE = lazy_pattern(r"\b(?:can|could|may|might|to)\s+(?:also\s+)?$", _I)


def _status(text: str, start: int, end: int, match: re.Match[str]) -> Statement | None:
    """Read ``responds with a 404``, ``HTTP 400``, ``served with a `301 Found` status code``."""
    at, stop = match.span()
    number = match[0] if match[0].isdigit() and _REASON.match(text, stop, end) else ""
    if not match[0].isdigit():
        after = _CODE_NUMBER.match(text, stop, end)
        window = max(start, at - 50)
        before = None if after else _NUMBER_BEFORE.search(text[window:at])
        if after is not None:
            number, stop = after[1], after.end(1)
        elif before is not None:
            number, at = before[1], window + before.start()
    verbs = list(_STATUS_VERB.finditer(text, max(start, at - 80), stop)) if number else []
    if not verbs or _POSSIBLE.search(text[max(start, verbs[-1].start() - 12) : verbs[-1].start()]):
        return None
    at = min(at, verbs[-1].start())
    return Statement(attribute="status", value=Value("status", number), start=at, end=stop, is_bound=True)


_READERS: dict[str, Callable[[str, int, int, re.Match[str]], Statement | None]] = {
    "default": _default,
    "requires": _requires,
    "status": _status,
}
