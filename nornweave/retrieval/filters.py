"""Translate the filters of a request into the conditions that chunks must meet."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import NoReturn

from nornweave.errors import QueryError
from nornweave.settings import FilterSettings
from nornweave.store.conditions import AnyName, AnyOf, Between, Condition, PathGlob, Under
from nornweave.text.dates import utc
from nornweave.types import Domain, JsonValue

MAX_CHARACTERS = 1024
MAX_VALUES = 100
# Names are found by their words, whatever their order and however much of them is said.
_NAMES = frozenset({"authors"})
_EXPECTED = {
    "string": "a string",
    "list": "a list of strings",
    "datetime": "an ISO 8601 date or time as a string, such as '2026-01-15T00:00:00Z'",
    "date_range": "an object with 'start', 'end' or both, such as {\"start\": \"2026-01-15\"}",
}


def read_filters(
    declared: Sequence[FilterSettings], values: Mapping[str, JsonValue], prefix: str
) -> tuple[Condition, ...]:
    """Translate the filters of one domain into conditions.

    Args:
        declared: the filters of the domain.
        values: filter key → value, as JSON has them.
        prefix: how errors name the place, such as ``filters.code``.

    Returns:
        One condition per filter, in the order of ``values``.

    Raises:
        QueryError: a key that the domain does not declare, a value of another type than declared, blank or empty, with
            a NUL or half a surrogate pair, of more than ``MAX_CHARACTERS`` characters or ``MAX_VALUES`` values; a date
            that is none; a range without ends or from late to early; ``..`` in a path.
    """
    if not isinstance(values, Mapping):
        raise QueryError(prefix, f"expected an object of filter keys and values, found {_shown(values)}")
    return tuple(
        _condition(_declared(declared, key, prefix), value, f"{prefix}.{key}") for key, value in values.items()
    )


def has_few_values(declared: FilterSettings) -> bool:
    """Tell whether a filter takes one of the values that chunks have: no pattern, heading or time."""
    return declared.type in {"string", "list"} and declared.column not in {"path", "heading_path"}


def parse_filter_options(
    options: Sequence[str], declared: Mapping[Domain, Sequence[FilterSettings]]
) -> dict[Domain, dict[str, JsonValue]]:
    """Parse the values of ``--filter`` on the command line.

    ``code.language=python`` · lists separated by commas, with a value in double quotes where it holds one itself, and
    repeated to add to them: ``research.authors=Vaswani,"Shazeer, N."`` · ``date_range`` as ``2026-01-01..2026-02-01``,
    ``2026-01-01..`` or ``..2026-02-01``.

    Returns:
        Per domain filter key → value; what ``read_filters`` still has to check.

    Raises:
        QueryError: no ``DOMAIN.KEY=VALUE``; an unknown domain or key; a second value where one is allowed.
    """
    parsed: dict[Domain, dict[str, JsonValue]] = {}
    for option in options:
        name, equals, text = option.partition("=")
        domain_name, dot, key = name.strip().partition(".")
        if not (equals and dot):
            raise QueryError("filters", f"{_shown(option)} is not DOMAIN.KEY=VALUE, such as code.language=python")
        domain = _domain(domain_name, declared)
        filters = parsed.setdefault(domain, {})
        where = f"filters.{domain.value}.{key}"
        value = _parsed(_declared(declared[domain], key, f"filters.{domain.value}"), text, where)
        before = filters.get(key)
        if isinstance(before, list) and isinstance(value, list):
            value = [*before, *value]
        elif before is not None:
            raise QueryError(where, "given twice; it takes one value")
        filters[key] = value
    return parsed


def _domain(name: str, declared: Mapping[Domain, Sequence[FilterSettings]]) -> Domain:
    for domain in declared:
        if domain.value == name:
            return domain
    raise QueryError(
        "filters", f"no domain {_shown(name)}; there are: {', '.join(domain.value for domain in declared)}"
    )


def _declared(declared: Sequence[FilterSettings], key: str, prefix: str) -> FilterSettings:
    for each in declared:
        if each.key == key:
            return each
    allowed = ", ".join(sorted(each.key for each in declared)) or "none"
    raise QueryError(_place(prefix, key), f"no such filter; allowed here: {allowed}")


def _parsed(declared: FilterSettings, text: str, where: str) -> JsonValue:
    if declared.type == "list":
        try:
            return list(next(csv.reader([text], skipinitialspace=True, strict=True), []))
        except csv.Error as error:
            raise QueryError(where, f"{_shown(text)} cannot be split at its commas: {error}") from error
    if declared.type == "date_range":
        start, dots, end = text.partition("..")
        if not dots:
            raise QueryError(where, f"{_shown(text)} is not START..END, START.. or ..END")
        return {name: side for name, side in (("start", start.strip()), ("end", end.strip())) if side}
    return text


def _condition(declared: FilterSettings, value: JsonValue, where: str) -> Condition:
    if declared.type == "datetime":
        return Between(declared.column, start=_moment(value, where))
    if declared.type == "date_range":
        return _range(declared.column, value, where)
    if declared.type == "list":
        texts = _texts(value, where)
        return AnyName(declared.column, texts) if declared.column in _NAMES else AnyOf(declared.column, texts)
    text = _text(value, where, "string")
    if declared.column == "path":
        return PathGlob(_relative(text, where))
    return Under(text) if declared.column == "heading_path" else AnyOf(declared.column, (text,))


def _text(value: JsonValue, where: str, type_: str) -> str:
    if not isinstance(value, str):
        _refuse(value, where, type_)
    if not value.strip():
        raise QueryError(where, f"is blank; expected {_EXPECTED[type_]}")
    if len(value) > MAX_CHARACTERS:
        raise QueryError(where, f"has {len(value)} characters; at most {MAX_CHARACTERS} are allowed")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise QueryError(where, f"{_shown(value)} holds a NUL or half a surrogate pair; expected Unicode text")
    return value


def _texts(value: JsonValue, where: str) -> tuple[str, ...]:
    """Read a list; a string is taken as a list of one."""
    if isinstance(value, str):
        return (_text(value, where, "list"),)
    if not isinstance(value, Sequence):
        _refuse(value, where, "list")
    if not 1 <= len(value) <= MAX_VALUES:
        raise QueryError(where, f"has {len(value)} values; expected 1 to {MAX_VALUES}")
    return tuple(_text(each, f"{where}[{number}]", "string") for number, each in enumerate(value))


def _relative(glob: str, where: str) -> str:
    if ".." in glob.split("/"):
        raise QueryError(where, f"{_shown(glob)} holds '..'; paths are relative to their source, such as src/**")
    return glob


def _range(column: str, value: JsonValue, where: str) -> Between:
    if not isinstance(value, Mapping):
        _refuse(value, where, "date_range")
    if unknown := [key for key in value if key not in {"start", "end"}]:
        raise QueryError(_place(where, unknown[0]), "no such key; allowed here: end, start")
    stated = {key: side for key, side in value.items() if side is not None}
    if not stated:
        raise QueryError(where, f"is empty; expected {_EXPECTED['date_range']}")
    start = _moment(stated["start"], f"{where}.start") if "start" in stated else None
    end = _moment(stated["end"], f"{where}.end", is_end=True) if "end" in stated else None
    if start is not None and end is not None and start > end:
        raise QueryError(where, f"starts at {start.isoformat()}, after its end at {end.isoformat()}")
    return Between(column, start=start, end=end)


def _moment(value: JsonValue, where: str, *, is_end: bool = False) -> datetime:
    """Read a moment in UTC; a date without a time is that day's first moment, as the end of a range its last."""
    text = _text(value, where, "datetime").strip()
    try:
        return datetime.combine(date.fromisoformat(text), time.max if is_end else time.min, UTC)
    except ValueError:
        pass  # no date alone
    try:
        moment = datetime.fromisoformat(text)
        return utc(moment)
    except (ValueError, OverflowError) as error:
        raise QueryError(where, f"{_shown(value)} is not a date; expected {_EXPECTED['datetime']}") from error


def _refuse(value: JsonValue, where: str, type_: str) -> NoReturn:
    raise QueryError(where, f"expected {_EXPECTED[type_]}, found {_shown(value)}")


def _shown(value: object) -> str:
    """Show what was found, cut where it is long; what cannot be printed comes escaped."""
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def _place(prefix: str, key: str) -> str:
    """Name a place by a key that may be anything."""
    return f"{prefix}.{key if key.isprintable() else ascii(key)[1:-1]}"[:MAX_CHARACTERS]
