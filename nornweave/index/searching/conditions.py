"""Conditions of filters, and the chunks of a generation that meet them.

Conditions are compared with the tables of ``facets.sql``; its macro ``facet_value`` normalises both stored and
requested values. Values are always bound parameters.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.config.domain import PLACEHOLDER
from nornweave.index.connection import Connection
from nornweave.index.port import Mask

SOURCE = "source"
"""The field that names the source of a document."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field has one of these values. Case does not matter, nor does the ``#`` of a channel."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnyName:
    """A name in the field has all words of one of these names, in any order. ``Vaswani`` matches ``Vaswani, A.``."""

    field: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathGlob:
    """The document's path in its source equals this or matches it as a glob, such as ``src/**``.

    With ``or_changed``, a commit that changed such a path also meets the condition.
    """

    pattern: str
    or_changed: bool = False


@dataclass(frozen=True, slots=True)
class AtPath:
    """The document's path in its source equals this."""

    path: str


@dataclass(frozen=True, slots=True)
class Under:
    """A heading above the chunk equals this one; case does not matter. ``A > B`` is a ``B`` directly under an ``A``."""

    heading: str


@dataclass(frozen=True, slots=True)
class Between:
    """A moment in the field lies between two moments, both included; ``None`` leaves an end open.

    A date without a time is the whole day. A chunk without such a moment does not meet the condition.
    """

    field: str
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class AnyNumber:
    """A number in the field is one of these."""

    field: str
    numbers: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class InRange:
    """A number in the field lies between two numbers, both included; ``None`` leaves an end open."""

    field: str
    least: float | None = None
    most: float | None = None


Condition: TypeAlias = AnyOf | AnyName | PathGlob | AtPath | Under | Between | AnyNumber | InRange


def select_chunks(connection: Connection, conditions: Sequence[Condition], chunk_count: int) -> Mask:
    """Return a mask of the chunks that meet all conditions; all chunks if there are none.

    Args:
        connection: a connection to the generation that no other thread uses.
        conditions: the conditions. A chunk must meet every one.
        chunk_count: the number of chunks of the generation, which are numbered from 0.

    Raises:
        duckdb.Error: the file is damaged, or too old to have these tables.
    """
    mask: Mask = np.ones(chunk_count, dtype=np.bool_)
    for condition in conditions:
        met: Mask = np.zeros(chunk_count, dtype=np.bool_)
        met[_chunk_numbers(connection, condition)] = True
        mask &= met
    return mask


def _chunk_numbers(connection: Connection, condition: Condition) -> NDArray[np.int32]:
    """Return the numbers of the chunks that meet one condition, in any order, possibly repeated."""
    if isinstance(condition, Between):
        where, values = _ends(condition.field, ("last >= ?", condition.start), ("first <= ?", condition.end))
        query = f"select chunk_no from moments where {where}"
    elif isinstance(condition, AnyNumber | InRange):
        where, values = _numbers(condition)
        query = f"select chunk_no from quantities where {where}"
    elif isinstance(condition, AnyOf) and condition.field == SOURCE:
        query, values = _OF_SOURCES, [_json(condition.values)]
    elif isinstance(condition, AtPath):
        query, values = _AT_PATH, [condition.path]
    else:
        value_numbers, values = _facets(condition)
        query = f"select chunk_no from facets where value_no in ({value_numbers})"
    numbers: NDArray[np.int32] = connection.execute(query, values).fetchnumpy()["chunk_no"]
    return numbers


_Where: TypeAlias = tuple[str, list[object]]
"""A condition in SQL, and the values that it binds, in order."""


def _ends(field: str, *ends: tuple[str, object]) -> _Where:
    """Return the SQL condition of a range, and its parameters.

    An end is a comparison and its parameter: ``("value >= ?", 3)``. If the parameter is ``None``, the end is left out.
    """
    stated = [(comparison, value) for comparison, value in ends if value is not None]
    return " and ".join(["field = ?", *(comparison for comparison, _ in stated)]), [field, *(end for _, end in stated)]


def _numbers(condition: AnyNumber | InRange) -> _Where:
    if isinstance(condition, AnyNumber):
        asked = json.dumps(condition.numbers)
        return """field = ? and value in (select unnest(from_json(?, '["double"]')))""", [condition.field, asked]
    return _ends(condition.field, ("value >= ?", condition.least), ("value <= ?", condition.most))


def _facets(condition: AnyOf | AnyName | PathGlob | Under) -> _Where:
    if isinstance(condition, AnyOf):
        values = condition.values
        if condition.field == "channel":
            values = tuple(value.strip().lstrip("#") for value in values)
        return _ANY_OF, [condition.field, _json(values)]
    if isinstance(condition, AnyName):
        return _ANY_NAME, [_json(condition.names), condition.field]
    if isinstance(condition, Under):
        return _UNDER, [condition.heading, condition.heading]
    literal = unicodedata.normalize("NFC", condition.pattern)
    asked: list[object] = [literal_component(literal), path_expression(literal), literal]
    return (f"{_PATH} union all {_CHANGED}", asked * 2) if condition.or_changed else (_PATH, asked)


def literal_component(glob: str) -> str:
    """Return the longest component of a path glob without wildcards; empty if there is none."""
    return max((part for part in _parts(glob) if _SPECIAL.isdisjoint(part)), key=len, default="")


# Lists are bound as JSON: 60 strings as a list take DuckDB 1.5.5 5 ms, as JSON 0.1 ms.
_ANY_OF = """
    select value_no
    from facet_values
    where field = ? and part in (select folded(unnest(from_json(?, '["varchar"]'))))
"""
# Search by the longest word first: few names share it.
_ANY_NAME = """
    select v.value_no
    from facet_values v
    join (
      select words, list_max([{'size': length(word), 'word': word} for word in words]).word as longest
      from (select string_split(name_words(unnest(from_json(?, '["varchar"]'))), ' ') as words)
    ) asked on v.part = asked.longest
    where v.field = ? and list_has_all(string_split(v.value, ' '), asked.words)
"""
_UNDER = """
    select value_no
    from facet_values
    where field = 'heading_path'
    and part = string_split(folded(?), ' > ')[-1]
    and contains(' > ' || value || ' > ', ' > ' || folded(?) || ' > ')
"""
_PATH = """
    select value_no
    from facet_values
    where field = 'path' and ((part = ? and regexp_matches(value, ?)) or (part = '' and value = ?))
"""
_CHANGED = _PATH.replace("'path'", "'changed'")
_AT_PATH = "select chunk_no from chunks join documents using (document_no) where path = ?"
_OF_SOURCES = """
    select chunk_no
    from chunks
    join documents using (document_no)
    where source_id in (select folded(unnest(from_json(?, '["varchar"]'))))
"""


def _json(values: Sequence[str]) -> str:
    return json.dumps(values, ensure_ascii=False)


def path_expression(glob: str) -> str:
    """Return a regular expression for RE2 that finds a match in exactly the paths that a glob matches.

    A glob is read as ``.gitignore`` and ``pathlib`` read it, always component by component:

    * ``*``, ``?`` and ``[…]`` stay within one component, ``**`` as a whole component spans any number of them;
    * without a ``/`` it matches the last component at any depth (``*.py``); with one it starts at the root of the
      source (``src/*.py``, ``/setup.py``);
    * ``src/**`` and ``src/`` match everything below ``src``, and nothing below ``src_utils``;
    * ``\\`` takes the next character literally; letters match in their own case only.
    """
    # A leading part that matches anywhere can be dropped.
    return _expression(glob, _component).replace("(?s)(?:^|/)[^/]*", "(?s)", 1)


def capturing_expression(glob: str, name: str) -> str:
    """Return the regular expression of a glob with names in braces, such as ``docs/{team}/**``.

    Group 1 captures the value of ``name``.

    Every name in braces stands for at least one character of one component.
    """

    def component(part: str) -> str:
        *before, last = PLACEHOLDER.split(part)
        named = zip(before[::2], before[1::2], strict=True)
        return "".join(
            _component(text) + ("([^/]+)" if each == name else "[^/]+") for text, each in named
        ) + _component(last)

    return _expression(glob, component)


def _expression(glob: str, component: Callable[[str], str]) -> str:
    parts = _parts(glob)
    expression = "(?s)"
    for number, part in enumerate(parts):
        is_first, is_last = number == 0, number == len(parts) - 1
        if part != "**":
            expression += ("^" if is_first else "") + component(part) + ("$" if is_last else "/")
        elif is_last:
            expression += "."
        else:
            expression += "(?:^|/)" if is_first else "(?:.*/)?"
    return expression


def _parts(glob: str) -> list[str]:
    """Return the components of a glob from the source's root down: ``"*.py" → ["**", "*.py"]``.

    ``a/`` becomes ``["**", "a", "**"]``. Repeated ``**`` are left out.
    """
    glob = unicodedata.normalize("NFC", glob)
    parts = [part for part in glob.split("/") if part not in {"", "."}]
    if "/" not in glob.rstrip("/"):
        parts.insert(0, "**")
    if glob.endswith("/") or not parts:
        parts.append("**")
    return [part for number, part in enumerate(parts) if part != "**" or parts[number - 1 : number] != ["**"]]


_SPECIAL = frozenset("*?[\\")
_TO_ESCAPE = frozenset("\\.+*?()|[]{}^$-")
_NOTHING = r"[^\s\S]"


def _component(glob: str) -> str:
    """Return the regular expression for one component of a glob: ``"*.py" → "[^/]*\\.py"``."""
    translated: list[str] = []
    at = 0
    while at < len(glob):
        character = glob[at]
        at += 1
        if character == "*":
            if translated[-1:] != ["[^/]*"]:
                translated.append("[^/]*")
        elif character == "?":
            translated.append("[^/]")
        elif character == "[" and (end := _class_end(glob, at)):
            translated.append(_class(glob[at:end]))
            at = end + 1
        elif character == "\\" and at < len(glob):
            translated.append(_escaped(glob[at]))
            at += 1
        else:
            translated.append(_escaped(character))
    return "".join(translated)


def _class_end(glob: str, start: int) -> int:
    """Return the position of the ``]`` that closes the class whose content begins at ``start``; 0 if there is none."""
    first = start + 1 if glob[start : start + 1] in {"!", "^"} else start
    at = first
    while at < len(glob) and (glob[at] != "]" or at == first):
        at += 2 if glob[at] == "\\" else 1
    return at if at < len(glob) else 0


def _class(content: str) -> str:
    """Return the regular expression for a class in brackets with this content. It never matches a path separator."""
    negated = content[0] in {"!", "^"}
    ranges = "".join(_ranges(content[1:] if negated else content))
    if negated:
        return f"[^/{ranges}]"
    return f"[{ranges}]" if ranges else _NOTHING


def _ranges(content: str) -> list[str]:
    members: list[tuple[str, bool]] = []
    at = 0
    while at < len(content):
        is_escaped = content[at] == "\\" and at + 1 < len(content)
        at += is_escaped
        members.append((content[at], is_escaped))
        at += 1
    ranges: list[str] = []
    at = 0
    while at < len(members):
        low = high = members[at][0]
        at += 1
        if at + 1 < len(members) and members[at] == ("-", False):
            high = members[at + 1][0]
            at += 2
        ranges += _range(low, high)
    return ranges


def _range(low: str, high: str) -> list[str]:
    """Return a range of characters as ``["a-z"]``; empty if ``high`` comes before ``low``.

    A range that contains the path separator is split into two ranges without it.
    """
    if low <= "/" <= high:
        return [*_range(low, "."), *_range("0", high)] if low != high else []
    return [f"{_escaped(low)}-{_escaped(high)}"] if low <= high else []


def _escaped(character: str) -> str:
    return f"\\{character}" if character in _TO_ESCAPE else character
