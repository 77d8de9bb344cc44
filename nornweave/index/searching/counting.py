"""Filters and counts over one generation file, for the visible part: its documents, and the values of a field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.access import Rule, decode_rule
from nornweave.core.text.dates import utc_text
from nornweave.core.types import JsonValue
from nornweave.index.connection import Connection
from nornweave.index.port import Mask, Numbers
from nornweave.index.searching.conditions import SOURCE, Condition, select_chunks
from nornweave.index.searching.generation_file import GenerationFile
from nornweave.index.searching.visibility import Visible, picking

# Filters come in streaks; a mask is a byte a chunk.
_REMEMBERED_MASKS = 64

Value: TypeAlias = str | float
FieldValues: TypeAlias = tuple[NDArray[Any], Numbers]
"""Values of one field, as they are kept, and beside each a chunk that has it."""
UnreadRow: TypeAlias = tuple[int, str, str, str]
"""A document, its path, what it says, and why that is not of the type."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ServedDocument:
    """A document of a generation. ``size`` is the size of its text in UTF-8 bytes."""

    source_id: str
    path: str
    gate: str
    content_hash: str
    updated_at: str | None
    size: int
    chunks: int


@dataclass(frozen=True, slots=True)
class StatedDocument:
    """A document whose metadata state who may see it, even if the statement is invalid."""

    source_id: str
    path: str
    rule: Rule
    metadata: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class RuledDocument(StatedDocument):
    """A document with its full access rule. ``own`` is the part of the rule from the document or its metadata file."""

    own: Rule


class FileCounts:
    """The filters and values of one file. Every method is thread-safe."""

    def __init__(
        self,
        file: GenerationFile,
        masks: dict[tuple[Condition, ...], Mask],
        visible: Visible | None = None,
        live: Mask | None = None,
    ) -> None:
        """Store the arguments.

        Args:
            masks: the masks of recent filters, shared by all viewers.
            visible: the part that the viewer may see; ``None`` for everything.
            live: a mask of the documents that are not gone, visible or not; ``None`` for all.
        """
        self._file = file
        self._masks = masks
        self._visible = visible
        self._live = live

    def within(self, conditions: Sequence[Condition]) -> Mask:
        key = tuple(conditions)
        mask = self._masks.get(key)
        if mask is None:
            with self._file.reading() as cursor:
                mask = select_chunks(cursor, key, self._file.size)
            if len(self._masks) >= _REMEMBERED_MASKS:
                self._masks.clear()
            self._masks[key] = mask
        return mask if self._visible is None else mask & self._visible.chunks

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        return count_values(
            self.field_values(field, type_), type_, self._file.documents, limit, self._within_seen(within)
        )

    def field_values(self, field: str, type_: str) -> FieldValues:
        """Return the values of a field with their chunks, including invisible chunks."""
        with self._file.reading() as cursor:
            return field_values(cursor, field, type_)

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        return unread_values(self.unread_rows(field), self._file.documents, limit, self._within_seen(within))

    def unread_rows(self, field: str) -> list[UnreadRow]:
        """Return values of the wrong type from all documents, including invisible documents."""
        with self._file.reading() as cursor:
            return unread_rows(cursor, field)

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        with self._file.reading() as cursor:
            return _documents_after(cursor, self._file, after, limit, self._documents(within), within)

    def stated_documents(self, keys: Sequence[str]) -> list[StatedDocument]:
        with self._file.reading() as cursor:
            rows = cursor.execute(
                """
                select document_no, source_id, path, access, metadata
                from documents
                where access is not null or len(list_intersect(json_keys(metadata), ?)) > 0
                order by source_id, path
                """,
                [list(keys)],
            ).fetchall()
        return [
            StatedDocument(source_id, path, decode_rule(rule), json.loads(known))
            for number, source_id, path, rule, known in rows
            if self._live is None or self._live[number]
        ]

    def _documents(self, within: Mask | None) -> Mask | None:
        """Return a mask of the visible documents that have a chunk in ``within``; ``None`` means all documents."""
        if within is None:
            return None if self._visible is None else self._visible.documents
        documents = np.zeros(self._file.all_documents, np.bool_)
        documents[self._file.documents[self._within_seen(within)]] = True
        return documents

    def _within_seen(self, within: Mask | None) -> Mask | None:
        """Return the visible part of ``within``. As argument and as result, ``None`` means all chunks."""
        if self._visible is None:
            return within
        return self._visible.chunks if within is None else within & self._visible.chunks


def _documents_after(
    connection: Connection,
    file: GenerationFile,
    after: tuple[str, str],
    limit: int,
    among: Mask | None,
    within: Mask | None,
) -> list[ServedDocument]:
    """Return the documents that follow a place, by source and path, each with its number of chunks in ``within``.

    ``among`` limits the documents, and ``within`` the counted chunks; ``None`` does not limit them.

    Raises:
        duckdb.Error: the file is damaged.
    """
    documents = file.documents if within is None else file.documents[within]
    chunks = np.bincount(documents, minlength=file.all_documents)
    condition, numbers = ("true", "[]") if among is None else picking(among)
    rows = connection.execute(
        f"""
        select
          document_no, source_id, path, gate, content_hash,
          strftime(updated_at, '%Y-%m-%dT%H:%M:%SZ'), strlen("text")
        from documents
        where (source_id > $source or (source_id = $source and path > $path)) and {condition}
        order by source_id, path
        limit $limit
        """,
        {"source": after[0], "path": after[1], "limit": limit, **({} if among is None else {"documents": numbers})},
    ).fetchall()
    return [
        ServedDocument(source_id, path, gate, content_hash, moment, size, int(chunks[number]))
        for number, source_id, path, gate, content_hash, moment, size in rows
    ]


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
