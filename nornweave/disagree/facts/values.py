"""Values in canonical form: their kinds, the units of numbers, and how they are shown to people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from nornweave.core.types import Fact, ValueKind

_HOUR, _DAY = 3600, 86400
# Base unit, how many of it one is, and what people call it.
_UNITS = (
    ("s", Fraction(1), "s sec secs second seconds"),
    ("s", Fraction(1, 1000), "ms msec msecs milli millis millisecond milliseconds"),
    ("s", Fraction(1, 10**6), "us µs usec micros microsecond microseconds"),
    ("s", Fraction(1, 10**9), "ns nsec nanos nanosecond nanoseconds"),
    ("s", Fraction(60), "min mins minute minutes"),
    ("s", Fraction(_HOUR), "h hr hrs hour hours"),
    ("s", Fraction(_DAY), "d day days"),
    ("s", Fraction(7 * _DAY), "w week weeks"),
    ("s", Fraction(30 * _DAY), "month months"),
    ("s", Fraction(365 * _DAY), "y year years"),
    ("byte", Fraction(1), "b byte bytes octet octets"),
    ("byte", Fraction(10**3), "k kb kilobyte kilobytes"),
    ("byte", Fraction(10**6), "m mb megabyte megabytes"),
    ("byte", Fraction(10**9), "g gb gigabyte gigabytes"),
    ("byte", Fraction(10**12), "tb terabyte terabytes"),
    ("byte", Fraction(2**10), "kib kibibyte kibibytes"),
    ("byte", Fraction(2**20), "mib mebibyte mebibytes"),
    ("byte", Fraction(2**30), "gib gibibyte gibibytes"),
    ("byte", Fraction(2**40), "tib tebibyte tebibytes"),
    ("percent", Fraction(1), "% percent pct percentage"),
)
UNITS = MappingProxyType({word: (base, factor) for base, factor, words in _UNITS for word in words.split()})
"""Word → base unit (``s``, ``byte``, ``percent``), and how many of it one is."""

# ``connections_min`` is a minimum, ``about_us`` no time.
_NO_SUFFIX = frozenset("b k m g w y d h s us min day week month year % byte".split())  # noqa: SIM905
UNIT_SUFFIXES = MappingProxyType({word: word for word in UNITS if word not in _NO_SUFFIX})
"""Words that end a name and say what its number is counted in: ``timeout_ms``, ``sizeInBytes``."""

# Letters behind a figure, without a blank: ``30s``, ``5m`` is minutes, ``64M`` a size.
ATTACHED = MappingProxyType(
    {
        **{word: unit for word, unit in UNITS.items() if len(word) > 1 or word in "shdw%"},
        **{"m": UNITS["min"], "B": UNITS["byte"], "M": UNITS["mib"], "G": UNITS["gib"]},
        **dict.fromkeys("Kk", UNITS["kib"]),
    }
)


OCTAL = "octal"
"""The unit of a number whose digits are octal: ``0644``, which pages also write as ``644``."""
MAX_BITS = 512
"""Of a number: ``1 << 10**9`` is no value."""
MAX_LISTED = 64


@dataclass(frozen=True, slots=True)
class Value:
    """A value in canonical form. The fields have the same meaning as in ``Fact``.

    Attributes:
        text: the canonical text. Two values with the same text, kind and unit are equal.
        is_fallback: whether it is the default in an expression that first names another value (``options.port || 30``).
    """

    kind: ValueKind
    text: str
    unit: str | None = None
    is_fallback: bool = False

    @property
    def is_literal(self) -> bool:
        """Tell whether the value is known."""
        return self.kind != "symbol"


NONE = Value("none", "none")
UNLIMITED = Value("unlimited", "unlimited")
TRUE = Value("boolean", "true")
FALSE = Value("boolean", "false")
UNKNOWN = Value("symbol", "")
"""What can be read, but not known."""


def number(value: Fraction, unit: str | None = None) -> Value:
    """Return a number; ``unit`` is canonical (``s``, ``byte``).

    Raises:
        OverflowError: the number has more than ``MAX_BITS`` bits.
    """
    if max(abs(value.numerator).bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise OverflowError
    return Value("number", str(value), unit)


def measured(value: Fraction, word: str) -> Value:
    """Return a number in a unit of ``units.UNITS``, converted to its canonical unit. Errors are as in ``number``."""
    base, factor = UNITS[word]
    return number(value * factor, base)


def measured_in(value: Value, unit: str | None) -> Value:
    """Return a plain number with the unit of its name or sentence (``ms``); return any other value unchanged."""
    if unit is None or value.kind != "number" or value.unit is not None or unit not in UNITS:
        return value
    try:
        return replace(measured(Fraction(value.text), unit), is_fallback=value.is_fallback)
    except OverflowError:
        return value


def list_of(items: Sequence[Value]) -> Value:
    """Return a list of values; ``UNKNOWN`` if any is unknown, or if there are more than ``MAX_LISTED``."""
    if len(items) > MAX_LISTED or not all(item.is_literal for item in items):
        return UNKNOWN
    return Value("list", json.dumps([item.text for item in items], ensure_ascii=False))


def listed(text: str) -> Iterator[str]:
    """Yield the members in a list's canonical text."""
    yield from (str(one) for one in json.loads(text))


_SHOWN_TIMES = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_SHOWN_SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def show(kind: ValueKind, text: str, unit: str | None) -> str:
    """Return a canonical value for people: ``48 hours``, ``64 KiB``, ``"json"``; ``0.85`` if ``unit`` is ``None``."""
    if kind == "string":
        return f'"{text}"'
    if kind == "list":
        return "[" + ", ".join(listed(text)) + "]"
    if kind != "number":
        return text
    value = Fraction(text)
    if unit == "s":
        for name, seconds in _SHOWN_TIMES:
            if value and value % seconds == 0:
                return f"{value / seconds} {name}{'' if value == seconds else 's'}"
        return f"{float(value * 1000):g} ms"
    if unit == "byte":
        found = next((f"{value / size} {name}" for name, size in _SHOWN_SIZES if value and value % size == 0), None)
        return found or f"{_written(value)} bytes"
    if unit == OCTAL:
        return f"0{int(value):o}"
    return _written(value) + {None: "", "percent": "%"}.get(unit, f" {unit}")


def stated(fact: Fact) -> str:
    """Return the value that a fact states: ``1.2``, not ``6/5``.

    A denied value has ``not`` before it; a denied boolean is its opposite.
    """
    if fact.negated and fact.kind == "boolean":
        return "false" if fact.value == "true" else "true"
    value = str(float(Fraction(fact.value))) if fact.kind == "number" and "/" in fact.value else fact.value
    value = show(fact.kind, value, OCTAL) if fact.unit == OCTAL and value.isdigit() and not fact.negated else value
    return f"not {value}" if fact.negated else value


def _written(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    number = float(value)
    return f"{number:g}" if math.isfinite(number) else str(value)
