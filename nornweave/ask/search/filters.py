"""Translate the filters of a request into the conditions that chunks must meet.

Values are JSON values, or text from the command line and the page. Every error names the place, and what is
expected there.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import NoReturn

from nornweave.config import FilterSettings
from nornweave.core.errors import QueryError
from nornweave.core.text.dates import utc
from nornweave.core.types import Domain, JsonValue
from nornweave.index.searching.conditions import AnyName, AnyNumber, AnyOf, Between, Condition, InRange, PathGlob, Under

MAX_CHARACTERS = 1024
MAX_VALUES = 100
MAX_NUMBER = 1e300
_DATE = "an ISO 8601 date or time as a string, such as '2026-01-15T00:00:00Z'"
_EXPECTED = {
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
# Names are found by their words, whatever their order and however much of them is said.
_NAMES = frozenset({"authors"})
_PATHS = frozenset({"path", "changed"})
NODE_TYPE = "node_type"
# Grammars call one thing by several names: ``function_definition``, ``function_declaration``, ``function_item``.
_KINDS_END = ("_definition", "_declaration", "_item", "_specifier", "_statement", "_block", "_signature")


def kind_of(node_type: str) -> str:
    """Return a grammar's name of a kind of code without its ending: ``function_definition`` → ``function``."""
    return next((node_type.removesuffix(ending) for ending in _KINDS_END if node_type.endswith(ending)), node_type)


def read_filters(
    declared: Sequence[FilterSettings], values: Mapping[str, JsonValue], prefix: str
) -> tuple[Condition, ...]:
    """Translate the filters of one domain into conditions.

    Returns:
        One condition per filter, in the order of ``values``.

    Raises:
        QueryError: a key that the domain does not declare, a value of another type than declared, blank or empty, with
            a NUL or half a surrogate pair, of more than ``MAX_CHARACTERS`` characters or ``MAX_VALUES`` values; a date
            that is not valid; a range without ends or from late to early; ``..`` in a path.
    """
    if not isinstance(values, Mapping):
        raise QueryError(prefix, f"expected an object of filter keys and values, found {shown(values)}")
    return tuple(
        _condition(declared_filter(declared, key, prefix), value, f"{prefix}.{key}") for key, value in values.items()
    )


def has_few_values(declared: FilterSettings) -> bool:
    """Tell whether a filter selects among a few values of chunks, not by path, heading or time."""
    return declared.type in {"string", "list"} and declared.column not in {*_PATHS, "heading_path"}


def declared_filter(declared: Sequence[FilterSettings], key: str, prefix: str) -> FilterSettings:
    """Return the declared filter with this key.

    Raises:
        QueryError: there is none; the message lists the declared ones.
    """
    for each in declared:
        if each.key == key:
            return each
    allowed = ", ".join(sorted(each.key for each in declared)) or "none"
    raise QueryError(_place_of(prefix, key), f"no such filter; allowed here: {allowed}")


def shown(value: object) -> str:
    """Return a value for a message. Long values are cut, and unprintable characters escaped."""
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def _condition(declared: FilterSettings, value: JsonValue, where: str) -> Condition:  # noqa: C901 - one case a kind
    column, kind = declared.column, declared.type
    match kind:
        case "datetime":
            return Between(column, start=_moment(value, where))
        case "date_range":
            return _moments(column, value, where, kind)
        case "list":
            texts = _texts(value, where, kind)
            return AnyName(column, texts) if column in _NAMES else AnyOf(column, texts)
        case "keyword":
            return AnyOf(column, _texts(value, where, kind))
        case "integer" | "number":
            return _numbers(column, value, where, kind)
        case "boolean":
            if not isinstance(value, bool):
                _refuse(value, where, kind)
            return AnyOf(column, (str(value).lower(),))  # as the store spells them
        case "date":  # a day is met by every moment of it
            if isinstance(value, Mapping):
                return _moments(column, value, where, kind)
            return Between(column, start=_moment(value, where), end=_moment(value, where, is_end=True))
    text = _text(value, where, kind)
    if column in _PATHS:
        if ".." in text.split("/"):
            raise QueryError(where, f"{shown(text)} holds '..'; paths are relative to their source, such as src/**")
        return PathGlob(text, or_changed=column == "changed")
    if column == NODE_TYPE:
        return AnyOf(column, (text, *(f"{text}{ending}" for ending in _KINDS_END)))
    return Under(text) if column == "heading_path" else AnyOf(column, (text,))


def _text(value: JsonValue, where: str, kind: str) -> str:
    """Return a value that is a text and not blank; refuse any other value."""
    if not isinstance(value, str):
        _refuse(value, where, kind)
    if not value.strip():
        raise QueryError(where, f"is blank; expected {_EXPECTED[kind]}")
    if len(value) > MAX_CHARACTERS:
        raise QueryError(where, f"has {len(value)} characters; at most {MAX_CHARACTERS} are allowed")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise QueryError(where, f"{shown(value)} holds a NUL or half a surrogate pair; expected Unicode text")
    return value


def _texts(value: JsonValue, where: str, kind: str) -> tuple[str, ...]:
    """Return the texts of a list, or a single text as a list of one; refuse any other value."""
    if isinstance(value, str):
        return (_text(value, where, kind),)
    if not isinstance(value, Sequence):
        _refuse(value, where, kind)
    _check_count(value, where)
    return tuple(_text(each, f"{where}[{number}]", "string") for number, each in enumerate(value))


def _numbers(column: str, value: JsonValue, where: str, kind: str) -> AnyNumber | InRange:
    """Return the condition for a number, a list of alternative numbers, or a range that includes both ends."""
    if isinstance(value, Mapping):
        ends = {name: _number(end, f"{where}.{name}", kind) for name, end in _ends(value, where, ("min", "max"), kind)}
        least, most = ends.get("min"), ends.get("max")
        if least is not None and most is not None and least > most:
            raise QueryError(where, f"starts at {least:g}, above its end at {most:g}")
        return InRange(column, least, most)
    if isinstance(value, Sequence) and not isinstance(value, str):
        _check_count(value, where)
        return AnyNumber(column, tuple(_number(each, f"{where}[{place}]", kind) for place, each in enumerate(value)))
    return AnyNumber(column, (_number(value, where, kind),))


def _moments(column: str, value: JsonValue, where: str, kind: str) -> Between:
    """Return the condition for a range of moments that includes both ends."""
    if not isinstance(value, Mapping):
        _refuse(value, where, kind)
    stated = _ends(value, where, ("start", "end"), kind)
    ends = {name: _moment(end, f"{where}.{name}", is_end=name == "end") for name, end in stated}
    start, end = ends.get("start"), ends.get("end")
    if start is not None and end is not None and start > end:
        raise QueryError(where, f"starts at {start.isoformat()}, after its end at {end.isoformat()}")
    return Between(column, start=start, end=end)


def _moment(value: JsonValue, where: str, *, is_end: bool = False) -> datetime:
    """Return a moment in UTC. A date alone is the first moment of its day or, if it ends a range, the last moment."""
    text = _text(value, where, "datetime").strip()
    try:
        return datetime.combine(date.fromisoformat(text), time.max if is_end else time.min, UTC)
    except ValueError:
        pass  # no date alone
    try:
        return utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        raise QueryError(where, f"{shown(value)} is not a date; expected {_EXPECTED['datetime']}") from error


def _number(value: JsonValue, where: str, kind: str) -> float:
    allowed = int if kind == "integer" else int | float
    if isinstance(value, bool) or not isinstance(value, allowed) or not abs(value) <= MAX_NUMBER:
        _refuse(value, where, kind)
    return float(value)


def _ends(
    value: Mapping[str, JsonValue], where: str, names: tuple[str, str], kind: str
) -> Sequence[tuple[str, JsonValue]]:
    """Return the given ends of a range in the order of ``names``. At least one is required."""
    if unknown := [key for key in value if key not in names]:
        raise QueryError(_place_of(where, unknown[0]), f"no such key; allowed here: {', '.join(sorted(names))}")
    stated = [(name, value[name]) for name in names if value.get(name) is not None]
    if not stated:
        raise QueryError(where, f"is empty; expected {_EXPECTED[kind]}")
    return stated


def _check_count(values: Sequence[JsonValue], where: str) -> None:
    if not 1 <= len(values) <= MAX_VALUES:
        raise QueryError(where, f"has {len(values)} values; expected 1 to {MAX_VALUES}")


def _refuse(value: JsonValue, where: str, kind: str) -> NoReturn:
    """Raise a ``QueryError``, because a value does not have the type of its filter."""
    raise QueryError(where, f"expected {_EXPECTED[kind]}, found {shown(value)}")


def _place_of(prefix: str, key: str) -> str:
    """Return ``prefix.key``, the place of a key in the request. Unprintable characters of the key are escaped."""
    return f"{prefix}.{key if key.isprintable() else ascii(key)[1:-1]}"[:MAX_CHARACTERS]


RANGE_ENDS: Mapping[str, tuple[str, str]] = {
    "date_range": ("start", "end"),
    "date": ("start", "end"),
    "integer": ("min", "max"),
    "number": ("min", "max"),
}
"""How the ends of a range are called, by the type of the filter."""


def parse_filter_options(
    options: Sequence[str], declared: Mapping[Domain, Sequence[FilterSettings]]
) -> dict[Domain, dict[str, JsonValue]]:
    """Parse the values of ``--filter`` on the command line.

    A text: ``code.language=python``. A list, with commas between values, and double quotes around a value that has a
    comma: ``research.authors=Vaswani,"Shazeer, N."``; a repeated option adds to the list. A range of dates:
    ``2026-01-01..2026-02-01``, ``2026-01-01..`` or ``..2026-02-01``. Numbers: ``3``, ``3,4`` or ``2..4``.

    Returns:
        Domain → filter key → value; ``read_filters`` still has to check the values.

    Raises:
        QueryError: an option is not ``DOMAIN.KEY=VALUE``, names an unknown domain or key, or gives a second value to a
            filter that takes only one.
    """
    parsed: dict[Domain, dict[str, JsonValue]] = {}
    for option in options:
        name, equals, text = option.partition("=")
        domain_name, dot, key = name.strip().partition(".")
        if not (equals and dot):
            raise QueryError("filters", f"{shown(option)} is not DOMAIN.KEY=VALUE, such as code.language=python")
        domain = next((each for each in declared if each.value == domain_name), None)
        if domain is None:
            known = ", ".join(each.value for each in declared)
            raise QueryError("filters", f"no domain {shown(domain_name)}; there are: {known}")
        filters = parsed.setdefault(domain, {})
        where = f"filters.{domain.value}.{key}"
        value = value_from_text(declared_filter(declared[domain], key, f"filters.{domain.value}").type, text, where)
        before = filters.get(key)
        if isinstance(before, list) and isinstance(value, list):
            value = [*before, *value]
        elif before is not None:
            raise QueryError(where, "given twice; it takes one value")
        filters[key] = value
    return parsed


def value_from_text(type_: str, text: str, where: str) -> JsonValue:
    """Convert a text to a value. ``read_filters`` still has to check it.

    Raises:
        QueryError: the type needs a list, range, number or boolean, and the text is not one.
    """
    if type_ in {"list", "keyword"}:
        return list(_members(text, where))
    if type_ in RANGE_ENDS and ".." in text:
        start, _, end = text.partition("..")
        sides = zip(RANGE_ENDS[type_], (start.strip(), end.strip()), strict=True)
        return {name: plain_value(type_, side, where) for name, side in sides if side}
    if type_ == "date_range":
        raise QueryError(where, f"{shown(text)} is not START..END, START.. or ..END")
    if type_ in {"integer", "number"}:
        return [plain_value(type_, member, where) for member in _members(text, where)]
    return plain_value(type_, text, where)


def plain_value(type_: str, text: str, where: str) -> JsonValue:
    """Convert a text to one number, boolean or text.

    Raises:
        QueryError: the type needs a number or boolean, and the text is not one.
    """
    try:
        if type_ in {"integer", "number"} and len(text) <= _MAX_DIGITS:
            return int(text) if type_ == "integer" else float(text)
    except ValueError:
        pass  # said below
    if type_ == "boolean" and text.strip().lower() in _BOOLEANS:
        return _BOOLEANS[text.strip().lower()]
    if type_ in {"integer", "number", "boolean"}:
        article = "an" if type_ == "integer" else "a"
        raise QueryError(where, f"{shown(text)} is not {article} {type_}")
    return text


_BOOLEANS = {"true": True, "false": False}
_MAX_DIGITS = 400


def _members(text: str, where: str) -> Sequence[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise QueryError(where, f"{shown(text)} cannot be split at its commas: {error}") from error
