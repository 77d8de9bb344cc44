"""The files of one domain in PostgreSQL, as object storage has those of machines that write in turns.

Whoever writes holds a session advisory lock on the connection that does all the writing: without the connection there
is no lock and no way to write. What is published is in one row, which names the files, and is written in the
transaction that shows their documents to people with SQL.

Those are the documents and chunks of the published generation as SQL tables with row-level security. They are written
where the roles of ``nornweave roles`` are there. Rows have the segment that they are in: a publication writes those of
its new segments, and removes those that are gone.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import duckdb
from psycopg.types.json import Jsonb

from nornweave.carry.parts import StoredDocument, StoredObject
from nornweave.carry.postgresql.server import (
    Connection,
    Server,
    compact,
    prepare_schema,
    release_lock,
    take_lock,
    translate_errors,
    writing,
)
from nornweave.carry.shared_folder import SharedFolder
from nornweave.core.access import decode_rule, decode_source_rules, encode_rule, rule_of
from nornweave.core.errors import MissingObjectError, StoreError
from nornweave.core.files.lock import holder_text
from nornweave.index.connection import Connection as FileConnection
from nornweave.index.connection import connect_reader
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.searching.generation_file import DataFile

_BATCH_ROWS = 2_000
# PostgreSQL stores no NUL in a text; another character in its place keeps every position.
_NO_NUL = str.maketrans("\0", "\N{REPLACEMENT CHARACTER}")
_ARE_THERE = """
select from pg_roles where rolname = 'nornweave_people' and has_table_privilege(oid, 'documents'::regclass, 'select')
"""
_DOCUMENT = """
select document_no, document_id, source_id, path, gate, content_hash, format, title, updated_at, revision, url,
  metadata, "text", access, stale
from documents
where document_no in (select unnest({}::integer[]))
"""
_CHUNK = """
select chunk_no, document_no, chunk_id, position, char_start, char_end, line_start, line_end, page, content, context,
  title, section, message_ids, token_count, metadata, facts
from chunks
where document_no in (select unnest({}::integer[]))
"""


class PostgresCarrier:
    """The schema of one domain. Implements ``Claim`` and ``Objects`` of ``parts``.

    An object is a row of at most 8 MiB, so that a reader can fetch it within the deadline of one statement.
    """

    def __init__(self, server: Server, folder: Path, purpose: str) -> None:
        """Store the arguments. ``folder`` has the files of the domain on this machine."""
        self.url = server.name
        self.fence = 0
        self._server = server
        self._files = GenerationFiles(folder / "generations", SharedFolder(folder, lambda _: self, lambda _: self))
        self._purpose = purpose
        self._former_copies = folder / "copies"
        self._resources = ExitStack()
        self._lock = threading.Lock()
        """Of the connection: parts of a file come from several threads."""

    def take(self, wait_s: float) -> Mapping[str, Any]:
        """Take the writer's lock. Return the last committed state; empty if there is none."""
        with ExitStack() as stack:
            connection = stack.enter_context(writing(self._server, "cannot be written"))
            take_lock(connection, self._server, wait_s=wait_s)
            stack.callback(release_lock, connection)
            prepare_schema(connection, self._server)
            shutil.rmtree(self._former_copies, ignore_errors=True)  # of an earlier version
            said = "update carried set fence = fence + 1, holder = %s returning fence, state"
            ((self.fence, state),) = connection.execute(said, [holder_text(self._purpose)]).fetchall()
            self._connection: Connection = connection
            self._resources = stack.pop_all()
        return dict(state)

    def state(self) -> Mapping[str, Any]:
        """Return the last committed state without taking the lock; empty if there is none."""
        rows = self._server.rows_if_there("select state from carried")
        return dict(rows[0][0]) if rows else {}

    def committed(self) -> str | None:
        """Return the name of the last commit; ``None`` if there is none."""
        rows = self._server.rows_if_there("select state->>'commit' from carried")
        return rows[0][0] if rows else None

    def confirm(self) -> None:
        """Check that the connection, and so the lock, still exists."""
        with translate_errors(self._server, "the lock is lost, nothing more is published"):
            self._connection.execute("select 1")

    def commit(self, state: Mapping[str, Any]) -> None:
        """Store the state for the next holder. Write the tables that people query with SQL."""
        connection = self._connection
        with (
            translate_errors(self._server, "nothing was published, the old generation stays"),
            connection.transaction(),
        ):
            connection.execute("update carried set state = %s", [Jsonb(dict(state))])
            show_to_people(connection, self._files)

    def release(self) -> None:
        """Release the lock."""
        self._resources.close()

    def read(self, key: str, *, arrived: Callable[[int], None] = lambda _: None) -> StoredDocument:
        """Return the object with a key. Call ``arrived`` with its size in bytes."""
        rows = self._server.rows("select content from objects where key = %s", [key])
        if not rows:
            raise MissingObjectError(f"{self.url}/{key}: there is no such object")
        arrived(len(rows[0][0]))
        return StoredDocument(rows[0][0], None)

    def write(self, key: str, content: bytes) -> None:
        """Write an object. If its key exists, replace the content."""
        statement = "insert into objects values (%s, %s) on conflict (key) do update set content = excluded.content"
        with self._lock, translate_errors(self._server, f"{key} was not stored"):
            self._connection.execute(statement, [key, content])

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with a prefix."""
        for (key,) in self._server.rows("select key from objects where starts_with(key, %s)", [prefix]):
            yield StoredObject(key, datetime.now(UTC))

    def remove(self, key: str) -> None:
        """Remove an object; do nothing if it does not exist."""
        with translate_errors(self._server, f"{key} was not removed"):
            self._connection.execute("delete from objects where key = %s", [key])

    def overwrite(self) -> None:
        """Rewrite the tables, so that the bytes of removed rows are gone."""
        with translate_errors(self._server, "removed rows are not overwritten"):
            compact(self._connection, ("objects", "documents", "chunks"))


def in_server(server: Server, folder: Path) -> SharedFolder:
    """Return the folder of a domain in a schema. Readers ask the server what is published."""
    committed = PostgresCarrier(server, folder, "read").committed
    return SharedFolder(folder, partial(PostgresCarrier, server, folder), lambda carrier: carrier, committed)


def show_to_people(connection: Connection, files: GenerationFiles) -> None:
    """Write the published generation of this machine to the tables that people query with SQL.

    Raises:
        StoreError, psycopg.Error: the tables were not written.
    """
    current = files.current()
    if current is None or connection.execute(_ARE_THERE).fetchone() is None:
        return
    held = {file.path.name: file for file in files.data_files(current)}
    connection.execute("delete from documents where segment <> all(%s)", [list(held)])
    for name, file in held.items():
        _show_segment(connection, name, file)


def _show_segment(connection: Connection, name: str, file: DataFile) -> None:
    rows = connection.execute("select document_no from documents where segment = %s", [name]).fetchall()
    shown = {number for (number,) in rows}
    reader = connect_reader(file.path)
    try:
        live = {number for (number,) in reader.execute("select document_no from documents").fetchall()} - {*file.gone}
        statement = "delete from documents where segment = %s and document_no = any(%s)"
        connection.execute(statement, [name, list(shown - live)])  # their chunks go with them
        if missing := sorted(live - shown):
            rules: dict[int, str] = {}
            _insert(connection, "documents", ([name, *row] for row in _documents(reader, missing, rules)))
            chunks = _rows(reader, _CHUNK, missing)
            _insert(connection, "chunks", ([name, *row, rules[row[1]]] for row in chunks))
    finally:
        reader.close()


def _insert(connection: Connection, table: Literal["documents", "chunks"], rows: Iterator[list[Any]]) -> None:
    """Insert rows. ``insert`` is used because ``copy`` does not work with row-level security."""
    first = next(rows, None)
    if first is not None:
        statement = f"insert into {table} values ({', '.join(['%s'] * len(first))})"
        connection.cursor().executemany(statement, chain([first], rows))


def _documents(reader: FileConnection, numbers: list[int], rules: dict[int, str]) -> Iterator[list[Any]]:
    """Yield the rows of the documents with these numbers, each with the document's full access rule as JSON.

    Store each rule in ``rules`` by document number. A full rule joins the document's own rule and its source's.
    """
    ((sources,),) = reader.execute("select value from meta where key = 'access'").fetchall()
    stated = decode_source_rules(sources)
    for row in _rows(reader, _DOCUMENT, numbers):
        source_id, own = row[2], decode_rule(row[13])
        rules[row[0]] = encode_rule(rule_of(source_id, own, stated)) or "[]"
        yield [*row, rules[row[0]]]


def _rows(reader: FileConnection, statement: str, numbers: list[int]) -> Iterator[list[Any]]:
    try:
        for batch in reader.sql(statement.format(numbers)).to_arrow_reader(_BATCH_ROWS):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield [value.translate(_NO_NUL) if isinstance(value, str) else value for value in row]
    except duckdb.Error as error:
        raise StoreError(f"a segment cannot be read: {error}; roll back, or sync again") from error
