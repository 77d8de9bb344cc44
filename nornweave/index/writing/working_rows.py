"""The tables of a working file, as transactions: documents, chunks, vectors and failures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa

from nornweave.core.types import DocumentId
from nornweave.index.connection import Connection
from nornweave.index.port import Batch, Tokens, Vectors
from nornweave.index.writing.rows import chunk_rows, document_rows, not_stored_rows
from nornweave.index.writing.working_tables import EMBEDDED_TEXT, WorkingTables


class DuckDBTables(WorkingTables):
    """The part of a writer that stores documents and vectors."""

    def apply(self, batch: Batch) -> None:
        stored_ids = [one.document.id for one in batch.stored]
        looked_at = [*stored_ids, *batch.removed, *(identity for identity, _ in batch.touched)]
        with self._transaction() as connection:
            for table in ("chunks", "documents"):
                _delete(connection, table, [*stored_ids, *batch.removed])
            _delete(connection, "not_stored", [*looked_at, *(one.document_id for one in batch.not_stored)])
            _write_again(connection, stored_ids)
            _insert(connection, "documents", document_rows(batch.stored))
            _insert(connection, "chunks", chunk_rows(batch.stored))
            _insert(connection, "not_stored", not_stored_rows(batch.not_stored))
            _touch(connection, batch.touched)

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        rows = self._rows(
            f"""
            select chunk_id, embedding_key, {EMBEDDED_TEXT}
            from chunks semi join (select document_id from documents where pipeline not in (select unnest(?)))
            using (document_id)
            """,
            [list(pipelines)],
        )
        keys = [(chunk_id, key) for chunk_id, before, text in rows if (key := key_of(text)) != before]
        self._drop_unwanted_tokens()
        if keys:
            renamed = pa.table({"chunk_id": [one for one, _ in keys], "embedding_key": [key for _, key in keys]})
            with self._transaction() as connection:
                connection.execute(
                    "update chunks set embedding_key = renamed.embedding_key from renamed "
                    "where chunks.chunk_id = renamed.chunk_id"
                )
            del renamed

    def add_vectors(self, keys: Sequence[str], vectors: Vectors, tokens: Tokens = None) -> None:
        self._check_shape(keys, vectors)
        flat = pa.array(vectors.reshape(-1), type=pa.float32())
        table = pa.table(
            {
                "embedding_key": pa.array(keys, type=pa.string()),
                "vector": pa.FixedSizeListArray.from_arrays(flat, self._layout.dimensions),
                "tokens": pa.array(tokens, type=pa.binary()) if tokens else pa.nulls(len(keys), pa.binary()),
            }
        )
        with self._transaction() as connection:
            _insert(connection, "embeddings", table)


def _delete(connection: Connection, table: str, identities: Sequence[DocumentId]) -> None:
    if identities:
        doomed = pa.table({"document_id": list(identities)})  # noqa: F841 - DuckDB reads it by name
        connection.execute(f"delete from {table} where document_id in (select document_id from doomed)")


def _write_again(connection: Connection, identities: Sequence[DocumentId]) -> None:
    """Let the next build write documents, also those whose text is the same as before."""
    if identities:
        stored = pa.table({"document_id": list(identities)})  # noqa: F841 - DuckDB reads it by name
        connection.execute(
            "update published set segment = null "
            "where segment is not null and document_id in (select document_id from stored)"
        )


def _touch(connection: Connection, touched: Sequence[tuple[DocumentId, str]]) -> None:
    if touched:
        seen = pa.table({"document_id": [one for one, _ in touched], "gate": [gate for _, gate in touched]})  # noqa: F841
        connection.execute(
            "update documents set gate = seen.gate from seen where documents.document_id = seen.document_id"
        )


def _insert(connection: Connection, table: str, rows: pa.Table) -> None:
    if rows.num_rows:
        connection.execute(f"insert into {table} by name select * from rows")
