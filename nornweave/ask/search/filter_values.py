"""Check the values of filters, as JSON has them; every error names the place and what is expected there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import NoReturn

from nornweave.core.errors import QueryError
from nornweave.core.text.dates import utc
from nornweave.core.types import JsonValue
from nornweave.index.conditions import AnyNumber, Between, InRange

MAX_CHARACTERS = 1024
MAX_VALUES = 100
MAX_NUMBER = 1e300
_DATE = "an ISO 8601 date or time as a string, such as '2026-01-15T00:00:00Z'"
EXPECTED = {
    "string": "a string",
    "list": "a list of strings",
    "datetime": _DATE,
    "date_range": "an object with 'start', 'end' or both, such as {\"start\": \"2026-01-15\"}",
    "keyword": "a string or a list of strings",
    "integer": "an integer, a list of integers, or an object with 'min', 'max' or both",
    "number": "a number, a list of numbers, or an object with 'min', 'max' or both",
    "boolean": "true or false",
    "date": f"{_DATE}, or an object with 'start', 'end' or both",
}


def text_value(value: JsonValue, where: str, type_: str) -> str:
    """Read a text that is not blank."""
    if not isinstance(value, str):
        refuse(value, where, type_)
    if not value.strip():
        raise QueryError(where, f"is blank; expected {EXPECTED[type_]}")
    if len(value) > MAX_CHARACTERS:
        raise QueryError(where, f"has {len(value)} characters; at most {MAX_CHARACTERS} are allowed")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise QueryError(where, f"{shown(value)} holds a NUL or half a surrogate pair; expected Unicode text")
    return value


def text_values(value: JsonValue, where: str, type_: str = "list") -> tuple[str, ...]:
    """Read a list; a string is taken as a list of one."""
    if isinstance(value, str):
        return (text_value(value, where, type_),)
    if not isinstance(value, Sequence):
        refuse(value, where, type_)
    _check_count(value, where)
    return tuple(text_value(each, f"{where}[{number}]", "string") for number, each in enumerate(value))


def number_condition(column: str, value: JsonValue, where: str, type_: str) -> AnyNumber | InRange:
    """Read a number, a list of numbers, of which any may be met, or a range with both ends included."""
    if isinstance(value, Mapping):
        sides = _sides(value, where, ("min", "max"), type_)
        least, most = (
            _number(sides[name], f"{where}.{name}", type_) if name in sides else None for name in ("min", "max")
        )
        if least is not None and most is not None and least > most:
            raise QueryError(where, f"starts at {least:g}, above its end at {most:g}")
        return InRange(column, least, most)
    if isinstance(value, Sequence) and not isinstance(value, str):
        _check_count(value, where)
        numbers = tuple(_number(each, f"{where}[{number}]", type_) for number, each in enumerate(value))
        return AnyNumber(column, numbers)
    return AnyNumber(column, (_number(value, where, type_),))


def boolean_value(value: JsonValue, where: str) -> str:
    """Read true or false, as the store spells them."""
    if not isinstance(value, bool):
        refuse(value, where, "boolean")
    return str(value).lower()


def date_condition(column: str, value: JsonValue, where: str) -> Between:
    """Read a day, a moment, or a range of them; a day is met by every moment of it."""
    if isinstance(value, Mapping):
        return moment_range(column, value, where, "date")
    return Between(column, start=moment_value(value, where), end=moment_value(value, where, is_end=True))


def relative_glob(glob: str, where: str) -> str:
    """Read a glob that does not leave its source."""
    if ".." in glob.split("/"):
        raise QueryError(where, f"{shown(glob)} holds '..'; paths are relative to their source, such as src/**")
    return glob


def moment_range(column: str, value: JsonValue, where: str, type_: str = "date_range") -> Between:
    """Read a range of moments, both ends included."""
    if not isinstance(value, Mapping):
        refuse(value, where, type_)
    stated = _sides(value, where, ("start", "end"), type_)
    start = moment_value(stated["start"], f"{where}.start") if "start" in stated else None
    end = moment_value(stated["end"], f"{where}.end", is_end=True) if "end" in stated else None
    if start is not None and end is not None and start > end:
        raise QueryError(where, f"starts at {start.isoformat()}, after its end at {end.isoformat()}")
    return Between(column, start=start, end=end)


def moment_value(value: JsonValue, where: str, *, is_end: bool = False) -> datetime:
    """Read a moment in UTC; a date without a time is that day's first moment, as the end of a range its last."""
    text = text_value(value, where, "datetime").strip()
    try:
        return datetime.combine(date.fromisoformat(text), time.max if is_end else time.min, UTC)
    except ValueError:
        pass  # no date alone
    try:
        moment = datetime.fromisoformat(text)
        return utc(moment)
    except (ValueError, OverflowError) as error:
        raise QueryError(where, f"{shown(value)} is not a date; expected {EXPECTED['datetime']}") from error


def _sides(value: Mapping[str, JsonValue], where: str, names: tuple[str, str], type_: str) -> Mapping[str, JsonValue]:
    """Return the ends of a range that are stated, one at least."""
    if unknown := [key for key in value if key not in names]:
        raise QueryError(place_of(where, unknown[0]), f"no such key; allowed here: {', '.join(sorted(names))}")
    stated = {key: side for key, side in value.items() if side is not None}
    if not stated:
        raise QueryError(where, f"is empty; expected {EXPECTED[type_]}")
    return stated


def _number(value: JsonValue, where: str, type_: str) -> float:
    allowed = int if type_ == "integer" else int | float
    if isinstance(value, bool) or not isinstance(value, allowed) or not abs(value) <= MAX_NUMBER:
        refuse(value, where, type_)
    return float(value)


def _check_count(values: Sequence[JsonValue], where: str) -> None:
    if not 1 <= len(values) <= MAX_VALUES:
        raise QueryError(where, f"has {len(values)} values; expected 1 to {MAX_VALUES}")


def refuse(value: JsonValue, where: str, type_: str) -> NoReturn:
    """Say that a value is of another type than its filter."""
    raise QueryError(where, f"expected {EXPECTED[type_]}, found {shown(value)}")


def shown(value: object) -> str:
    """Show what was found, cut where it is long; what cannot be printed comes escaped."""
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def place_of(prefix: str, key: str) -> str:
    """Name a place by a key that may be anything."""
    return f"{prefix}.{key if key.isprintable() else ascii(key)[1:-1]}"[:MAX_CHARACTERS]
