"""The exact set of chunks that meet conditions, out of the facet tables in PostgreSQL; values are always bound."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from nornweave.index.conditions import (
    AnyName,
    AnyNumber,
    AnyOf,
    Between,
    Condition,
    InRange,
    PathGlob,
    Under,
    literal_component,
    path_expression,
)
from nornweave.index.connection import statement_file
from nornweave.index.port import Mask, Numbers
from nornweave.index.postgresql.server import Server

_LOCAL = threading.local()


def select_chunks(server: Server, prefix: str, conditions: Sequence[Condition], chunk_count: int) -> Mask:
    """Tell which chunks meet all conditions; without conditions all do.

    Args:
        server: with the tables.
        prefix: of the generation's tables.
        conditions: each met by itself; a chunk passes that meets every one.
        chunk_count: chunks of the generation, numbered from 0.

    Raises:
        StoreError: the server cannot be asked.
    """
    mask: Mask = np.ones(chunk_count, dtype=np.bool_)
    for condition in conditions:
        met: Mask = np.zeros(chunk_count, dtype=np.bool_)
        met[_chunk_numbers(server, prefix, condition)] = True
        mask &= met
    return mask


def _chunk_numbers(server: Server, prefix: str, condition: Condition) -> Numbers:
    match condition:
        case Between(field, start, end):
            where, values = _range("last", ">=", start, "first", "<=", end)
            return _column(server, f"select chunk_no from {prefix}moments where field = %s{where}", [field, *values])
        case InRange(field, least, most):
            where, values = _range("value", ">=", least, "value", "<=", most)
            return _column(server, f"select chunk_no from {prefix}quantities where field = %s{where}", [field, *values])
        case AnyNumber(field, numbers):
            statement = f"select chunk_no from {prefix}quantities where field = %s and value = any(%s::float8[])"
            return _column(server, statement, [field, list(numbers)])
        case PathGlob(pattern):
            return _of_values(server, prefix, "value_no = any(%s)", [_matching_paths(server, prefix, pattern)])
        case Under(heading):
            asked = folded(heading)
            where = "field = 'heading_path' and part = %s and position(%s in ' > ' || value || ' > ') > 0"
            return _of_values(server, prefix, where, [asked.split(" > ")[-1], f" > {asked} > "])
        case AnyOf(field, stated):
            if field == "channel":
                stated = tuple(value.strip().lstrip("#") for value in stated)
            return _of_values(server, prefix, "field = %s and part = any(%s)", [field, [folded(one) for one in stated]])
        case AnyName(field, names):
            words = [name_words(name).split(" ") for name in names]
            # Few names share the longest word of one that is asked for.
            where = "field = %s and (" + " or ".join("part = %s and string_to_array(value, ' ') @> %s" for _ in words)
            longest = [(max(each, key=lambda word: (len(word), word)), each) for each in words]
            return _of_values(server, prefix, where + ")", [field, *(value for pair in longest for value in pair)])


def _range(*ends: Any) -> tuple[str, list[Any]]:
    """Return the conditions for the ends that are stated: column, operator and value of each."""
    stated = [ends[at : at + 3] for at in (0, 3) if ends[at + 2] is not None]
    return "".join(f" and {column} {operator} %s" for column, operator, _ in stated), [value for *_, value in stated]


def _column(server: Server, statement: str, values: list[Any]) -> Numbers:
    return np.array([number for (number,) in server.rows(statement, values)], np.int32)


def _of_values(server: Server, prefix: str, where: str, values: list[Any]) -> Numbers:
    """Return the chunks that have one of the facet values that a condition (a constant) selects."""
    statement = f"""
        select chunk_nos from {prefix}facets
        where value_no in (select value_no from {prefix}facet_values where {where})
        """
    lists = [np.frombuffer(chunks, "<i4") for (chunks,) in server.rows(statement, values)]
    return np.concatenate(lists).astype(np.int32) if lists else np.empty(0, np.int32)


def _matching_paths(server: Server, prefix: str, pattern: str) -> list[int]:
    """Return the numbers of the paths that a glob matches; DuckDB's RE2 decides, which cannot be made to backtrack."""
    statement = f"select value_no, value from {prefix}facet_values where field = 'path' and part = %s"
    rows = server.rows(statement, [literal_component(pattern)])
    if not rows:
        return []
    paths = pa.table({"value_no": [number for number, _ in rows], "value": [value for _, value in rows]})
    connection = _local().cursor()
    connection.register("paths", paths)
    matching = connection.execute(
        "select distinct value_no from paths where regexp_matches(value, ?)", [path_expression(pattern)]
    ).fetchall()
    return [number for (number,) in matching]


@lru_cache(maxsize=4_096)
def folded(stated: str) -> str:
    """Return a value as the facet tables spell it."""
    return _spelled("folded", stated)


@lru_cache(maxsize=4_096)
def name_words(stated: str) -> str:
    """Return the words of a name as the facet tables spell them."""
    return _spelled("name_words", stated)


def _spelled(macro: str, stated: str) -> str:
    row = _local().execute(f"select generation.{macro}(?)", [stated]).fetchone()
    return str(row[0]) if row else ""


def _local() -> duckdb.DuckDBPyConnection:
    """Return this thread's database in memory with the macros that filled the tables: both spell alike."""
    connection: duckdb.DuckDBPyConnection | None = getattr(_LOCAL, "connection", None)
    if connection is None:
        connection = duckdb.connect(":memory:", config={"threads": 1, "autoload_known_extensions": False})
        connection.execute("attach ':memory:' as generation")
        for statement in connection.extract_statements(statement_file("facets")):
            if "create macro generation." in statement.query:
                connection.execute(statement)
        _LOCAL.connection = connection
    return connection
