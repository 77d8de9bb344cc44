"""Filters and counts over one generation file, for the visible part."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nornweave.core.access import Rule, decode_rule
from nornweave.core.types import JsonValue
from nornweave.index.connection import Connection
from nornweave.index.port import Mask
from nornweave.index.searching.conditions import Condition, select_chunks
from nornweave.index.searching.generation_file import GenerationFile
from nornweave.index.searching.value_counts import (
    FieldValues,
    UnreadRow,
    UnreadValues,
    ValueCounts,
    count_values,
    field_values,
    unread_rows,
    unread_values,
)
from nornweave.index.searching.visibility import Visible, picking

# Filters come in streaks; a mask is a byte a chunk.
_REMEMBERED_MASKS = 64


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
