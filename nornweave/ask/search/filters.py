"""Translate the filters of a request into the conditions that chunks must meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nornweave.ask.search.filter_values import (
    boolean_value,
    date_condition,
    moment_range,
    moment_value,
    number_condition,
    place_of,
    relative_glob,
    shown,
    text_value,
    text_values,
)
from nornweave.config import FilterSettings
from nornweave.core.errors import QueryError
from nornweave.core.types import JsonValue
from nornweave.index.conditions import AnyName, AnyOf, Between, Condition, PathGlob, Under

# Names are found by their words, whatever their order and however much of them is said.
_NAMES = frozenset({"authors"})


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
        raise QueryError(prefix, f"expected an object of filter keys and values, found {shown(values)}")
    return tuple(
        _condition(declared_filter(declared, key, prefix), value, f"{prefix}.{key}") for key, value in values.items()
    )


def has_few_values(declared: FilterSettings) -> bool:
    """Tell whether a filter takes one of the values that chunks have: no pattern, heading or time."""
    return declared.type in {"string", "list"} and declared.column not in {"path", "heading_path"}


def declared_filter(declared: Sequence[FilterSettings], key: str, prefix: str) -> FilterSettings:
    """Return the filter of a key.

    Raises:
        QueryError: there is none; says which there are.
    """
    for each in declared:
        if each.key == key:
            return each
    allowed = ", ".join(sorted(each.key for each in declared)) or "none"
    raise QueryError(place_of(prefix, key), f"no such filter; allowed here: {allowed}")


def _condition(declared: FilterSettings, value: JsonValue, where: str) -> Condition:
    if declared.is_declared:
        return _declared_condition(declared, value, where)
    if declared.type == "datetime":
        return Between(declared.column, start=moment_value(value, where))
    if declared.type == "date_range":
        return moment_range(declared.column, value, where)
    if declared.type == "list":
        texts = text_values(value, where)
        return AnyName(declared.column, texts) if declared.column in _NAMES else AnyOf(declared.column, texts)
    text = text_value(value, where, "string")
    if declared.column == "path":
        return PathGlob(relative_glob(text, where))
    return Under(text) if declared.column == "heading_path" else AnyOf(declared.column, (text,))


def _declared_condition(declared: FilterSettings, value: JsonValue, where: str) -> Condition:
    column = declared.column
    match declared.type:
        case "integer" | "number":
            return number_condition(column, value, where, declared.type)
        case "boolean":
            return AnyOf(column, (boolean_value(value, where),))
        case "date":
            return date_condition(column, value, where)
        case _:
            return AnyOf(column, text_values(value, where, "keyword"))
