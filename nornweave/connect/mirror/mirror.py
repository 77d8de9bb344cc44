"""What was read of an API: records, and how far the reading came, in one SQLite file per source.

A page and the position after it are stored in one transaction, so that a killed sync goes on at the page it was killed
at. The file is a cache: a damaged one is thrown away and read anew.

SQLite, not DuckDB: it is written a page at a time, and read a document at a time.
"""

from __future__ import annotations

import fcntl
import json
import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nornweave.connect.mirror import statements
from nornweave.connect.mirror.feed import Body, FeedRecord, Pass, RecordPage
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import Entry, digest

log = logging.getLogger(__name__)

_VERSION = 2
_PATIENCE_S = 10.0
# Sorts after everything that starts with the same prefix.
_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class MirrorReading:
    """How far the reading came.

    Attributes:
        number: of the pass, from 1; 0 before the first.
        is_complete: it came to its end; the next reading starts a new pass.
        full_at: when the last full pass ended, in seconds since 1970; 0 before there was one.
        listed_at: when the last pass began that named every document; 0 before there was one.
    """

    number: int
    is_complete: bool
    full_at: float
    listed_at: float
    state: Pass


class _StoredRecords:
    """What can be read while the file is open; ``Known`` for the feed."""

    _connection: sqlite3.Connection

    def documents(self) -> Iterator[Entry]:
        """Yield the documents, by path; each was verified when the API last confirmed all of its records."""
        for path, mark, size, verified_at in self._connection.execute(statements.DOCUMENTS):
            yield Entry(path=path, gate=mark, size=size, verified_at=datetime.fromtimestamp(verified_at, UTC))

    def records_of(self, path: str) -> Iterator[tuple[str, Body]]:
        """Yield the records of a document, by key."""
        rows = self._connection.execute("select key, body from records where document = ? order by key", (path,))
        return _unpacked(rows)

    def body(self, key: str) -> Body | None:
        """Return a record; ``None`` when it is not there."""
        row = self._connection.execute("select body from records where key = ?", (key,)).fetchone()
        return _body(row[0]) if row else None

    def under(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so, by key."""
        rows = self._connection.execute(statements.UNDER, _range(prefix))
        return _unpacked(rows.fetchall())

    def surviving(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so and that a full pass would not delete if it ended now, by key."""
        rows = self._connection.execute(statements.SURVIVING, _range(prefix))
        return _unpacked(rows.fetchall())

    def oldest(self, prefix: str, *, before: float, limit: int, is_named: bool = False) -> Iterator[tuple[str, Body]]:
        """Yield records that were last confirmed before a moment, oldest first; see ``Known``."""
        values = {**_range(prefix), "before": before, "limit": limit, "is_named": is_named}
        return _unpacked(self._connection.execute(statements.OLDEST, values).fetchall())

    def count(self, prefix: str) -> int:
        """Count the records whose keys start so."""
        row = self._connection.execute(statements.COUNT, _range(prefix)).fetchone()
        return int(row[0])

    def totals(self) -> tuple[int, int]:
        """Return how many documents there are, and their bytes."""
        row = self._connection.execute("select count(*), coalesce(sum(size), 0) from documents").fetchone()
        return int(row[0]), int(row[1])


class Mirror(_StoredRecords):
    """The records of one source; a context manager that holds the file open.

    Args:
        file: in a folder that is made as well.
        scope: what is read; a file of another scope is emptied.
    """

    def __init__(self, file: Path, scope: str) -> None:
        self._file = file
        self._scope = scope

    @contextmanager
    def reading(self) -> Iterator[Mirror]:
        """Hold the file open, alone.

        Raises:
            SourceUnavailableError: another process reads the source, or the file cannot be written.
        """
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.with_suffix(".lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with closing(self._opened()) as self._connection:
                    yield self
        except BlockingIOError as error:
            raise SourceUnavailableError("another process is reading this source; try again when it is done") from error
        except (OSError, sqlite3.Error) as error:
            raise SourceUnavailableError(f"{self._file} cannot be written: {error}; free space or permit it") from error

    @contextmanager
    def open(self) -> Iterator[Mirror]:
        """Hold the file open for reading what is stored.

        Raises:
            SourceUnavailableError: the file cannot be read.
        """
        try:
            with closing(self._connect()) as self._connection:
                yield self
        except sqlite3.Error as error:
            raise SourceUnavailableError(f"{self._file} cannot be read: {error}; sync again") from error

    def begin(self, *, full: bool, anew: bool, now: float) -> MirrorReading:
        """Go on with the pass that was interrupted, or start a new one.

        Args:
            full: a full pass is due; one of changes that was interrupted is given up for it.
            anew: start a new one in any case.
            now: seconds since 1970.
        """
        before = self.state()
        has_begun = not before.is_complete and before.state.position is not None
        if has_begun and not anew and (before.state.is_full or not full):
            return before
        with self._transaction():
            self._connection.execute(
                """
                update reading
                set pass = pass + 1, is_full = ?, is_complete = 0, position = 'null', listed = '[]', began_at = ?
                """,
                (int(full), now),
            )
        return self.state()

    def restart(self) -> None:
        """Begin the pass again from its start; what it has stored stays."""
        with self._transaction():
            self._connection.execute("update reading set position = 'null'")

    def state(self) -> MirrorReading:
        """Return how far the reading came."""
        row = self._connection.execute(
            "select pass, is_full, is_complete, position, since, began_at, full_at, listed_at from reading"
        ).fetchone()
        number, is_full, is_complete, position, since, began_at, full_at, listed_at = row
        places = {"position": json.loads(position), "since": json.loads(since)}
        state = Pass(is_full=bool(is_full), began_at=began_at, **places)
        return MirrorReading(number, bool(is_complete), full_at, listed_at, state)

    def store(self, page: RecordPage, number: int, at: float) -> None:
        """Store a page of a pass, and where to go on, in one transaction.

        Args:
            number: of the pass.
            at: the API was asked for the page after this moment, in seconds since 1970.
        """
        with self._transaction():
            touched = self._remove(page.gone)
            for statement, prefixes in ((statements.CONFIRM, page.confirmed), (statements.KEEP, page.kept)):
                for prefix in prefixes:
                    self._connection.execute(statement, {**_range(prefix), "pass": number, "at": at})
            for record in page.records:
                touched |= self._store(record, number, at)
            self._mark(touched)
            self._connection.execute("update reading set position = ?", (json.dumps(page.position),))
            if page.listed:
                self._connection.execute("update reading set listed = ?", (json.dumps(page.listed),))
            if page.since is not None:
                self._connection.execute("update reading set next_since = ?", (json.dumps(page.since),))

    def complete(self, number: int, *, full: bool, now: float) -> None:
        """End a pass; what it listed completely and did not name is deleted, in a full pass of all records."""
        with self._transaction():
            listed = self._connection.execute("select listed from reading").fetchone()[0]
            prefixes = [""] if full else json.loads(listed)
            for prefix in prefixes:
                unnamed = {**_range(prefix), "pass": number}
                rows = self._connection.execute(statements.STALE, unnamed).fetchall()
                self._connection.execute(statements.REMOVE_STALE, unnamed)
                self._mark(path for (path,) in rows)
            if full:
                self._connection.execute("update reading set full_at = ?", (now,))
            if prefixes:
                self._connection.execute("update reading set listed_at = began_at")
            self._connection.execute("update reading set is_complete = 1, since = next_since, position = 'null'")

    def _opened(self) -> sqlite3.Connection:
        """Open the file; one that is damaged, of another version or of another scope is thrown away."""
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
            for table in statements.TABLES:
                connection.execute(table)
            connection.execute(statements.START, {"scope": self._scope})
            connection.execute(f"pragma user_version = {_VERSION}")
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma secure_delete = on")  # what is deleted is overwritten
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def _store(self, record: FeedRecord, number: int, at: float) -> set[str]:
        """Store a record; return the documents that it changes."""
        text = json.dumps(record.body, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
        mark = digest(record.document, text)
        row = self._connection.execute(statements.BEFORE, (record.key,)).fetchone()
        at = row[2] if row and not record.is_verified else at
        if row and row[1] == mark:
            confirmed = (number, at, record.key)
            self._connection.execute("update records set pass = ?, verified_at = ? where key = ?", confirmed)
            return set()
        values = {
            "key": record.key,
            "document": record.document,
            "body": zlib.compress(text, 1),
            "size": len(text),
            "digest": mark,
            "pass": number,
            "at": at,
        }
        self._connection.execute(statements.STORE, values)
        return {record.document, row[0]} if row else {record.document}

    def _remove(self, prefixes: Iterable[str]) -> set[str]:
        touched: set[str] = set()
        for prefix in prefixes:
            rows = self._connection.execute(statements.TOUCHED, _range(prefix))
            touched |= {path for (path,) in rows}
            self._connection.execute(statements.REMOVE, _range(prefix))
        return touched

    def _mark(self, paths: Iterable[str]) -> None:
        """Compute the marks of documents from their records; a document without any is gone."""
        for path in paths:
            if not path:
                continue
            rows = self._connection.execute(
                "select key, digest, size from records where document = ? order by key", (path,)
            ).fetchall()
            if rows:
                mark = digest(*(part for key, record, _ in rows for part in (key, record)))
                self._connection.execute(
                    statements.MARK, {"path": path, "mark": mark, "size": sum(row[2] for row in rows)}
                )
            else:
                self._connection.execute("delete from documents where path = ?", (path,))


def _is_current(connection: sqlite3.Connection, scope: str) -> bool:
    if connection.execute("pragma user_version").fetchone()[0] != _VERSION:
        return False
    row = connection.execute("select scope from reading").fetchone()
    return row is not None and row[0] == scope


def _range(prefix: str) -> dict[str, Any]:
    return {"first": prefix, "last": prefix + _LAST}


def _unpacked(rows: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Body]]:
    return ((key, _body(body)) for key, body in rows)


def _body(packed: bytes) -> Body:
    loaded: Body = json.loads(zlib.decompress(packed))
    return loaded
