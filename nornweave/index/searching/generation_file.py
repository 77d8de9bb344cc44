"""One open generation file: its metadata, its connections, its documents, and chunks by place.

Texts are read only when they are asked for: the places of 100,000 chunks alone take about 50 MB.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import duckdb
import numpy as np

from nornweave.core.errors import StoreError
from nornweave.core.types import Chunk, ContentHash, Document, DocumentId, Domain, Metadata, SourceId, Span, freeze
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


Rows: TypeAlias = Callable[[str, list[object]], list[tuple[Any, ...]]]
"""Runs a statement with its values on a generation, and raises ``StoreError`` when that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPlace:
    """The place and properties of a chunk, without its text.

    Attributes:
        position: the number of the chunk in its document, from 0.
        line_range: its first and last line, from 1.
        section: the heading path as one line.
    """

    chunk_no: int
    document_no: int
    position: int
    source_id: str
    path: str
    format: str
    span: Span
    line_range: tuple[int, int]
    page: int | None
    title: str | None
    section: str | None
    message_ids: tuple[str, ...]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document with its indexed chunks by number, in order."""

    document: Document
    chunks: tuple[tuple[int, Chunk], ...]


_PLACES = """
select
  c.chunk_no, c.document_no, c.position, d.source_id, d.path, d.format, c.char_start, c.char_end,
  c.line_start, c.line_end, c.page, c.title, c.section, c.message_ids, c.metadata
from chunks c
join documents d using (document_no)
where len(?::varchar[]) = 0
or list_bool_or(list_transform(?::varchar[], lambda part: contains(c.content, part)))
order by c.chunk_no
"""


def read_places(rows_of: Rows, holding: Sequence[str] = ()) -> list[ChunkPlace]:
    """Return the places of a file's chunks, in order.

    Args:
        holding: texts. Only chunks that contain at least one of them are returned; all chunks if it is empty.

    Raises:
        StoreError: the generation cannot be read.
    """
    return [_place(row) for row in rows_of(_PLACES, [list(holding), list(holding)])]


def _place(row: Sequence[Any]) -> ChunkPlace:
    (
        number, document, position, source, path, kind, start, end, first, last, page, title, section, messages,
        metadata,
    ) = row  # fmt: skip
    return ChunkPlace(
        chunk_no=number,
        document_no=document,
        position=position,
        source_id=source,
        path=path,
        format=kind,
        span=Span(start, end),
        line_range=(first, last),
        page=page,
        title=title,
        section=section,
        message_ids=tuple(messages or ()),
        metadata=freeze(json.loads(metadata)),
    )


def read_texts(rows_of: Rows, documents: Iterable[int]) -> dict[int, str]:
    """Return the texts of documents, by number.

    Raises:
        StoreError: the generation cannot be read.
    """
    numbers = sorted(set(map(int, documents)))
    wanted = "[" + ",".join(map(str, numbers)) + "]"
    return dict(
        rows_of(
            'select document_no, "text" from documents where document_no in (select unnest(?::integer[]))', [wanted]
        )
    )


def read_indexed(rows_of: Rows, domain: str, path: str, sees: Callable[[int], bool]) -> tuple[IndexedDocument, ...]:
    """Return the documents at a path, at most one per source, with everything that was indexed except facts.

    Args:
        domain: the domain of the documents, which the file does not store.
        sees: tells whether the viewer may see the document with a number. Other documents are left out.

    Raises:
        StoreError: the generation cannot be read.
    """
    rows = rows_of(
        """
        select document_no, document_id, source_id, format, title, content_hash, url, metadata, "text"
        from documents
        where path = ?
        order by document_no
        """,
        [path],
    )
    return tuple(
        IndexedDocument(
            Document(
                id=DocumentId(identifier),
                domain=Domain(domain),
                source_id=SourceId(source),
                path=path,
                text=text,
                format=kind,
                content_hash=ContentHash(content_hash),
                title=title,
                url=url,
                metadata=freeze(json.loads(metadata)),
            ),
            _chunks(rows_of, number),
        )
        for number, identifier, source, kind, title, content_hash, url, metadata, text in rows
        if sees(number)
    )


def _chunks(rows_of: Rows, document_no: int) -> tuple[tuple[int, Chunk], ...]:
    rows = rows_of(
        """
        select
          chunk_no, char_start, char_end, content, context, token_count, title, section, page, message_ids, metadata
        from chunks
        where document_no = ?
        order by chunk_no
        """,
        [document_no],
    )
    return tuple(
        (
            number,
            Chunk(
                span=Span(start, end),
                content=content,
                token_count=tokens,
                context=context or "",
                title=title,
                section=section,
                page=page,
                message_ids=tuple(messages or ()),
                metadata=freeze(json.loads(metadata)),
            ),
        )
        for number, start, end, content, context, tokens, title, section, page, messages, metadata in rows
    )
