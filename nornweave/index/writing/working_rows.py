"""The tables of a working file, as transactions: documents, chunks, vectors and failures."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nornweave.core.errors import StoreError
from nornweave.core.types import DocumentId
from nornweave.index.connection import Connection, explain
from nornweave.index.outcomes import Outcome
from nornweave.index.port import Batch, Tokens, Vectors
from nornweave.index.writing.build import Layout
from nornweave.index.writing.rows import chunk_rows, document_rows, not_stored_rows
from nornweave.index.writing.working_file import deleted_rows
from nornweave.index.writing.working_tables import EMBEDDED_TEXT, WorkingTables

logger = logging.getLogger(__name__)


class DuckDBTables(WorkingTables):
    """The part of a writer that stores documents and vectors in a working file."""

    mark, without = "?", "list_filter({0}, lambda name: name <> {1})"

    def __init__(self, file: Path, layout: Layout) -> None:
        super().__init__(layout)
        self._file = file

    @property
    @abstractmethod
    def _connection(self) -> Connection:
        """The working file, open."""

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return what became of the documents that were not stored, failures first."""
        rows = self._rows(
            """
            select source_id, path, gate, outcome, reason, strftime(looked_at, '%Y-%m-%dT%H:%M:%SZ')
            from not_stored
            order by outcome = 'skipped', source_id, path
            """
        )
        return tuple(Outcome(*row) for row in rows)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        connection = self._connection
        connection.begin()
        try:
            yield connection
            connection.commit()
        except BaseException as error:
            _roll_back(connection)
            if isinstance(error, duckdb.Error):
                raise StoreError(f"{self._file}: nothing of this step was stored: {explain(error)}") from error
            raise

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            yield self._connection
        except duckdb.Error as error:
            raise StoreError(f"{self._file}: cannot be read: {explain(error)}") from error

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
        with self._reading() as connection:
            rows = connection.execute(
                f"""
                select chunk_id, embedding_key, {EMBEDDED_TEXT}
                from chunks semi join (select document_id from documents where pipeline not in (select unnest(?)))
                using (document_id)
                """,
                [list(pipelines)],
            ).fetchall()
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

    def _texts_of(self, keys: Sequence[str]) -> list[tuple[str, str]]:
        wanted = pa.table({"embedding_key": pa.array(keys, type=pa.string())})  # noqa: F841 - DuckDB reads it by name
        with self._reading() as connection:
            return connection.execute(
                f"""
                select embedding_key, any_value({EMBEDDED_TEXT})
                from chunks semi join wanted using (embedding_key)
                group by embedding_key
                """
            ).fetchall()

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

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._reading() as connection:
            return connection.execute(statement, values).fetchall()

    def _deleted_rows(self) -> int:
        with self._reading() as connection:
            connection.execute("checkpoint")
        return deleted_rows(self._rows)


def _roll_back(connection: Connection) -> None:
    try:
        connection.rollback()
    except duckdb.Error:
        logger.debug("nothing to roll back: DuckDB had ended the transaction itself")


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
