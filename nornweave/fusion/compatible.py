"""Whether two values of one attribute can both be true.

Values are canonical (``Claim.value``); what is written with another precision is known to ``claims.values``. Here is
what needs both claims: a constant without a unit beside a duration, a month beside thirty days, status classes, ranges.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from nornweave.claims.values import same_value
from nornweave.claims.vocabulary import FAMILIES
from nornweave.fusion.agreement import plain_attribute
from nornweave.types import Claim

# A constant without a unit beside a time or a size: it may be counted in any of these.
_SCALES: dict[str, tuple[Fraction, ...]] = {
    "s": tuple(Fraction(1, 1000**power) for power in range(4)) + tuple(map(Fraction, (60, 3600, 86_400, 604_800))),
    "byte": tuple(map(Fraction, (1, 1000, 1000**2, 1000**3, 1024, 1024**2, 1024**3))),
    "percent": (Fraction(1), Fraction(100)),
}
# A month has 28 to 31 days; who writes "30 days" here and "a month" there does not contradict himself.
_DAY = 86_400
_MONTH_DAYS = (28, 31)
_WHOLE = Fraction(100)
_ROUNDING = Fraction(1, 200)
"""Numbers of units within half a percent of each other are one number, rounded."""

# What is measured says what a vague name means; the same name for another measure is another thing.
_FAMILIES = (
    (re.compile("connection"), frozenset({"limit", "count", "pool"}), "pool_size"),
    (re.compile("replica|instance|pod|node"), frozenset({"limit", "count"}), "replicas"),
    (re.compile("worker|thread|process"), frozenset({"limit", "count"}), "concurrency"),
    (re.compile("attempt|retry|try|time"), frozenset({"limit", "count"}), "retries"),
    (re.compile("entry|slot"), frozenset({"limit", "count"}), "buffer_size"),
    (re.compile("byte"), frozenset({"limit", "size", "size_limit"}), "size_limit"),
    (re.compile("character"), frozenset({"limit", "minimum", "length_limit"}), "length_limit"),
    (re.compile("s|month|working day"), frozenset({"limit", "deadline", "window"}), "window"),
    (re.compile(".+/(?:s|min|h|d|month)"), frozenset({"limit", "rate", "rate_limit", "quota"}), "rate_limit"),
)
LOOSE = "~"
_LOOSE_ATTRIBUTES = frozenset({"limit", "minimum", "deadline", "window", "delay", "default", "count", "rate", "size"})
_ENDS = frozenset({"ended", "lifetime", "deadline", "support"})

MAX_RATIO = 5_000
"""Delays that differ by more are two things."""
# A noun is found again by its first letters, whatever its number.
_NOUN_LENGTH = 7
_ON = frozenset({"on", "true", "yes", "enabled"})
_OFF = frozenset({"off", "false", "no", "disabled"})
_RANGE = re.compile(r"(-?\d+(?:[./]\d+)?)\s*(?:\.\.+|–|-|to|:)\s*(-?\d+(?:[./]\d+)?)")
# Words around a name that do not make it another: "the Platform team" is "platform".
_NAME_FILLERS = frozenset({"the", "a", "an", "our", "and", "team", "teams", "group", "squad", "guild", "crew", "dept"})


def families_of(claim: Claim) -> tuple[str, ...]:
    """Name the groups of attributes in which a claim compares: its own, and what is measured alike under a vague name.

    A limit in bytes is a size limit, whatever it is called; a time that no family names ("within 30 days") compares
    with other times under vague names, when all else agrees.
    """
    own = family_of(claim)
    if claim.kind == "number" and claim.unit is not None and is_loose(claim):
        return own, f"{LOOSE}{'s' if claim.unit == 'month' else claim.unit}"
    return (own,)


def is_loose(claim: Claim) -> bool:
    """Tell whether a claim's attribute says little of what it is the value of."""
    attribute = plain_attribute(claim)
    return attribute in _LOOSE_ATTRIBUTES or attribute not in FAMILIES


def family_of(claim: Claim) -> str:
    """Name the group of attributes that a claim belongs to; a limit in bytes is a size limit, whatever it is called."""
    attribute = plain_attribute(claim)
    if claim.kind == "date" and attribute in _ENDS:
        return "end"
    if claim.attribute == "min_version":  # what is needed at least says nothing of what there is
        return "min_version"
    for unit, attributes, family in _FAMILIES:
        if attribute in attributes and claim.unit is not None and unit.fullmatch(claim.unit):
            return family
    return attribute


def compatible(a: Claim, b: Claim) -> bool:
    """Tell whether both values can hold at once; what cannot be compared counts as compatible."""
    return agree(a, b) is not False


def agree(a: Claim, b: Claim) -> bool | None:
    """Tell whether two claims of one attribute say the same; ``None`` for what cannot be compared."""
    kinds = {a.kind, b.kind}
    if a.unit == b.unit and same_value(a.value, b.value, a.unit):
        return True
    if "http_status" in kinds:
        return _same_status(a.value, b.value) if len(kinds) == 1 else None
    if "version" in kinds:
        return _same_version(a.value, b.value) if _is_version(a) and _is_version(b) else None
    if kinds == {"support"}:
        return _same_support(a.value, b.value)
    if "date" in kinds or "support" in kinds:
        return False if len(kinds) == 1 else None
    if kinds == {"owner"}:
        return _same_name(a.value, b.value)
    left, right = number(a.value), number(b.value)
    if left is None and right is None:
        return _same_word(a.value, b.value)
    if left is None or right is None or not (_names_noun(a, b.unit) and _names_noun(b, a.unit)):
        return None
    if a.unit == b.unit == "s" and "delay" in {plain_attribute(a), plain_attribute(b)} and _far_apart(left, right):
        return None  # a pause between two tries, and what is done after a week
    return _same_quantity(left, a.unit, right, b.unit)


def _far_apart(a: Fraction, b: Fraction) -> bool:
    return max(a, b) > MAX_RATIO * min(a, b)


def allows(span: Claim, value: Claim) -> bool:
    """Tell whether a claim of mood ``range`` allows a value: it is one of its ends or lies between them."""
    ends = _RANGE.fullmatch(span.value)
    found = number(value.value)
    if ends is None or found is None or span.unit != value.unit:
        return agree(span, value) is True
    first, last = number(ends[1]), number(ends[2])
    return first is None or last is None or min(first, last) <= found <= max(first, last)


@lru_cache(maxsize=1 << 14)
def number(value: str) -> Fraction | None:
    """Return the number that a canonical value is, ``None`` if it is none."""
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        return None


def _is_version(claim: Claim) -> bool:
    return claim.kind == "version" or claim.value[:1].isdigit()


def _same_version(a: str, b: str) -> bool:
    """Compare versions as far as both go: 2.1 says nothing against 2.1.4, and 2 nothing against 2.1."""
    left, right = a.split("."), b.split(".")
    return all(x == y or "x" in {x, y} or "*" in {x, y} for x, y in zip(left, right, strict=False))


def _names_noun(claim: Claim, unit: str | None) -> bool:
    """Tell whether a claim without a unit may count what the other side counts: ``MAX_DOCUMENTS``, not ``LIMIT``."""
    if claim.unit is not None or unit is None or unit in _SCALES or "/" in unit:
        return True
    named = f"{claim.entity} {claim.attribute} {claim.statement}".lower()
    return unit.removesuffix("y")[:_NOUN_LENGTH] in named or (unit == "character" and "len" in named)


def _same_support(a: str, b: str) -> bool | None:
    """Compare states of support: what is deprecated still works, and will be gone."""
    if "deprecated" in {a, b}:
        return True if a == b else None
    return (a == "supported") == (b == "supported")


def _same_status(a: str, b: str) -> bool | None:
    """Compare status codes: ``4xx`` allows every code of its class; a success says nothing against an error."""
    if _is_error(a) != _is_error(b):
        return None
    return a[:1] == b[:1] and ("x" in a or "x" in b)


def _is_error(status: str) -> bool:
    return status[:1] in {"4", "5"}


def _same_name(a: str, b: str) -> bool:
    left, right = _name_words(a), _name_words(b)
    return left <= right or right <= left


def _name_words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", name.lower())) - _NAME_FILLERS


def _same_word(a: str, b: str) -> bool:
    if a in _ON | _OFF and b in _ON | _OFF:
        return (a in _ON) == (b in _ON)
    return a == b


def _same_quantity(a: Fraction, a_unit: str | None, b: Fraction, b_unit: str | None) -> bool | None:
    if a_unit == b_unit:
        if a_unit == "percent" and max(a, b) <= _WHOLE and not _rounded(_WHOLE - a, _WHOLE - b):
            return False  # 99.9 and 99.95 are two promises
        return a == b or (a_unit is not None and _rounded(a, b))
    if a_unit is None or b_unit is None:
        plain, measured, unit = (a, b, b_unit) if a_unit is None else (b, a, a_unit)
        return any(plain * scale == measured for scale in _SCALES.get(unit or "", (Fraction(1),)))
    if {a_unit, b_unit} == {"s", "month"}:
        seconds, months = (a, b) if a_unit == "s" else (b, a)
        low, high = (days * _DAY * months for days in _MONTH_DAYS)
        return low <= seconds <= high
    return None  # requests beside bytes


def _rounded(a: Fraction, b: Fraction) -> bool:
    """Tell whether two numbers are one, rounded; whole numbers of few digits are not."""
    if a.denominator == b.denominator == 1 and max(abs(a), abs(b)) < 1000:
        return False
    return abs(a - b) <= _ROUNDING * max(abs(a), abs(b))
