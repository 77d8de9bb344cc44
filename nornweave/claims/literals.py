"""Values as source code and configuration write them → a number with its unit, without evaluating any code.

``30``, ``1_000``, ``10 * 1024 * 1024``, ``"30s"``, ``30 * time.Second``, ``timedelta(hours=24)``,
``Duration.ofSeconds(30)``, ``5.minutes``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

MAX_EXPRESSION = 120
"""Characters of an expression that is a constant's value; longer ones are no setting."""
MAX_VALUE = 10**18
MAX_DEPTH = 12

_UNIT_WORDS = {
    "nanoseconds": "ns nano nanos nanosecond nanoseconds",
    "microseconds": "us µs micro micros microsecond microseconds",
    "ms": "ms milli millis millisecond milliseconds msec",
    "seconds": "s sec secs second seconds",
    "minutes": "m min mins minute minutes",
    "hours": "h hr hrs hour hours",
    "days": "d day days",
    "weeks": "w week weeks",
    "months": "month months",
    "years": "year years",
    "bytes": "b byte bytes",
    "kb": "k kb kilobyte kilobytes",
    "kib": "ki kib kibibytes",
    "mb": "mb megabyte megabytes",
    "mib": "mi mib mebibytes",
    "gb": "g gb gigabyte gigabytes",
    "gib": "gi gib gibibytes",
    "tb": "t tb terabyte terabytes",
    "tib": "ti tib",
    "percent": "% percent pct",
}
_UNITS = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
_LONG_UNITS = {word: unit for word, unit in _UNITS.items() if len(word) > 3}
UNIT_NAMES = frozenset(_LONG_UNITS)

_NUMBER = r"\d[\d_']*(?:\.\d[\d_]*)?(?:[eE][+-]?\d{1,2})?"
_SUFFIX = r"(?:[uif](?:8|16|32|64|size)|[uUlLfFdDnm]{1,3})?"
_PLAIN = re.compile(rf"({_NUMBER}){_SUFFIX}")
_QUANTITY = re.compile(rf"({_NUMBER})\s?([A-Za-zµ%]{{1,12}})?")
_RATE = re.compile(r"(\d{1,9})\s?(?:/|per)\s?(second|minute|hour|day|sec|min|s|m|h|d)", re.IGNORECASE)
# ``Duration.ofSeconds(30)``, ``Duration::from_secs(30)``, ``TimeSpan.FromMinutes(5)``, ``.seconds(30)``.
_CONSTRUCTED = re.compile(
    rf"[\w.:]{{0,60}}?(?:of|from|From|Of|in)?_?(?P<unit>[A-Za-z]{{3,12}})\(\s*(?P<number>{_NUMBER}){_SUFFIX}\s*\)"
)
_KEYWORD = re.compile(rf"[\w.]{{0,60}}\(\s*(?P<unit>[a-z]{{3,12}})\s*[=:]\s*(?P<number>{_NUMBER})\s*\)")
_METHOD = re.compile(rf"(?P<number>{_NUMBER})\.(?P<unit>[a-z]{{3,12}})(?:\(\))?(?:\.from_now)?")
_TIMES_UNIT = re.compile(
    rf"(?P<number>{_NUMBER})\s*\*\s*(?:[\w]{{1,30}}(?:\.|::))?(?P<unit>[A-Z][A-Za-z]{{2,12}}|[a-z]{{4,12}})"
)
_UNIT_TIMES = re.compile(
    rf"(?:\w{{1,30}}(?:\.|::))?(?P<unit>[A-Z][A-Za-z]{{2,12}}|[a-z]{{4,12}})\s*\*\s*(?P<number>{_NUMBER})"
)
_OF_UNIT = re.compile(
    rf"[\w.]{{0,40}}\.(?:of|ofMillis|valueOf)\(\s*(?P<number>{_NUMBER})L?,\s*(?:[\w]{{1,30}}\.){{0,3}}(?P<unit>[A-Za-z]{{3,12}})\s*\)"
)
_TOKEN = re.compile(rf"\s*(?:({_NUMBER}){_SUFFIX}|(\*\*|<<|[-+*/()]))")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as plain decimal text, and its unit in the words of ``values.canonical_number``."""

    number: str
    unit: str | None = None


@lru_cache(maxsize=4096)
def quantity(text: str) -> Quantity | None:
    """Read an expression that is a number, perhaps with a unit; ``None`` for anything else.

    Negative numbers and everything that is not decimal are none: sentinels and bit masks, not settings.
    """
    text = text.strip()
    if not text or len(text) > MAX_EXPRESSION:
        return None
    if text[0] in "\"'`":
        return written_quantity(text.strip("\"'`"))
    return _with_unit(text) or _arithmetic(text)


def written_quantity(text: str) -> Quantity | None:
    """Read ``30``, ``30s``, ``10 MB``, ``5m``, ``512Mi``, ``50%`` as strings and configuration hold them."""
    rate = _RATE.fullmatch(text.strip())
    if rate is not None:
        return Quantity(rate[1], f"requests per {_UNITS[rate[2].lower()].removesuffix('s')}")
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return None
    number = _decimal(_fraction(match[1]))
    if number is None or match[2] is None:
        return Quantity(number) if number is not None else None
    unit = "mb" if match[2] == "M" else _UNITS.get(match[2].lower())
    return Quantity(number, unit) if unit else None


def _with_unit(text: str) -> Quantity | None:
    for pattern in (_CONSTRUCTED, _KEYWORD, _METHOD, _OF_UNIT, _TIMES_UNIT, _UNIT_TIMES):
        match = pattern.fullmatch(text)
        if match is not None:
            unit = _named_unit(match["unit"])
            number = _decimal(_fraction(match["number"]))
            if unit and number is not None:
                return Quantity(number, unit)
    return None


def _named_unit(word: str) -> str | None:
    """Find the unit in ``Seconds``, ``fromSecs``, ``SECONDS``, ``ofMillis``."""
    lowered = word.lower()
    for prefix in ("", "of", "from"):
        found = _UNITS.get(lowered.removeprefix(prefix))
        if found and len(lowered.removeprefix(prefix)) > 3:
            return found
    return None


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace("_", "").replace("'", ""))


def _decimal(value: Fraction) -> str | None:
    """Write a number with at most nine decimal places."""
    if not 0 <= value <= MAX_VALUE:
        return None
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.9f}".rstrip("0")


def _arithmetic(text: str) -> Quantity | None:
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        number = _decimal(_fraction(plain[1]))
        return Quantity(number) if number is not None else None
    tokens = _tokens(text)
    if tokens is None:
        return None
    try:
        value, rest = _sum(tokens, MAX_DEPTH)
    except (_NoNumberError, ZeroDivisionError):
        return None
    number = _decimal(value) if not rest else None
    return Quantity(number) if number is not None else None


class _NoNumberError(Exception):
    """The tokens are no arithmetic expression over literals, or a monstrous one."""


def _tokens(text: str) -> tuple[str, ...] | None:
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        found.append(match[1] or match[2])
        at = match.end()
    return tuple(found)


_Rest = tuple[str, ...]


def _sum(tokens: _Rest, depth: int) -> tuple[Fraction, _Rest]:
    value, tokens = _product(tokens, depth)
    while tokens and tokens[0] in {"+", "-", "<<"}:
        other, rest = _product(tokens[1:], depth)
        value = _bounded(value, tokens[0], other)
        tokens = rest
    return value, tokens


def _product(tokens: _Rest, depth: int) -> tuple[Fraction, _Rest]:
    value, tokens = _power(tokens, depth)
    while tokens and tokens[0] in {"*", "/"}:
        other, rest = _power(tokens[1:], depth)
        value = _bounded(value, tokens[0], other)
        tokens = rest
    return value, tokens


def _power(tokens: _Rest, depth: int) -> tuple[Fraction, _Rest]:
    value, tokens = _atom(tokens, depth)
    if tokens and tokens[0] == "**" and depth:
        other, tokens = _power(tokens[1:], depth - 1)
        value = _bounded(value, "**", other)
    return value, tokens


def _atom(tokens: _Rest, depth: int) -> tuple[Fraction, _Rest]:
    if not tokens or depth == 0:
        raise _NoNumberError
    if tokens[0] == "(":
        value, rest = _sum(tokens[1:], depth - 1)
        if not rest or rest[0] != ")":
            raise _NoNumberError
        return value, rest[1:]
    if not tokens[0][0].isdigit():
        raise _NoNumberError
    return _fraction(tokens[0]), tokens[1:]


def _bounded(value: Fraction, operator: str, other: Fraction) -> Fraction:
    if operator in {"**", "<<"}:
        if other.denominator != 1 or not 0 <= other <= 64:
            raise _NoNumberError
        value = value**other.numerator if operator == "**" else value * 2**other.numerator
    elif operator == "/":
        value /= other
    else:
        value = {"+": value + other, "-": value - other, "*": value * other}[operator]
    if abs(value) > MAX_VALUE or value.denominator > MAX_VALUE:
        raise _NoNumberError
    return value
