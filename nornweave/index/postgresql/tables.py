"""The working tables of a domain in PostgreSQL, as transactions: documents, chunks, vectors and failures."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from nornweave.index.port import Batch, Tokens, Vectors
from nornweave.index.postgresql.pool import Connection
from nornweave.index.postgresql.schema import compact, copy_rows
from nornweave.index.postgresql.server import Server, translated
from nornweave.index.writing.build import Layout
from nornweave.index.writing.rows import chunk_rows, document_rows, not_stored_rows
from nornweave.index.writing.working_tables import EMBEDDED_TEXT, WorkingTables

_COUNTED = ("documents", "chunks", "embeddings", "not_stored")
# PostgreSQL stores no NUL in a text; another character in its place keeps every position.
_NO_NUL = str.maketrans("\0", "\N{REPLACEMENT CHARACTER}")


class PostgresTables(WorkingTables):
    """The part of a writer that stores documents and vectors, over the connection that has the lock."""

    mark, without = "%s", "array_remove({0}, {1})"
    _connection: Connection

    def __init__(self, server: Server, layout: Layout) -> None:
        super().__init__(layout)
        self._server = server

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with translated(self._server, "nothing of this step was stored"), self._connection.transaction():
            yield self._connection

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with translated(self._server, "cannot be read"):
            return self._connection.execute(statement, values).fetchall()

    def _deleted_rows(self) -> int:
        written = self._rows("select value from meta where key = 'overwritten_at'")
        return abs(self._changed_rows() - (int(written[0][0]) if written else 0))

    def _changed_rows(self) -> int:
        """Count the rows that were ever deleted or replaced, as far as the server has counted."""
        self._rows("select pg_stat_force_next_flush()")
        rows = self._rows(
            """
            select coalesce(sum(n_tup_del + n_tup_upd), 0)::bigint from pg_stat_user_tables
            where schemaname = %s and relname = any(%s)
            """,
            [self._server.schema, list(_COUNTED)],
        )
        return int(rows[0][0])

    def _overwrite(self) -> None:
        with translated(self._server, "deleted rows are not overwritten"):
            compact(self._connection, (*_COUNTED, "published", "publications"))
        overwritten = str(self._changed_rows())  # not in the transaction, in which counts stand still
        with self._transaction() as connection:
            connection.execute(
                """
                insert into meta values ('overwritten_at', %s)
                on conflict (key) do update set value = excluded.value
                """,
                [overwritten],
            )

    def apply(self, batch: Batch) -> None:
        stored_ids = [one.document.id for one in batch.stored]
        looked_at = [*stored_ids, *batch.removed, *(identity for identity, _ in batch.touched)]
        failed = [one.document_id for one in batch.not_stored]
        with self._transaction() as connection:
            # Their chunks go with them.
            connection.execute("delete from documents where document_id = any(%s)", [[*stored_ids, *batch.removed]])
            connection.execute("delete from not_stored where document_id = any(%s)", [[*looked_at, *failed]])
            _insert(connection, "documents", document_rows(batch.stored))
            _insert(connection, "chunks", chunk_rows(batch.stored))
            _insert(connection, "not_stored", not_stored_rows(batch.not_stored))
            connection.execute(
                """
                update documents set gate = seen.gate
                from unnest(%s::text[], %s::text[]) as seen (document_id, gate)
                where documents.document_id = seen.document_id
                """,
                [[identity for identity, _ in batch.touched], [gate for _, gate in batch.touched]],
            )

    def _texts_of(self, keys: Sequence[str]) -> list[tuple[str, str]]:
        return self._rows(
            f"""
            select distinct on (embedding_key) embedding_key, {EMBEDDED_TEXT}
            from chunks
            where embedding_key = any(%s)
            order by embedding_key
            """,
            [list(keys)],
        )

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        rows = self._rows(
            f"""
            select chunk_id, embedding_key, {EMBEDDED_TEXT}
            from chunks
            where document_id in (select document_id from documents where not pipeline = any(%s))
            """,
            [list(pipelines)],
        )
        self._drop_unwanted_tokens()
        keys = [(chunk_id, key) for chunk_id, before, content in rows if (key := key_of(content)) != before]
        if keys:
            with self._transaction() as connection:
                connection.execute(
                    """
                    update chunks set embedding_key = renamed.embedding_key
                    from unnest(%s::text[], %s::text[]) as renamed (chunk_id, embedding_key)
                    where chunks.chunk_id = renamed.chunk_id
                    """,
                    [[chunk_id for chunk_id, _ in keys], [key for _, key in keys]],
                )

    def add_vectors(self, keys: Sequence[str], vectors: Vectors, tokens: Tokens = None) -> None:
        self._check_shape(keys, vectors)
        with self._transaction() as connection:
            connection.execute(
                """
                insert into embeddings (embedding_key, vector, tokens)
                select * from unnest(%s::text[], %s::bytea[], %s::bytea[])
                on conflict (embedding_key) do nothing
                """,
                [
                    list(keys),
                    [vector.astype("<f4").tobytes() for vector in np.asarray(vectors)],
                    list(tokens) if tokens else [None] * len(keys),
                ],
            )


def _insert(connection: Connection, table: str, rows: pa.Table) -> None:
    if rows.num_rows:
        stored = ([_stored(name, value) for name, value in row.items()] for row in rows.to_pylist())
        copy_rows(connection, table, stored, rows.column_names)


def _stored(name: str, value: Any) -> Any:
    if name == "fact_keys":
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return value.translate(_NO_NUL) if "\0" in value else value
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [each.translate(_NO_NUL) for each in value]
    return value
