"""Values in canonical form: their kinds, units of numbers, and how they are shown to people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from nornweave.core.types import ValueKind
from nornweave.disagree.facts.units import UNITS

MAX_BITS = 512
"""Of a number: ``1 << 10**9`` is no value."""
MAX_LISTED = 64


@dataclass(frozen=True, slots=True)
class Value:
    """A value in canonical form; see ``Fact``.

    Attributes:
        text: canonical; equal texts of equal kind and unit are equal values.
        is_fallback: the expression names something else first (``options.timeout || 30``): this is its default.
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
        OverflowError: it has more than ``MAX_BITS`` bits.
    """
    if max(abs(value.numerator).bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise OverflowError
    return Value("number", str(value), unit)


def measured(value: Fraction, word: str) -> Value:
    """Return a number of a unit of ``units.UNITS``, in its canonical unit; raises what ``number`` raises."""
    base, factor = UNITS[word]
    return number(value * factor, base)


def measured_in(value: Value, unit: str | None) -> Value:
    """Give a plain number the unit that its name or its sentence says (``ms``); other values stay as they are."""
    if unit is None or value.kind != "number" or value.unit is not None or unit not in UNITS:
        return value
    try:
        return replace(measured(Fraction(value.text), unit), is_fallback=value.is_fallback)
    except OverflowError:
        return value


def list_of(items: Sequence[Value]) -> Value:
    """Return a list of values; ``UNKNOWN`` if one of them is, or if there are more than ``MAX_LISTED``."""
    if len(items) > MAX_LISTED or not all(item.is_literal for item in items):
        return UNKNOWN
    return Value("list", json.dumps([item.text for item in items], ensure_ascii=False))


def listed(text: str) -> Iterator[str]:
    """Yield the members of a list's canonical text."""
    yield from (str(one) for one in json.loads(text))


_SHOWN_TIMES = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_SHOWN_SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def show(kind: ValueKind, text: str, unit: str | None) -> str:
    """Return a canonical value as people write it: ``48 hours``, ``64 KiB``, ``0.85``, ``"json"``."""
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
    return _written(value) + {None: "", "percent": "%"}.get(unit, f" {unit}")


def _written(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    number = float(value)
    return f"{number:g}" if math.isfinite(number) else str(value)
