"""Read defaults: ``Default: 5``, ``defaults to `x```, ``the default port is 80``, ``5 by default``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.literals import value_at, value_before, whole_value
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of, noun_before
from nornweave.disagree.facts.documentation.statement import LINE_START, Statement, named
from nornweave.disagree.facts.values import FALSE, TRUE, Value

_I = re.IGNORECASE
_LINE_LINK = lazy_pattern(r"(?:\s+(?:values?|settings?))?[*_`]{0,4}\s*[:=][*_]{0,4}[ \t]*|[*_]{1,4}[ \t]+", _I)
_LINK = lazy_pattern(
    r"(?:\s+(?:values?|settings?))?[*_\"`”]{0,4}\s*(?P<link>:|=|\bis set to\b|\bis just\b|\bis\b|\bare\b|\bto\b"
    r"|\bof\b|\bbeing\b|-|–|—)?"
    r"(?:(?<=[:=])|(?!\w))[*_]{0,3}\s*", _I,
)  # fmt: skip
_FOR_NAME = lazy_pattern(
    r"\s+(?:for|of)\s+(?:the\s+)?`{0,2}(?P<name>[\w.-]*(?:_|-|[a-z][A-Z])[\w.-]{1,60})`{0,2}(?![\w-])"
)
_NEGATION = lazy_pattern(r"\b(?:not|n't|never|no longer|doesn't|isn't)\s+(?:\w+\s+)?$", _I)


def default(text: str, start: int, end: int, match: re.Match[str]) -> Iterator[Statement]:
    """Read on from the word ``default``."""
    at, stop = match.span()
    if text[max(start, at - 3) : at].lower() in {"by ", "by\n"}:
        yield from _by_default(text, start, end, at - 3, stop)
        return
    line_start = text.rfind("\n", 0, at) + 1
    if match[0] == "default" and LINE_START.match(text[max(line_start, at - 60) : at]):
        found = _line(text, end, at, stop)
        if found is not None:
            yield found
            yield from _alternatives(text, end, found)
            return
    yield from _in_sentence(text, start, end, match)


def _line(text: str, end: int, at: int, stop: int) -> Statement | None:
    """Read ``Default: 5`` at the start of a line; the value may stand on the next one."""
    link = _LINE_LINK.match(text, stop, end)
    if link is None:
        return None
    begin, line_end = link.end(), _line_end(text, link.end(), end)
    if not text[begin:line_end].strip():
        begin, line_end = min(line_end + 1, end), _line_end(text, min(line_end + 1, end), end)
    found = value_at(text, begin, line_end)
    if found is not None:
        return Statement(attribute="default", value=found[0], start=at, end=found[2], is_line=True)
    rest = re.split(r"(?<=[\w`\"'\])])\.(?:\s|$)", text[begin:line_end], maxsplit=1)[0]
    value = whole_value(rest)
    if value is None:
        return None
    return Statement(attribute="default", value=value, start=at, end=begin + len(rest), is_line=True)


_ALTERNATIVE = lazy_pattern(r"`{1,2}([^`\n]{1,80})`{1,2}")


def _alternatives(text: str, end: int, first: Statement) -> Iterator[Statement]:
    """Read the other defaults that stand in parentheses behind the first: ``Default: `1` (before 2.0: `8`)``."""
    opening = text.find("(", first.end, _line_end(text, first.end, end))
    if opening < 0 or text[first.end : opening].strip(" `*_"):
        return
    closing = text.find(")", opening, _line_end(text, opening, end))
    for match in _ALTERNATIVE.finditer(text, opening, closing if closing > 0 else opening):
        value = whole_value(match[1])
        if value is not None:
            yield replace(first, value=value, start=match.start(), end=match.end(), qualifiers=("conditional",))


def _line_end(text: str, at: int, end: int) -> int:
    found = text.find("\n", at, end)
    return end if found < 0 else found


# ``Node.js default 65535``, ``the server's default``: of somebody else.
_OF_ANOTHER = lazy_pattern(r"(?:(?<=\w )[A-Z][\w.]{1,30}|\w+['’]s)\s+$")


def _in_sentence(text: str, start: int, end: int, match: re.Match[str]) -> Iterator[Statement]:
    at, stop = match.span()
    if match[0] == "default" and _OF_ANOTHER.search(text[max(start, at - 40) : at]):
        return
    negated = bool(_NEGATION.search(text[max(start, at - 20) : at]))
    base = Statement(attribute="default", value=TRUE, start=at, end=stop, negated=negated)
    found = _linked(text, end, base, match[0]) or _of_name(text, end, base)
    if found is not None:
        yield found
    elif match[0] == "default":
        yield from _value_first(text, start, end, base)


def _linked(text: str, end: int, base: Statement, word: str) -> Statement | None:
    """Read ``defaults to 5``, ``the default is 5``, ``default 5``, ``default: 5 for `x```."""
    link = _LINK.match(text, base.end, end)
    sign = (link["link"] or "").lower() if link else ""
    if link is None or (word == "defaults" and sign not in {"to", ":", "=", "of", "is"}):
        return None
    found = value_at(text, link.end(), end, words=bool(sign))
    if found is None or _runs_on(text, found, end, linked=bool(sign)):
        return None
    is_bound = word in {"defaults", "defaulted", "defaulting"}
    owned = _FOR_NAME.match(text, found[2], end)
    name = identifier_of(owned["name"]) if owned else ""
    return replace(base, value=found[0], end=found[2], is_bound=is_bound, name=name)


_OF_NAME = lazy_pattern(
    r"(?:\s+values?)?(?:\s+(?:of|for))?(?:\s+the)?\s+(?:`{1,2}(?P<span>[\w.-]{3,60})`{1,2}"
    r"|(?P<bare>[a-z]\w{0,40}(?:_|[a-z][A-Z])\w{1,40}))(?:\s+(?:option|setting|parameter|flag))?"
    r"(?:\s*[:=]|\s+(?:is|of)(?:\s+set\s+to)?)\s+"
)


def _of_name(text: str, end: int, base: Statement) -> Statement | None:
    """Read ``the default `rows` is 5``, ``default value of maxRows is set to 5``."""
    named_by = _OF_NAME.match(text, base.end, end)
    name = identifier_of(named_by["span"] or named_by["bare"]) if named_by else ""
    found = value_at(text, named_by.end(), end) if named_by and name else None
    return replace(base, value=found[0], end=found[2], name=name) if found else None


def _runs_on(text: str, found: tuple[Value, int, int], end: int, *, linked: bool) -> bool:
    """Tell whether what looks like a value is the beginning of something else: ``default on the server``."""
    following = text[found[2] : min(end, found[2] + 12)]
    if re.match(r"\s*[+*/](?:\s|\d)|\(\w|\.\w", following):
        return True
    rest = text[found[2] : min(end, found[2] + 400)].lstrip()
    if not linked and found[0].kind == "number" and found[0].unit is None and rest[:1].isalpha():
        return True  # ``the default 404 handler``
    if not linked and found[0].kind == "string" and not re.match(r"[.;)\](]|,(?!\s*`)|$", rest):
        return True
    return not linked and found[0].kind in {"boolean", "none"} and text[found[1]] != "`"


_GIVEN_BEFORE = lazy_pattern(
    r"(?:\s*(?:\(|,|—|–|-))?\s*(?:\(?(?:is|as|being|which is|the|its|a|by|current|overall"
    r"|\w+'s)\s+){0,3}(?:[\w-]+\s+)?$",
    _I,
)
# ``rows: 5`` (the default)
_ASSIGNED = lazy_pattern(
    r"`(?P<name>[A-Za-z][\w.-]{2,60})\s?[:=]\s?(?P<value>[^`\n]{1,60})`\s*(?:\(|,)\s*(?:which is |is )?(?:the\s+)?$"
)
_HAS = lazy_pattern(r"\b(?:has|have|had|uses?|with)\s+$", _I)


def _value_first(text: str, start: int, end: int, base: Statement) -> Iterator[Statement]:
    """Read ``None as its default``, ``the 5 second default``, ``30 seconds (the server default)``."""
    at, stop = base.start, base.end
    following = text[stop : min(end, stop + 16)].lstrip("*_ ")
    if following[:1] not in {"", ")", ".", ",", ";", "]", "\n"} and not re.match(
        r"(?:of|for|in|and|but|while)\b", following
    ):
        return
    assigned = _ASSIGNED.search(text, max(start, at - 140), at)
    value = whole_value(assigned["value"]) if assigned else None
    if assigned and value and identifier_of(assigned["name"]):
        yield replace(base, value=value, start=assigned.start(), name=assigned["name"])
        return
    window = max(start, at - 40)
    lead = _GIVEN_BEFORE.search(text[window:at])
    found = value_before(text, start, at) or (value_before(text, start, window + lead.start()) if lead else None)
    if found is None or found[0].kind == "list":
        return
    has = _HAS.search(text[max(start, found[1] - 12) : found[1]])
    scope = noun_before(text, start, found[1] - len(has[0])) if has else ""
    yield replace(base, value=found[0], start=found[1], scope=scope)


_STATE_BEFORE = lazy_pattern(
    r"\b(?P<not>not |isn't |aren't )?(?P<state>enabled|disabled|(?:turned |switched )?(?:on|off)|active"
    r"|inactive)\s*\(?,?\s*$", _I,
)  # fmt: skip
_NAME_BEFORE = lazy_pattern(r"`[\s*_]*(?:\w+\s+){0,4}$")
_IS_BEFORE = lazy_pattern(r"\s(?:is|are|=|of)\s+(?:set to\s+)?$", _I)
_VERB = lazy_pattern(r"\b(?:is set to|is|are|will be|uses?|set to|has|have|was|gets?|=)(?=\s)", _I)
_AFTER_BY = lazy_pattern(
    r"\s*[,:]?\s*(?:\(|(?:it|this|they|the value|the setting|that)\s+(?:is|are|was)\s+(?:set to\s+)?)?", _I
)


def _by_default(text: str, start: int, end: int, at: int, stop: int) -> Iterator[Statement]:
    """Read around ``by default``: the value stands before it or behind it."""
    base = Statement(attribute="default", value=TRUE, start=at, end=stop, is_bound=True)
    state = _STATE_BEFORE.search(text[max(start, at - 40) : at])
    if state is not None:
        yield _state(state, base)
        return
    found = value_before(text, start, at)
    if found is not None:
        head = text[max(start, found[1] - 60) : found[1]]
        verb = None if _NAME_BEFORE.search(head) else _IS_BEFORE.search(head)
        noun = noun_before(text, start, found[1] - len(verb[0])) if verb else ""
        if found[0].kind == "string" and noun.endswith("s") and not noun.endswith("ss"):
            return  # ``all tasks are PENDING by default`` is about a state
        yield named(replace(base, value=found[0], start=found[1]), noun)
        return
    after = _after_by_default(text, end, replace(base, is_bound=False))
    if after is not None:
        yield after


def _state(state: re.Match[str], base: Statement) -> Statement:
    word = state["state"].lower().split()[-1]
    begin = base.start - len(state[0])
    value = TRUE if (word in {"enabled", "on", "active"}) != bool(state["not"]) else FALSE
    return replace(base, value=value, start=begin)


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
