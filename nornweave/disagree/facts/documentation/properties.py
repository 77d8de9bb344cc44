"""Read required versions and HTTP statuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.statement import Statement
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import PRODUCTS, read_requirement

_I = re.IGNORECASE
_PRODUCT = lazy_pattern(
    r"[\s:`*_\[(]{1,6}(?:(?:an?|the|only|at least|minimum|recent|officially|installed|either)\s+){0,3}"
    r"`{0,2}(?P<thing>[A-Za-z][\w.+#]{0,30}(?:[ -](?:JS|SDK|Server|JDK|JRE))?)`{0,2}[\s(]{1,3}(?:versions?\s+|v)?"
    r"(?P<version>(?:at least |>=|=>|>|~=|~>|\^|==|≥|=)?\s?v?\d{1,4}(?:\.(?:\d{1,4}|x)){0,3}(?![\w%])\+?"
    r"(?:,? (?:or|and) (?:newer|later|above|higher|up|greater|more recent))?)"
)
_SPECIFIER = lazy_pattern(r"\s+`{0,2}[\"']?((?:>=|<=|>|<|\^|~>?|==)\s?v?\d{1,4}(?:\.\d{1,4}){0,3})")
_NO_VERSION_AFTER = lazy_pattern(
    r"\s*(?:%|(?:ms|s|seconds?|minutes?|hours?|days?|bytes?|[KMGT]i?B|times|arguments?|parameters?"
    r"|or more (?!recent))\b)",
    _I,
)
_STRICT = ("require", "need", "must", "minimum", "at least", "prereq")


def requires(text: str, _start: int, end: int, match: re.Match[str]) -> Iterator[Statement]:
    """Read ``requires Python 3.8 or newer``, ``must have Node.js 22``, ``engines.node accepts >=16``."""
    word = match[0].strip()
    found = _PRODUCT.match(text, match.end() - (match[0][-1:].isspace()), end)
    if found is None:
        yield from _specified(text, end, match, word)
        return
    if _NO_VERSION_AFTER.match(text, found.end(), end):
        return
    is_strict = word.startswith(_STRICT)
    is_open = bool(re.search(r"[+>≥^~]|or |and ", found["version"]))
    requirement = read_requirement(found["version"])
    thing = PRODUCTS.get(found["thing"].lower(), "")
    if not thing and is_strict and found["thing"][0].isupper() and (is_open or "." in found["version"]):
        thing = found["thing"]
    if requirement is not None and thing and (is_strict or is_open):
        value = Value("version", str(requirement))
        yield Statement(attribute="requires", value=value, start=match.start(), end=found.end(), name=thing)


def _specified(text: str, end: int, match: re.Match[str], word: str) -> Iterator[Statement]:
    found = (
        _SPECIFIER.match(text, match.end(), end)
        if word.startswith(("accept", "allow", "require", "support", "need"))
        else None
    )
    requirement = read_requirement(found[1]) if found else None
    if found is not None and requirement is not None:
        value = Value("version", str(requirement))
        yield Statement(attribute="requires", value=value, start=match.start(), end=found.end(1), is_bound=True)


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
    r"|results? in|status code)\b",
    _I,
)


_POSSIBLE = lazy_pattern(r"\b(?:can|could|may|might|to)\s+(?:also\s+)?$", _I)


def status(text: str, start: int, end: int, match: re.Match[str]) -> Iterator[Statement]:
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
    if verbs and not _POSSIBLE.search(text[max(start, verbs[-1].start() - 12) : verbs[-1].start()]):
        at = min(at, verbs[-1].start())
        yield Statement(attribute="status", value=Value("status", number), start=at, end=stop, is_bound=True)
