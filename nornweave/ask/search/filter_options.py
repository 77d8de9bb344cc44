"""Read filters that are written as text: on the command line, and behind the question mark of the page."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence

from nornweave.ask.search.filters import declared_filter, shown
from nornweave.config import FilterSettings
from nornweave.core.errors import QueryError
from nornweave.core.types import Domain, JsonValue

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

    ``code.language=python`` · lists separated by commas, with a value in double quotes where it holds one itself, and
    repeated to add to them: ``research.authors=Vaswani,"Shazeer, N."`` · ``date_range`` as ``2026-01-01..2026-02-01``,
    ``2026-01-01..`` or ``..2026-02-01``; numbers as ``3``, ``3,4`` or ``2..4``.

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
            raise QueryError("filters", f"{shown(option)} is not DOMAIN.KEY=VALUE, such as code.language=python")
        domain = _domain(domain_name, declared)
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


def _domain(name: str, declared: Mapping[Domain, Sequence[FilterSettings]]) -> Domain:
    for domain in declared:
        if domain.value == name:
            return domain
    raise QueryError("filters", f"no domain {shown(name)}; there are: {', '.join(domain.value for domain in declared)}")


def value_from_text(type_: str, text: str, where: str) -> JsonValue:
    """Read a value that is written as text; ``read_filters`` still has to check it.

    Raises:
        QueryError: no list, range, number or boolean, where the type needs one.
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
    """Read one number, boolean or text.

    Raises:
        QueryError: no number or boolean, where the type needs one.
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
