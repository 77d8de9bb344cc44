"""Read what documents say, any JSON, as values of a declared type."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from nornweave.core.text.dates import utc
from nornweave.core.types import JsonValue

MAX_CHARACTERS = 1_024
LARGEST_INTEGER = 2**53
"""Beyond it, JSON's numbers leave integers out."""
_LARGEST = 1e300
_INTEGER = re.compile(r"[+-]?\d{1,16}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
_BOOLEANS = {"true": "true", "false": "false"}


class UnreadableValueError(ValueError):
    """A value is not of the declared type; says what was expected."""


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value as it is compared: a text, a number, or the first and the last moment that a date stands for."""

    text: str | None = None
    number: float | None = None
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class TypedReading:
    """What a value came to: typed values, and why a part of it has none."""

    values: tuple[TypedValue, ...] = ()
    problem: str | None = None


def read_values(type_: str, said: JsonValue) -> TypedReading:
    """Read a value, or each member of a list, as ``keyword``, ``integer``, ``number``, ``boolean`` or ``date``.

    Texts count as the number, boolean or date that they spell, for reST, HTML and paths have nothing but texts. Nulls
    and blank texts say nothing.
    """
    members = said if isinstance(said, Sequence) and not isinstance(said, str) else [said]
    values: list[TypedValue] = []
    problem = None
    for member in members:
        if member is None or (isinstance(member, str) and not member.strip()):
            continue
        try:
            values.append(_READERS[type_](member))
        except UnreadableValueError as error:
            problem = problem or str(error)
    return TypedReading(tuple(dict.fromkeys(values)), problem)


def _keyword(said: JsonValue) -> TypedValue:
    if isinstance(said, bool):
        return TypedValue(text=str(said).lower())
    if not isinstance(said, str | int | float):
        raise UnreadableValueError("expected a text, or a list of texts")
    text = str(said)
    if len(text) > MAX_CHARACTERS:
        raise UnreadableValueError(f"expected at most {MAX_CHARACTERS:,} characters")
    return TypedValue(text=text)


def _integer(said: JsonValue) -> TypedValue:
    number: float | None = None
    if isinstance(said, str) and _INTEGER.fullmatch(said.strip()):
        number = int(said)
    elif (isinstance(said, int) and not isinstance(said, bool)) or (isinstance(said, float) and said.is_integer()):
        number = said
    if number is None or abs(number) > LARGEST_INTEGER:
        raise UnreadableValueError("expected an integer from -2^53 to 2^53")
    return TypedValue(number=float(number))


def _number(said: JsonValue) -> TypedValue:
    if isinstance(said, str):
        is_number = len(said) <= MAX_CHARACTERS and _NUMBER.fullmatch(said.strip()) is not None
    else:
        is_number = isinstance(said, int | float) and not isinstance(said, bool)
    number = float(str(said)) if is_number else math.nan
    if not abs(number) <= _LARGEST:
        raise UnreadableValueError("expected a number")
    return TypedValue(number=number)


def _boolean(said: JsonValue) -> TypedValue:
    text = str(said).strip().lower() if isinstance(said, bool | str) else ""
    if text not in _BOOLEANS:
        raise UnreadableValueError("expected true or false")
    return TypedValue(text=text)


def _date(said: JsonValue) -> TypedValue:
    text = str(said).strip() if isinstance(said, str | int) and not isinstance(said, bool) else ""
    covered = covered_by(text)
    if covered is None:
        raise UnreadableValueError("expected a date such as 2026-01-15, or a time such as 2026-01-15T10:00:00Z")
    return TypedValue(first=covered[0], last=covered[1])


def covered_by(text: str) -> tuple[datetime, datetime] | None:
    """Return the first and the last moment of a year, a month, a day or a time in UTC; ``None`` if it is none."""
    try:
        if match := _DAY.fullmatch(text):
            year, month, day = (int(part) if part else None for part in match.groups())
            first = date(year or 0, month or 1, day or 1)
            last = date(first.year, month or 12, day or monthrange(first.year, month or 12)[1])
            return datetime.combine(first, time.min, UTC), datetime.combine(last, time.max, UTC)
        moment = utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None
    return moment, moment


_READERS = {"keyword": _keyword, "integer": _integer, "number": _number, "boolean": _boolean, "date": _date}
