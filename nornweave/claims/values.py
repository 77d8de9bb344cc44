"""Values as people write them → canonical text, exactly: numbers with units, versions, days, status codes.

What is equal here is the same value; ``same_value`` also knows what is merely written with another precision
(``2.1`` and ``2.1.3``, a weekday and a day, ``MB`` that mean ``MiB``).
"""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction
from functools import lru_cache

from nornweave.claims import units
from nornweave.claims.dates import WEEKDAYS, normal_date
from nornweave.claims.statuses import http_status

__all__ = ["canonical_number", "http_status", "normal_date", "normal_version", "number", "same_value", "singular"]

# Longer is no number that anybody wrote.
MAX_DIGITS = 24
MAX_UNIT_CHARACTERS = 60

_TO_NINETEEN = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_TENS_IN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ONES = {word: number for number, word in enumerate(_TO_NINETEEN.split())}
_TENS = {word: number * 10 for number, word in enumerate(_TENS_IN_WORDS.split(), 2)}
_WORDS = {
    **_ONES,
    **_TENS,
    **{f"{ten}{join}{one}": _TENS[ten] + _ONES[one] for ten in _TENS for one in list(_ONES)[1:10] for join in "- "},
    "a": 1,
    "an": 1,
    "a single": 1,
    "once": 1,
    "twice": 2,
    "dozen": 12,
    "a dozen": 12,
    "hundred": 100,
    "a hundred": 100,
    "one hundred": 100,
    "thousand": 1000,
    "a thousand": 1000,
    "one thousand": 1000,
    "million": 10**6,
    "a million": 10**6,
    "one million": 10**6,
}
_HALVES = {
    "½": Fraction(1, 2),
    "¼": Fraction(1, 4),
    "¾": Fraction(3, 4),
    "half": Fraction(1, 2),
    "half a": Fraction(1, 2),
}
_HALVES["half an"] = Fraction(1, 2)
_SCALES = {
    "k": 10**3,
    "m": 10**6,
    "b": 10**9,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
NUMBER_WORDS = frozenset(_WORDS)

_DIGITS = re.compile(
    r"(?P<sign>[-+−])?(?P<whole>\d{1,3}(?:,\d{3})+|\d{1,3}(?:[_\u202f\u00a0']\d{3})+|\d+)?(?:\.(?P<part>\d+))?(?P<half>[½¼¾])?"
    r"(?:[eE](?P<power>[-+]?\d{1,2}))?(?:\s?(?P<scale>[kK]|[MB]|(?i:thousand|million|billion|trillion)))?"
)
_PER = re.compile(
    r"(?P<noun>[^/]*?)\s*(?:/|\bper\b|\ba\b|\ban\b|\beach\b|\bevery\b)\s*(?P<period>[\w ]+?)", re.IGNORECASE
)
_WORKING_DAY = re.compile(r"(?:working|business)[ -]days?", re.IGNORECASE)

VERSION = re.compile(
    r"(?:v(?:ersion|er\.)?[ -]?)?(?P<numbers>\d{1,8}(?:\.\d{1,8}){0,4})"
    r"(?P<rest>(?:\.x)|(?:[-.]?(?:a|b|c|rc|alpha|beta|dev|post|pre|preview|snapshot|final|m)[-.]?\d{0,8}))?",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def canonical_number(text: str, unit: str | None = None) -> tuple[str, str | None] | None:
    """Return a number in base units: what it is worth, and the base unit.

    Durations are in ``s`` (months and years in ``month``), sizes in ``byte`` or ``bit``, shares in ``percent``, money
    in its ISO 4217 code, rates in ``request/s`` with the value converted (``/s`` where nothing says of what), counted
    nouns in the singular. ``times`` is no unit. Exact: thirds are written ``1/3``; ``fractions.Fraction`` reads every
    value.

    Args:
        text: ``1,000``, ``1_000``, ``five``, ``twenty-five``, ``1.5``, ``10k``, ``½``, ``2 million``.
        unit: as written: ``ms``, ``MiB``, ``%``, ``requests per minute``, ``rpm``, ``€``, ``days``; ``None`` for none.

    Returns:
        ``None`` if ``text`` is no number.
    """
    value = number(text)
    if value is None:
        return None
    if not unit or not unit.strip():
        return _written(value), None
    factor, base = _unit(unit.strip()[:MAX_UNIT_CHARACTERS])
    return _written(value * factor), base


def number(text: str) -> Fraction | None:
    """Read a number as written in digits or words; ``None`` if it is none."""
    text = text.strip()
    lowered = " ".join(text.lower().split())
    if lowered in _WORDS:
        return Fraction(_WORDS[lowered])
    if lowered in _HALVES:
        return _HALVES[lowered]
    match = _DIGITS.fullmatch(text) if len(text) <= MAX_DIGITS else None
    if match:
        return _of_digits(match)
    head, _, scale = lowered.rpartition(" ")
    return Fraction(_WORDS[head] * _SCALES[scale]) if head in _WORDS and scale in _SCALES else None


def _of_digits(match: re.Match[str]) -> Fraction | None:
    if not any(match[part] for part in ("whole", "part", "half")):
        return None
    whole = "".join(digit for digit in match["whole"] or "0" if digit.isdecimal())
    value = Fraction(f"{int(whole)}.{match['part'] or 0}") + _HALVES.get(match["half"] or "", 0)
    value *= Fraction(10) ** int(match["power"] or 0) * _SCALES.get((match["scale"] or "").lower(), 1)
    return -value if match["sign"] in {"-", "−"} else value


def _unit(written: str) -> tuple[Fraction, str | None]:
    """Return how many base units one of these is, and the base unit."""
    simple = _measure(written)
    if simple:
        return simple
    if written.lower() in units.RATES:
        return _rate(*units.RATES[written.lower()])
    per = _PER.fullmatch(written)
    if per and (_measure(per["period"]) or "per" in written.lower() or "/" in written):
        return _rate(per["noun"], per["period"])
    return Fraction(1), singular(written) or None


def _measure(written: str) -> tuple[Fraction, str | None] | None:
    """Look a unit up; ``None`` for what is counted instead of measured."""
    lowered = written.lower().strip(" .")
    if lowered in units.COUNT_WORDS:
        return Fraction(1), None
    if lowered in units.PERCENT_WORDS:
        return Fraction(1), units.PERCENT
    if _WORKING_DAY.fullmatch(lowered):
        return Fraction(1), "working day"
    currency = units.CURRENCY_SIGNS.get(lowered) or units.CURRENCY_WORDS.get(lowered)
    if currency or lowered.upper() in units.CURRENCIES:
        return Fraction(1), currency or lowered.upper()
    if written in {"B", "Mb", "Gb", "Kb", "kb"}:  # case tells bits from bytes, where it is one letter
        return (
            (Fraction(1), units.BYTE)
            if written == "B"
            else _scaled(f"{written[0].lower()}{'bit' if written != 'kb' else 'b'}")
        )
    return _scaled(lowered)


def _scaled(lowered: str) -> tuple[Fraction, str | None] | None:
    found = units.MEASURES.get(lowered)
    return (found[1], found[0]) if found else None


def _rate(noun: str, period: str) -> tuple[Fraction, str]:
    factor, base = _measure(noun) or (Fraction(1), singular(noun))
    length, of = _measure(period) or (Fraction(1), singular(period))
    return factor / length, f"{base or ''}/{of or singular(period)}"


@lru_cache(maxsize=4096)
def singular(noun: str) -> str:
    """Return a counted noun in lower case and in the singular; of a phrase the last word changes."""
    head, _, last = " ".join(noun.lower().split()).rpartition(" ")
    last = units.NOUNS.get(last, last)
    if len(last) > 4 and last.endswith("ies"):
        last = f"{last[:-3]}y"
    elif len(last) > 4 and last.endswith(("sses", "shes", "ches", "xes", "zes", "uses")):
        last = last[:-2]
    elif len(last) > 2 and last.endswith("s") and not last.endswith(("ss", "us", "is")):
        last = last[:-1]
    return f"{head} {last}".strip()


def _written(value: Fraction) -> str:
    """Write a number without trailing zeros; what no decimal holds is written as a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    rest, places = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def normal_version(text: str) -> str | None:
    """Return a version without its ``v``, in lower case: ``v2.1`` → ``2.1``, ``Version 3.0-RC1`` → ``3.0-rc1``.

    ``2.1`` and ``2.1.0`` stay apart as values; ``same_value`` takes the shorter for the whole line of the longer.
    ``2.x`` is ``2``.

    Returns:
        ``None`` for what is no version; a single number only after a ``v`` or ``version``.
    """
    text = text.strip()
    match = VERSION.fullmatch(text)
    if not match or (text.isdecimal()):
        return None
    rest = (match["rest"] or "").lower()
    return match["numbers"] + ("" if rest == ".x" else rest)


def same_value(value: str, other: str, unit: str | None = None) -> bool:
    """Tell whether two canonical values of one attribute can both be right as they are written.

    Equal values are; so are ``2.1`` and ``2.1.3`` (the shorter names the line), a weekday and a day that is one, a
    month and a day in it, and sizes that differ by kilobytes of 1000 or 1024 bytes alone.
    """
    if value == other:
        return True
    if unit in {units.BYTE, units.BIT}:
        return _same_size(value, other)
    short, long = sorted((value, other), key=lambda text: (len(text), text))
    if unit is None and short.count(".") >= 1 and long.startswith(f"{short}."):
        return not long[len(short) + 1 :].strip("0123456789.") and long.count(".") >= 2
    if short in WEEKDAYS:
        return _weekday_of(long) == short
    return bool(re.fullmatch(r"\d{4}-\d\d", short)) and long.startswith(f"{short}-")


def _same_size(value: str, other: str) -> bool:
    try:
        low, high = sorted((Fraction(value), Fraction(other)))
    except ValueError:
        return False
    return low > 0 and any(high / low == Fraction(1024, 1000) ** power for power in range(1, 6))


def _weekday_of(day: str) -> str | None:
    try:
        return WEEKDAYS[date.fromisoformat(day).weekday()]
    except ValueError:
        return None
