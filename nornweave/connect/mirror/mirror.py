"""The records that were read from an API and the position of the reading, in one SQLite file per source.

A page and the position after it are stored in one transaction, so that a killed sync goes on at the page it was killed
at. The file is a cache: a damaged one is thrown away and read anew.

SQLite, not DuckDB: it is written a page at a time, and read a document at a time.
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nornweave.connect.mirror.feed import IN_RANGE, NO_PASS, FeedRecord, Known, Pass, RecordPage, in_range
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.files.lock import hold_lock
from nornweave.core.types import digest

log = logging.getLogger(__name__)

_VERSION = 4
_TABLES = (
    """
    create table if not exists records (
      key text primary key,
      document text not null,
      size integer not null,
      digest text not null,
      pass integer not null,
      verified_at real not null,
      body blob not null
    ) without rowid
    """,
    "create index if not exists records_of_document on records (document, key, digest, size, verified_at)",
    "create table if not exists reading (id integer primary key check (id = 1), scope text, state text)",
)
_PATIENCE_S = 10.0
_STORE = """
insert into records (key, document, size, digest, pass, verified_at, body)
values (:key, :document, :size, :digest, :pass, :at, :body)
on conflict (key) do update
set document = excluded.document, body = excluded.body, size = excluded.size, digest = excluded.digest,
  pass = excluded.pass, verified_at = excluded.verified_at
"""
_CONFIRM = f"update records set pass = :pass, verified_at = :at where {IN_RANGE}"  # noqa: S608 - constants
_REMOVE = f"delete from records where {IN_RANGE} and pass < :pass"  # noqa: S608 - constants
_KEEP = f"update records set pass = :pass where {IN_RANGE}"  # noqa: S608 - constants
_COUNT = "select count(*) from records where document = ?"


class MirrorFile:
    """The file with the records of one source, while it is closed.

    Args:
        file: the path of the file. Its folder is made if it is missing.
        scope: what is read. A file with another scope is emptied.
    """

    def __init__(self, file: Path, scope: str = "") -> None:
        self._file = file
        self._scope = scope

    @contextmanager
    def reading(self) -> Iterator[Mirror]:
        """Open the file exclusively for a pass.

        Raises:
            SourceUnavailableError: another process reads the source, or the file cannot be written.
        """
        try:
            with hold_lock(self._file.with_suffix(".lock"), wait=False), closing(self._opened()) as connection:
                yield Mirror(connection)
        except BlockingIOError as error:
            raise SourceUnavailableError("another process is reading this source; try again when it is done") from error
        except (OSError, sqlite3.Error) as error:
            raise SourceUnavailableError(f"{self._file} cannot be written: {error}; free space or permit it") from error

    @contextmanager
    def open(self) -> Iterator[Mirror]:
        """Open the file to read what is stored.

        Raises:
            SourceUnavailableError: the file cannot be read or written now.
        """
        try:
            with closing(self._connect()) as connection:
                yield Mirror(connection)
        except sqlite3.Error as error:
            raise SourceUnavailableError(f"{self._file} cannot be read: {error}; sync again") from error

    def copies_of(self, path: str) -> int:
        """Count the records of a document; 0 if there is no file."""
        if not self._file.is_file():
            return 0
        with self.open() as mirror:
            return int(mirror.connection.execute(_COUNT, (path,)).fetchone()[0])

    def forget(self, path: str) -> None:
        """Delete a document's records and rewrite the file without bytes of deleted records."""
        if self._file.is_file():
            with self.open() as mirror:
                mirror.connection.execute("delete from records where document = ?", (path,))
                mirror.connection.execute("vacuum")
                mirror.connection.execute("pragma wal_checkpoint(truncate)").fetchall()

    def _opened(self) -> sqlite3.Connection:
        """Open the file. A damaged file, or one of another version or scope, is replaced."""
        try:
            connection = self._connect()
            if _is_current(connection, self._scope):
                return connection
            connection.close()
        except sqlite3.DatabaseError as error:
            log.warning("%s is damaged and read anew: %s", self._file, error)
        for suffix in ("", "-wal", "-shm"):
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        connection = self._connect()
        with connection:
            for table in _TABLES:
                connection.execute(table)
            connection.execute("insert into reading values (1, ?, ?)", (self._scope, json.dumps(asdict(NO_PASS))))
            connection.execute(f"pragma user_version = {_VERSION}")
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma secure_delete = on")  # what is deleted is overwritten
        return connection


class Mirror(Known):
    """The records of one source while its file is open."""

    def begin(self, *, full: bool, anew: bool, now: float) -> Pass:
        """Continue the interrupted pass, or start a new one.

        Args:
            full: start a full pass. An interrupted pass for changes is given up.
            anew: start a new pass even if one was interrupted.
            now: the current time, in seconds since 1970.
        """
        before = self.state()
        has_begun = not before.is_complete and before.position is not None
        if has_begun and not anew and (before.is_full or not full):
            return before
        number = before.number + 1
        return self._change(number=number, is_full=full, is_complete=False, began_at=now, position=None, listed=())

    def restart(self) -> Pass:
        """Start the same pass again. The records that it stored are kept."""
        return self._change(position=None)

    def store(self, page: RecordPage, number: int, at: float) -> None:
        """Store a page of a pass and the next position in one transaction.

        Args:
            at: a time before the API was asked for the page, in seconds since 1970.
        """
        with self._transaction():
            self._remove(page.gone)
            for statement, prefixes in ((_CONFIRM, page.confirmed), (_KEEP, page.kept)):
                for prefix in prefixes:
                    self.connection.execute(statement, {**in_range(prefix), "pass": number, "at": at})
            for record in page.records:
                self._store(record, number, at)
            listed = {"listed": page.listed} if page.listed else {}
            since = {} if page.since is None else {"next_since": page.since}
            self._change(position=page.position, **listed, **since)

    def complete(self, now: float) -> None:
        """End a pass. Delete the records that the pass listed completely but did not name.

        A full pass lists everything completely, so all records that it did not name are deleted.
        """
        with self._transaction():
            state = self.state()
            prefixes = [""] if state.is_full else state.listed
            self._remove(prefixes, before=state.number)
            full = {"full_at": now} if state.is_full else {}
            listed = {"listed_at": state.began_at} if prefixes else {}
            self._change(is_complete=True, since=state.next_since, position=None, **full, **listed)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("begin immediate")
        try:
            yield
        except BaseException:
            self.connection.execute("rollback")
            raise
        self.connection.execute("commit")

    def _change(self, **changes: Any) -> Pass:
        state = replace(self.state(), **changes)
        self.connection.execute("update reading set state = ?", (json.dumps(asdict(state)),))
        return state

    def _store(self, record: FeedRecord, number: int, at: float) -> None:
        text = json.dumps(record.body, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
        mark = digest(record.document, text)
        row = self.connection.execute("select digest, verified_at from records where key = ?", (record.key,)).fetchone()
        at = row[1] if row and not record.is_verified else at
        if row and row[0] == mark:
            confirmed = (number, at, record.key)
            self.connection.execute("update records set pass = ?, verified_at = ? where key = ?", confirmed)
            return
        values = {
            "key": record.key,
            "document": record.document,
            "body": zlib.compress(text, 1),
            "size": len(text),
            "digest": mark,
            "pass": number,
            "at": at,
        }
        self.connection.execute(_STORE, values)

    def _remove(self, prefixes: Iterable[str], before: int | None = None) -> None:
        """Delete the records with a key prefix.

        If ``before`` is given, delete only records that were stored by a pass with a lower number than ``before``.
        """
        for prefix in prefixes:
            values = {**in_range(prefix), "pass": math.inf if before is None else before}
            self.connection.execute(_REMOVE, values)


def _is_current(connection: sqlite3.Connection, scope: str) -> bool:
    if connection.execute("pragma user_version").fetchone()[0] != _VERSION:
        return False
    row = connection.execute("select scope from reading").fetchone()
    return row is not None and row[0] == scope


def nothing_known() -> Known:
    """Return an empty set of records, as it is before the first reading."""
    connection = sqlite3.connect(":memory:")
    for table in _TABLES:
        connection.execute(table)
    return Known(connection)
