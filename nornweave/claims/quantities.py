"""Numbers in prose with what they count or measure, and the attribute that they are the value of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nornweave.claims import units
from nornweave.claims.lexicon import tokens_of, words_in
from nornweave.claims.values import NUMBER_WORDS, canonical_number
from nornweave.claims.vocabulary import attribute_of, family_stems, split_name, stem

_WORDS = "|".join(
    sorted((word for word in NUMBER_WORDS if word not in {"a", "an", "once", "twice", "zero"}), key=len)[::-1]
)
_MEASURES = (
    r"ms|msecs?|milliseconds?|microseconds?|nanoseconds?|µs|secs?|seconds?|s|mins?|minutes?|hrs?|hours?|h"
    r"|(?:working|business)[\s-]days?|days?|weeks?|months?|years?|[kKMGTP]i?B(?:ytes?|/s|ps)?|(?:kilo|mega|giga"
    r"|tera|kibi|mebi|gibi)?bytes?"
    r"|[kMG]bps|[kMG]bit/s|[kMG]?Hz|%|per\s?cent|percent|rp[smh]|qps|tps|iops|times"
    r"|[kM]?Wh?|watts?|[km]?V|volts?|m?Ah|mA|amps?|kg|mg|kilograms?|grams?|[mck]m|(?:milli|centi|kilo)?met(?:er|re)s?"
    r"|°C|dBm?"
)
_MONEY = rf"{'|'.join(sorted(units.CURRENCIES))}|euros?|dollars?|[€$£¥]"
_PERIODS = r"(?:milli)?seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|months?|years?"
_NOUN = r"(?:[a-z][a-z-]{2,20}\s)?[a-z][a-z-]{2,20}s"
_PER = rf"(?:\s?(?:/\s?|per\s|an?\s|each\s|every\s)(?:{_PERIODS})\b)"
NUMBER = re.compile(
    rf"""
    (?<![\w.,:/\#@€$£+<>=_-]) (?<![\w)][\s]=\s)
    (?:(?P<sign>[€$£¥]|US\$)\s?)?
    (?:(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d{{1,15}}(?:\.\d{{1,9}})?[kKM]?(?![\w]))|(?P<word>(?:{_WORDS})(?!\w)))
    (?!\.\d|:\d|[-/]\d|,\d)
    (?:`{{0,2}}[ -]?(?P<unit>(?:{_MEASURES}|{_MONEY})(?![\w]))|\ (?P<noun>{_NOUN}(?!\w)))?
    (?P<per>{_PER})?
    """,
    re.VERBOSE,
)
_RANGE = re.compile(
    rf"""
    (?<![\w.,:/\#$€£_-])(?P<low>\d{{1,9}}(?:\.\d{{1,6}})?)(?:\s?(?:{_MEASURES}))?
    \s?(?P<join>-|–|—|\bto\b|\band\b)\s?
    (?P<high>\d{{1,9}}(?:\.\d{{1,6}})?)(?!\d|[-–/.:]\d)
    (?:`{{0,2}}[ -]?(?P<unit>(?:{_MEASURES}|{_MONEY})(?![\w]))|\ (?P<noun>{_NOUN}(?!\w)))?
    (?P<per>{_PER})?
    """,
    re.VERBOSE,
)
_DIGIT = re.compile(r"\d")
_START = re.compile(rf"[€$£¥]|US\$|\d+|\b(?:{_WORDS})(?!\w)")
_START_OF_DIGITS = re.compile(r"[€$£¥]|US\$|\d+")
_NUMERALS = frozenset(part for word in _WORDS.split("|") for part in word.replace("-", " ").split())
_GLUED_CUE = re.compile(r"\d[msMKkGTPhd%]")
_GLUED = re.compile(
    r"(?<![\w.,:/#@€$£+<>=_-])(?P<digits>\d{1,12}(?:\.\d{1,6})?)(?P<unit>ms|s|min|h|d|[kKMGT]i?B|%)(?![\w.]\w|\w)"
)
CLOCK = re.compile(
    r"(?<![\w:.])(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?!:?\d)(?:\s?(?P<zone>UTC|GMT|Z|CET|CEST|EST|PST)\b)?"
)
_SPAN = re.compile(
    r"(?:\bbetween|\bfrom)\s+$|(?:\d|\bone|\btwo|\bthree|\bfour|\bfive|\bten)\s?\S{0,12}\s?(?:-|–|—|to|or|and|,)\s?$",
    re.IGNORECASE,
)
_SPAN_AFTER = re.compile(
    r"\s?(?:-|–|—|to|or|and)\s?(?:\d|one\b|two\b|three\b|four\b|five\b|six\b|ten\b)", re.IGNORECASE
)
_NEGATED = re.compile(
    r"\b(?:not|no longer|instead of|rather than|never|from|than the|without|unlike|except|beyond|plus|minus|by"
    r"|another|other|extra|additional|first|last"
    r"|next|past|every other|the other|of the|all|these|those|both|only the|version|release|step|chapter"
    r"|section|page|figure|table|line|issue|pr|id)\s+$",
    re.IGNORECASE,
)
# The last words of what is looked for before a number: to compare them costs less than to ask the patterns.
_LAST_OF_NEGATED = words_in(
    "not longer of than never from the without unlike except beyond plus minus by another other extra additional first"
    " last next past all these those both version release step chapter section page figure table line issue pr id"
)
_LAST_OF_LIMIT = words_in("most to upto than of is max max. maximum at exceed below under least minimum a the")
_LAST_OF_BEYOND = frozenset({"than", "over", "above", "exceeding", "a"})
_ENDS_OF_SPAN = ("-", "–", "—", ",", "to", "or", "and", "between", "from")
_CONDITION = re.compile(
    r"(?:^|[,;(]\s?|\s)(?:if|when|whenever|unless|once|in case|where|until|while|who|whose|an?\s[\w"
    r" -]{1,30}\sthat)\s[^,;:]{0,120}$",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:(?P<max>at most|up to|upto|no more than|not more than|maximum of|max(?:imum)? is|max\.?|maximum|limited"
    r" to|limit(?:ed)? (?:of|is|to)|capped at"
    r"|(?:not|never|cannot|can't|must not|may not) (?:be )?(?:exceed|(?:longer|larger|bigger|greater|more|older)"
    r" than)|cap of"
    r"|(?:must|should) be (?:under|below|less than|smaller than|shorter than|fewer than))"
    r"|(?P<min>at least|no (?:less|fewer) than|minimum of|minimum is|minimum))\s(?:of )?(?:(?:a|the)\s)?$",
    re.IGNORECASE,
)
# "Frames longer than 4 MiB are rejected", "more than six guests are not allowed".
_BEYOND = re.compile(
    r"\b(?:(?:longer|larger|bigger|greater|more|heavier|higher|bigger) than|over|above|exceeding)\s(?:a\s)?$",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"[^.;]{0,60}?\b(?:is|are|get|gets|will be)\s(?:\w+ly\s)?(?:rejected|refused|declined|denied|dropped|discarded"
    r"|truncated|ignored|cut|blocked|cancell?ed|killed|skipped|not (?:accepted|allowed|possible|supported)"
    r"|answered with (?:HTTP )?4\d\d)\b",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"(?:\b(?:is|are|be|of|between|from|to|at|for|after|within|in|every|than|at most|at least|up to|under|over"
    r"|below|above"
    r"|exceeds?|waits?|takes?|lasts?|lives?|keeps?|kept"
    r"|stays?|becomes?|has|have|with|a|an|using|uses?|only|exactly|just|set to|allows?|per|port)|[:=(–—-]|→"
    r"|->)\s?[`\"']?$",
    re.IGNORECASE,
)
# "An alert that nobody acknowledges escalates ...": the second verb ends what depends on "that".
_RELATIVE = re.compile(
    r"\A(?:an?|the|any|each|every)?\s?[\w -]{1,40}\s(?:that|which|who)\s(?:\w+\s){0,3}?\w{2,}s\s"
    r"(?:\w{3,}s|is|are|will|must|can|may|gets?)\s[^,;:]{0,60}\Z",
    re.IGNORECASE,
)
# "If the name is taken the answer is 409": a condition without its comma.
_MAIN_CLAUSE = re.compile(
    r"\b(?:if|when|whenever|once)\s[^,;:]{2,70}?\b(?:is|are|has|have|\w{3,}ed|\w{3,}s)\s(?:\w+\s)?"
    r"(?:the|it|its|an?|this|they|you|we)\s(?:[\w-]+\s){0,3}?"
    r"(?:is|are|answers?|returns?|responds?|gets?|gives?|repl(?:y|ies)|fails?|waits?|expires?)\s[^,;:]{0,40}\Z",
    re.IGNORECASE,
)
_GIVEN = re.compile(r"\b((?:[\w-]+\s)?[\w-]+)\sof\s$")
_TIME, _SIZE, _COUNT, _RATE, _SHARE, _MONETARY = "time", "size", "count", "rate", "share", "money"
_PHYSICAL = "physical"
_COMPATIBLE: dict[str, frozenset[str]] = {
    family: frozenset(dimensions.split())
    for families, dimensions in {
        "timeout lifetime window interval delay cut_off deadline": _TIME,
        "retries port pool_size concurrency replicas batch_size page_size dimensions temperature length_limit": _COUNT,
        "rate_limit": _RATE,
        "burst quota": f"{_COUNT} {_RATE} {_SIZE}",
        "size_limit memory": _SIZE,
        "buffer_size": f"{_COUNT} {_SIZE}",
        "threshold limit minimum": f"{_TIME} {_SIZE} {_COUNT} {_RATE} {_SHARE} {_MONETARY} {_PHYSICAL}",
        "price": f"{_MONETARY} {_SHARE}",
        "sampling": f"{_SHARE} {_RATE}",
        "coverage availability": _SHARE,
    }.items()
    for family in families.split()
}
WEAK = frozenset({"limit", "minimum", "threshold", "count", "size", "rate", "default", "date"})
_BASE_TIMES = frozenset({units.SECOND, units.MONTH, "working day"})
_REACH = 9
"""Words before and after a number in which its attribute is looked for."""
_TOKENS = re.compile(r"[\w'/-]+")
_ADJACENT = re.compile(r"[\w`]\s$")
_CLOSED = re.compile(r"`?\s*(?:[.,;)]|$|\stimes\b|and\b|by default\b)")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number where it stands.

    Attributes:
        noun: what it counts, as written; empty for measures and bare numbers.
        is_span: whether it is a range (``3 to 5``) or an end of one.
        bound: ``limit``, ``minimum`` or empty: what the words before it say.
    """

    start: int
    end: int
    value: str
    unit: str | None
    noun: str = ""
    is_span: bool = False
    bound: str = ""


@lru_cache(maxsize=256)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Find the numbers of a sentence that may be values, in order; dates, versions and times of day are none."""
    has_digits = _DIGIT.search(text) is not None
    ranges = _ranges(text) if has_digits else []
    found = [one for match in _numbers(text) if (one := _quantity(text, match)) is not None]
    if has_digits and _GLUED_CUE.search(text):
        taken = {one.start for one in found if one.unit}
        glued = [
            one for match in _GLUED.finditer(text) if match.start() not in taken and (one := _quantity(text, match))
        ]
        places = {one.start for one in glued}
        found = sorted([*(one for one in found if one.start not in places), *glued], key=lambda one: one.start)
    outside = [one for one in found if not any(each.start <= one.start < each.end for each in ranges)]
    return tuple(sorted([*outside, *ranges], key=lambda one: one.start) if ranges else found)


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """Find what ``NUMBER`` finds, trying it only where it can begin."""
    end = 0
    starts = _START_OF_DIGITS if _NUMERALS.isdisjoint(tokens_of(text)) else _START
    for start in starts.finditer(text):
        if start.start() >= end:
            match = NUMBER.match(text, start.start())
            if match:
                end = match.end()
                yield match


def _ranges(text: str) -> list[Quantity]:
    """Find ranges, ``3-5 seconds``, ``between 3 and 5 days``; their value is ``low-high`` in base units."""
    found = []
    for match in _RANGE.finditer(text):
        if match["join"] == "and" and not text[: match.start()].endswith("between "):
            continue
        unit = match["unit"] or match["noun"]
        if match["per"]:
            unit = f"{unit or 'requests'}{_spelled(match['per'])}"
        low, high = canonical_number(match["low"], unit), canonical_number(match["high"], unit)
        if low and high and unit:
            noun = "" if match["unit"] else match["noun"] or ""
            found.append(Quantity(*match.span(), f"{low[0]}-{high[0]}", high[1], noun, is_span=True))
    return found


def _quantity(text: str, match: re.Match[str]) -> Quantity | None:
    parts = match.groupdict()
    written, unit, noun = parts["digits"] or parts.get("word") or "", parts["unit"], parts.get("noun") or ""
    if parts.get("word") and not (unit or noun):
        return None
    unit_text = parts.get("sign") or unit or noun or None
    if parts.get("per"):
        unit_text = f"{unit_text or 'requests'}{_spelled(parts['per'])}"
    canonical = canonical_number(written, unit_text)
    if canonical is None:
        return None
    before = text[max(0, match.start() - 60) : match.start()]
    last = before.lower().rstrip().rpartition(" ")[2]
    word = last.rpartition("-")[2].lstrip("([{\"'`*_/")
    named_before = before.endswith(("the ", "The ")) and "-" not in match[0]  # "the 3 items": said elsewhere
    if named_before or (word in _LAST_OF_NEGATED and _NEGATED.search(before)):
        return None
    limit = _LIMIT.search(before) if word in _LAST_OF_LIMIT else None
    span = bool(
        (last.endswith(_ENDS_OF_SPAN) and _SPAN.search(before[-24:]))
        or (_SPAN_AFTER.match(text, match.end()) and not limit)
    )
    bound = ("limit" if limit["max"] else "minimum") if limit else ""
    if not bound and word in _LAST_OF_BEYOND and _BEYOND.search(before[-24:]) and _REFUSED.match(text, match.end()):
        bound = "limit"
    return Quantity(match.start(), match.end(), *canonical, "" if unit else noun, span, bound)


def _spelled(per: str) -> str:
    return per if per.lstrip().startswith("/") else f" per {per.split()[-1]}"


def dimension(unit: str | None) -> str:
    """Say what kind of number a base unit makes: a time, a size, a rate, a share, money or a count."""
    if unit in _BASE_TIMES:
        return _TIME
    if unit in {units.BYTE, units.BIT}:
        return _SIZE
    if unit == units.PERCENT:
        return _SHARE
    if unit and "/" in unit:
        return _RATE
    if unit in units.PHYSICAL:
        return _PHYSICAL
    return _MONETARY if unit in units.CURRENCIES else _COUNT


def attribute_near(before: str, after: str, quantity: Quantity) -> str | None:
    """Find the attribute that a number is the value of among the words around it, the nearest first.

    Families that fit the unit only; ``limit`` and the like when nothing says more.
    """
    head = tuple(split_name(" ".join(_TOKENS.findall(before)[-_REACH:])))
    tail = tuple(split_name(" ".join(_TOKENS.findall(after)[:_REACH])))
    weak: str | None = None
    for words in _nearest(head, tail, quantity.noun):
        family = attribute_of(words)
        if family is None or not fits(family, quantity):
            continue
        if family not in WEAK:
            return family
        weak = weak or family
    return weak


def _nearest(head: tuple[str, ...], tail: tuple[str, ...], noun: str) -> Sequence[tuple[str, ...]]:
    spans = [tuple(split_name(noun))] if noun else []
    spans += [head[at:] for at in range(len(head) - 1, -1, -1)]
    return [*spans, *(tail[:length] for length in range(1, len(tail) + 1))]


def fits(family: str, quantity: Quantity) -> bool:
    """Tell whether a number with this unit can be a value of the attribute."""
    kind = dimension(quantity.unit)
    if kind not in _COMPATIBLE.get(family, ()):
        return False
    if kind != _COUNT or family in WEAK:
        return True
    return not quantity.noun or bool(_stems(quantity.noun) & family_stems(family))


@lru_cache(maxsize=2048)
def _stems(noun: str) -> frozenset[str]:
    return frozenset(stem(word) for word in split_name(noun))


def clock_times(text: str) -> list[Quantity]:
    """Find times of day, as seconds since midnight."""
    found = []
    for match in CLOCK.finditer(text) if ":" in text else ():
        seconds = int(match["hour"]) * 3600 + int(match["minute"]) * 60
        before = text[max(0, match.start() - 24) : match.start()]
        span = bool(_SPAN.search(before) or _SPAN_AFTER.match(text, match.end()))
        found.append(Quantity(match.start(), match.end(), str(seconds), units.SECOND, is_span=span))
    return found


def is_tied(before: str, after: str, quantity: Quantity) -> bool:
    """Tell whether a number belongs to what the words around it name.

    It does after a word that links (``is 5``, ``: 5``, ``at most 5``), when it says itself what it counts
    (``5 retries``, ``60 requests per minute``) and before its noun (``30-day window``, ``10 second timeout``).
    """
    if quantity.bound or _LINK.search(before):
        return True
    if dimension(quantity.unit) == _RATE or quantity.noun:
        family = attribute_of(split_name(quantity.noun)) if quantity.noun else "rate_limit"
        return family is not None and family not in WEAK
    named = attribute_of(split_name(" ".join(_TOKENS.findall(before)[-2:]))) if _ADJACENT.search(before) else None
    if named is not None and named not in WEAK and fits(named, quantity) and (quantity.unit or _CLOSED.match(after)):
        return True
    following = attribute_of(split_name(" ".join(_TOKENS.findall(after)[:2])))
    return quantity.unit is not None and following in _COMPATIBLE and following not in WEAK


def is_conditional(before: str) -> bool:
    """Tell whether a number stands inside a condition, which says what follows from it and not what holds.

    What a noun is given there holds anyway: ``if the session timeout of 10 seconds passes``.
    """
    if not _CONDITION.search(before):
        return False
    if _RELATIVE.search(before) or _MAIN_CLAUSE.search(before):
        return False
    given = _GIVEN.search(before)
    family = attribute_of(split_name(given[1])) if given else None
    return family is None or family in WEAK
