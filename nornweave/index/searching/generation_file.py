"""One open generation file: its metadata, its connections, and the document of each chunk."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from nornweave.core.errors import StoreError
from nornweave.index.connection import Connection, connect_reader
from nornweave.index.port import Numbers
from nornweave.index.writing.build import GENERATION_SCHEMA

# With 9 the BM25 tables were in the file.
_READABLE = ("9", GENERATION_SCHEMA)

# At least one row if the generation has the document.
TEXTS_OF = """
select coalesce(content, '')
from documents
left join chunks using (document_no)
where source_id = ? and path = ?
"""


class GenerationFile:
    """An open file. Thread-safe.

    Attributes:
        connection: the connection that opened the file. Queries use a cursor of their thread.
        size: the number of chunks, which are numbered from 0.
        all_documents: the number of documents, with or without chunks.
        documents: the document number of each chunk, by chunk number.

    Raises:
        StoreError: the file is missing, damaged or of another schema. Every method raises it if the file cannot be
            read.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise StoreError(f"{path}: no such generation")
        self.path = path
        self.connection = connect_reader(path, searches_vectors=True)
        self._threads = threading.local()
        try:
            with self.opening():
                self._read()
        except StoreError:
            self.close()
            raise

    def _read(self) -> None:
        self.meta: Mapping[str, str] = dict(self.connection.execute("select key, value from meta").fetchall())
        if self.meta.get("generation_schema") not in _READABLE:
            raise StoreError(
                f"{self.path}: has schema {self.meta.get('generation_schema')!r}, this version reads "
                f"{GENERATION_SCHEMA!r}; run `nornweave sync`"
            )
        ((self.all_documents,),) = self.connection.execute("select count(*) from documents").fetchall()
        chunks = self.connection.execute("select chunk_no, document_no from chunks").fetchnumpy()
        self.size = len(chunks["chunk_no"])
        self.documents: Numbers = np.zeros(self.size, np.int32)
        self.documents[chunks["chunk_no"]] = chunks["document_no"]

    @property
    def document_count(self) -> int:
        """Count the documents that have chunks."""
        return int(self.documents[-1]) + 1 if self.size else 0

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend this thread's cursor. Threads cannot share a DuckDB connection."""
        try:
            yield self.cursor()
        except duckdb.Error as error:
            raise self.unreadable(error) from error

    def cursor(self) -> Connection:
        """Return this thread's cursor. Errors of DuckDB are not translated."""
        cursor: Connection | None = getattr(self._threads, "cursor", None)
        if cursor is None:
            cursor = self._threads.cursor = self.connection.cursor()
        return cursor

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.reading() as cursor:
            return cursor.execute(statement, list(values)).fetchall()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Translate errors in the block that a damaged file or missing memory causes into ``StoreError``."""
        try:
            yield
        except (duckdb.Error, KeyError, ValueError, OSError, MemoryError) as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: BaseException) -> StoreError:
        """Return the error for a file that cannot be read, with its name and a remedy."""
        return StoreError(f"{self.path}: cannot be read ({error}); roll back, or sync again")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()


class DataFile(NamedTuple):
    """A file of a generation, with the numbers of its gone documents."""

    path: Path
    gone: tuple[int, ...] = ()


def read_rows(
    file: DataFile, statement: str, values: Sequence[object] | Mapping[str, object] = ()
) -> list[tuple[Any, ...]]:
    """Return the rows of a query on a file that is not open. The query does not see gone documents and their chunks.

    Raises:
        StoreError: it cannot be read.
    """
    connection = connect_reader(file.path)
    try:
        if file.gone:
            _leave_out(connection, file.gone)
        return connection.execute(statement, values).fetchall()
    except duckdb.Error as error:
        raise StoreError(f"{file.path}: cannot be read ({error}); roll back, or sync again") from error
    finally:
        connection.close()


def _leave_out(connection: Connection, gone: Sequence[int]) -> None:
    """Hide the documents with the numbers ``gone`` and their chunks, by temporary views over a file's tables."""
    connection.execute("create temp table gone as select unnest(?::integer[]) as document_no", [str([*gone])])
    ((name,),) = connection.execute("select current_database()").fetchall()
    for table in ("documents", "chunks"):
        connection.execute(
            f'create temp view {table} as select * from "{name}".main.{table} anti join gone using (document_no)'
        )


def read_lines(file: DataFile, places: Collection[tuple[str, str, int]]) -> dict[tuple[str, str, int], str]:
    """Return lines from the documents of a generation.

    Returns:
        Place (source, path, line) → the line without its end. A line that the generation does not have is left out.

    Raises:
        StoreError: the generation cannot be read.
    """
    rows = read_rows(
        file,
        """
        with wanted as (
          select distinct unnest($sources) as source_id, unnest($paths) as path, unnest($lines) as line
        )
        select source_id, path, line, string_split(d."text", chr(10))[line]
        from wanted
        join documents d using (source_id, path)
        """,
        {
            "sources": [source_id for source_id, _, _ in places],
            "paths": [path for _, path, _ in places],
            "lines": [line for _, _, line in places],
        },
    )
    return {tuple(place): text.removesuffix("\r") for *place, text in rows if text is not None}


def facts_of(path: Path) -> Mapping[str, str]:
    """Return the metadata of a generation without loading it.

    Raises:
        StoreError: it cannot be read.
    """
    return dict(read_rows(DataFile(path), "select key, value from meta"))
