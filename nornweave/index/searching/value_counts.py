"""Count the values of a field in visible documents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.text.dates import utc_text
from nornweave.index.connection import Connection
from nornweave.index.port import Mask, Numbers
from nornweave.index.searching.conditions import SOURCE

Value: TypeAlias = str | float
FieldValues: TypeAlias = tuple[NDArray[Any], Numbers]
"""Values of one field, as they are kept, and beside each a chunk that has it."""
UnreadRow: TypeAlias = tuple[int, str, str, str]
"""A document, its path, what it says, and why that is not of the type."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ValueCount:
    """A value with its number of documents and chunks."""

    value: Value
    documents: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCounts:
    """The values of a field.

    Attributes:
        documents: the number of documents with a value.
        frequent: the most frequent values, sorted by number of chunks, then documents, then value.
        least, most: the smallest and largest number or moment (ISO 8601); ``None`` for texts, or if there is no value.
    """

    documents: int
    distinct: int
    frequent: tuple[ValueCount, ...]
    least: Value | None = None
    most: Value | None = None


@dataclass(frozen=True, slots=True)
class UnreadValue:
    """A value of the wrong type for its filter, as JSON of at most 200 characters."""

    path: str
    said: str
    problem: str


@dataclass(frozen=True, slots=True)
class UnreadValues:
    """The number of documents with values of the wrong type, and the first such values by source and path."""

    documents: int = 0
    examples: tuple[UnreadValue, ...] = ()


# Texts, numbers and moments of one field, each with the chunks that have it.
_TEXTS = """
select distinct value, chunk_no
from (select distinct value_no, value from facet_values where field = ?)
join facets using (value_no)
"""
_NUMBERS = "select distinct value, chunk_no from quantities where field = ?"
# Microseconds, doubled; odd for a moment, even for the first one of a day, month or year.
_MOMENTS = """
select distinct 2 * epoch_us(first) + (first = last)::integer as value, chunk_no
from moments
where field = ?
"""
_SOURCES = "select source_id as value, chunk_no from chunks join documents using (document_no)"
QUERIES = {"integer": _NUMBERS, "number": _NUMBERS, "date": _MOMENTS}


def field_values(connection: Connection, field: str, type_: str) -> FieldValues:
    """Return the values of a field with their chunks.

    Raises:
        duckdb.Error: the file is damaged.
    """
    query, values = (_SOURCES, []) if field == SOURCE else (QUERIES.get(type_, _TEXTS), [field])
    rows = connection.execute(query, values).fetchnumpy()
    return np.asarray(rows["value"]), np.asarray(rows["chunk_no"])


def count_values(
    found: FieldValues, type_: str, documents: Numbers, limit: int, within: Mask | None = None
) -> ValueCounts:
    """Count the values of a field.

    Args:
        found: the values with their chunks.
        documents: the document number of each chunk, by chunk number.
        limit: the largest number of frequent values to return. All values are counted.
        within: a mask of the chunks to count; ``None`` for all.
    """
    values, chunks = found
    if within is not None:
        values, chunks = values[within[chunks]], chunks[within[chunks]]
    if not len(chunks):
        return ValueCounts(documents=0, distinct=0, frequent=())
    names, places = np.unique(values, return_inverse=True)
    pairs = np.unique(np.stack([places, documents[chunks]]), axis=1)
    of_chunks, of_documents = np.bincount(places), np.bincount(pairs[0])
    order = np.lexsort((np.arange(len(names)), -of_documents, -of_chunks))[:limit]
    return ValueCounts(
        documents=len(np.unique(pairs[1])),
        distinct=len(names),
        frequent=tuple(ValueCount(_shown(names[at], type_), int(of_documents[at]), int(of_chunks[at])) for at in order),
        least=_shown(names[0], type_) if type_ in QUERIES else None,
        most=_shown(names[-1], type_) if type_ in QUERIES else None,
    )


def unread_rows(connection: Connection, field: str) -> list[UnreadRow]:
    """Return a field's values of the wrong type, by document and value.

    Raises:
        duckdb.Error: the file is damaged.
    """
    return connection.execute(
        """
        select document_no, path, said, problem
        from unread_values
        join documents using (document_no)
        where field = ?
        order by document_no, said
        """,
        [field],
    ).fetchall()


def unread_values(rows: list[UnreadRow], documents: Numbers, limit: int, within: Mask | None = None) -> UnreadValues:
    """Count the documents with values of the wrong type, and return the first ``limit`` of these values.

    If ``within`` is given, only documents that have a chunk in this mask count.
    """
    if within is not None:
        visible = set(documents[within].tolist())
        rows = [row for row in rows if row[0] in visible]
    examples = tuple(UnreadValue(path, said, problem) for _, path, said, problem in rows[:limit])
    return UnreadValues(len({row[0] for row in rows}), examples)


def _shown(value: object, type_: str) -> Value:
    if type_ == "integer":
        return int(float(str(value)))
    if type_ == "date":
        microseconds, is_moment = divmod(int(str(value)), 2)
        moment = _EPOCH + timedelta(microseconds=microseconds)
        return utc_text(moment) if is_moment else moment.date().isoformat()
    return float(str(value)) if type_ == "number" else str(value)
