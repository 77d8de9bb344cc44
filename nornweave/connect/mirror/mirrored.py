"""A source with the documents of a mirror. Listing it first updates the mirror from its API.

A mirror has the records that were read from an API and the position of the reading, in one SQLite file per source. A
page and the position after it are stored in one transaction, so that a killed sync goes on at the page it was killed
at. The file is a cache: a damaged one is thrown away and read anew. SQLite, not DuckDB: it is written a page at a time,
and read a document at a time. What a mirror holds of one document can be counted and removed, bytes of deleted rows
included.
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from nornweave.config.sources import MirroredSettings
from nornweave.connect.mirror.feed import (
    IN_RANGE,
    LEFT_OUT,
    NO_PASS,
    Feed,
    FeedRecord,
    Known,
    Pass,
    PositionLostError,
    RecordPage,
    in_range,
)
from nornweave.core.access import KEY, RIGHTS, every_of
from nornweave.core.errors import DocumentError, SourceUnavailableError, StoreError, TransientDocumentError
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.paths import PathFilter, unsafe_path
from nornweave.core.membership import MembershipTable, membership_file, read_table, write_table
from nornweave.core.types import Document, Domain, Entry, Listing, Skip, SourceId, canonical_json, digest, freeze
from nornweave.read.isolated import parse_apart

_MAX_SKIPS = 1_000
_CHECK_S = 60.0
Watcher: TypeAlias = Callable[[int, int, int | None], None]
"""Called while a source is listed: documents so far, their bytes, and how many are expected, if that is known."""

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


def mirror_file(data_dir: Path, source_id: str) -> Path:
    """Return the path of a source's mirror."""
    return data_dir / "remote" / f"{source_id}.sqlite"


class MirroredSource:
    """The documents of one API. A copy of what the API sent is the mirror.

    ``list`` asks the API for changes. Once in ``relist_hours`` it asks for everything, to find deletions. If the API's
    lists are short, it always asks for everything. If the API or a kill interrupts a pass, the next call of ``list``
    continues the pass. ``fetch`` reads only the mirror.
    """

    def __init__(
        self, settings: MirroredSettings, feed: Feed, data_dir: Path, *, now: Callable[[], float] = time.time
    ) -> None:
        """Store the parameters. Nothing is read.

        Args:
            data_dir: the data folder of the workspace. The mirror is stored in it.
            now: a function that returns the current time, in seconds since 1970.

        Raises:
            ConfigError: a glob is broken.
        """
        self.id = SourceId(settings.id)
        self._paths = PathFilter(settings.chosen, settings.exclude)
        self._feed = feed
        self._mirror = MirrorFile(mirror_file(data_dir, self.id), feed.scope)
        self._relist_s = 0.0 if settings.lists_everything else settings.relist_hours * 3600
        self._members = membership_file(data_dir, self.id) if RIGHTS in settings.restricted_to else None
        self._problem = settings.problem
        self._budget_s = settings.max_minutes * 60
        self._now = now
        self._is_thorough = False
        self._watcher: Watcher = lambda *_: None

    @property
    def domain(self) -> Domain:
        return self._feed.domain

    @property
    def version(self) -> str:
        return self._feed.version

    def watched_by(self, watcher: Watcher) -> None:
        """Let the source call ``watcher`` while it is listed."""
        self._watcher = watcher

    def list_everything_again(self) -> None:
        """Make the next call of ``list`` run a full pass."""
        self._is_thorough = True

    def check(self) -> None:
        """Ask the API for the first page without storing it."""
        self._begin(_CHECK_S)
        with _translate_shape_errors():
            next(self._feed.pages(Pass(is_full=True), nothing_known()), None)

    def list(self) -> Listing:
        """Update the mirror and list its documents.

        Returns:
            The documents in the mirror. If the API failed during the pass, the listing has a ``problem``. In that case
            a missing document does not count as deleted.

        Raises:
            SourceUnavailableError: the API failed, and the mirror is still empty.
        """
        with self._mirror.reading() as mirror:
            problem = None
            try:
                self._pull(mirror)
            except SourceUnavailableError as error:
                if not mirror.totals()[0]:
                    raise SourceUnavailableError(f"source {self.id!r}: {error}") from error
                problem = str(error)
            entries, skipped = [], _left_out(mirror)
            for each in mirror.documents():
                if reason := unsafe_path(each.path):
                    skipped.append(Skip(each.path, reason))
                elif self._paths.matches(each.path):
                    entries.append(self._with_readers(each, mirror))
            listed_at = mirror.state().listed_at
            notices = self._refresh_members(mirror)
        moment = datetime.fromtimestamp(listed_at, UTC) if listed_at else None
        return Listing(tuple(entries), tuple(skipped), problem, listed_at=moment, notices=notices)

    def refresh_members(self) -> MembershipTable | None:
        """Ask only for members. Return the table of members; ``None`` if ``rights`` is not set.

        Raises:
            SourceUnavailableError: the mirror of the last sync cannot be opened.
        """
        if self._members is None:
            return None
        with self._mirror.open() as mirror:
            self._refresh_members(mirror)
        return read_table(self._members)

    def fetch(self, entry: Entry) -> bytes:
        try:
            with self._mirror.open() as mirror:
                records = list(mirror.records_of(entry.path))
                if not records:
                    raise TransientDocumentError("it vanished after it was listed; the next sync settles it")
                return self._feed.assemble(entry.path, records, mirror)
        except SourceUnavailableError as error:
            raise TransientDocumentError(str(error)) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DocumentError(f"the API's answer has another shape than expected ({error!r})") from error

    def parse(self, entry: Entry, raw: bytes) -> Document:
        return parse_apart(self._feed.parser, self.id, entry, raw, **self._feed.options)

    def copies_of(self, path: str) -> int:
        return self._mirror.copies_of(path)

    def forget(self, path: str) -> None:
        self._mirror.forget(path)

    def _with_readers(self, entry: Entry, known: Known) -> Entry:
        """Return an entry with its readers if ``rights`` is set. The entry's gate changes with the readers."""
        if self._members is None:
            return entry
        readers = tuple(tuple(sorted(each)) for each in self._feed.readers(entry.path, known)) or ((),)
        metadata = freeze({**entry.metadata, KEY: every_of(readers)})
        return replace(entry, gate=digest(entry.gate, canonical_json(metadata)), metadata=metadata)

    def _refresh_members(self, known: Known) -> tuple[str, ...]:
        """Ask for members and store them. Return notices about failures.

        After a failure the members of the last answer stay valid until a time limit.
        """
        if self._members is None:
            return ()
        now, origin = self._now(), self._feed.origin(known)
        before = None
        with suppress(StoreError):  # an unreadable table is replaced
            before = read_table(self._members)
        if before is None or before.origin != origin:
            before = MembershipTable(origin=origin, tried_at=now)
        try:
            self._begin(self._budget_s)
            with _translate_shape_errors():
                table = before.read_again(self._feed.members(known), now)
        except SourceUnavailableError as error:
            table = before.not_read(str(error), now)
        with suppress(StoreError):  # a process that asked later but finished earlier has newer members
            there = read_table(self._members)
            if there and there.origin == origin and now < there.tried_at <= self._now():
                return ()
        try:
            write_table(self._members, table)
        except StoreError as error:
            return (f"who may read is not known anew: {error}",)
        more = f"; and {len(table.problems) - 1:,} more" if len(table.problems) > 1 else ""
        return (f"who may read is not known anew of {table.problems[0]}{more}",) if table.problems else ()

    def _pull(self, mirror: Mirror) -> None:
        """Read the API to the end of a pass."""
        self._begin(self._budget_s)
        now, anew = self._now(), self._is_thorough
        state = mirror.begin(full=anew or self._is_due(mirror.state(), now), anew=anew, now=now)
        state = replace(state, is_thorough=anew)
        with _translate_shape_errors():
            try:
                self._read(mirror, state)
            except PositionLostError:
                mirror.restart()
                self._read(mirror, replace(state, position=None))
        mirror.complete(now)
        self._is_thorough = False

    def _read(self, mirror: Mirror, state: Pass) -> None:
        expected, asked_at = None, self._now()
        for page in self._feed.pages(state, mirror):
            mirror.store(page, state.number, asked_at)
            asked_at = self._now()
            expected = page.expected if page.expected is not None else expected
            self._watcher(*mirror.totals(), expected)

    def _begin(self, seconds: float) -> None:
        """Limit the time for asking the API to ``seconds``."""
        if self._problem:
            raise SourceUnavailableError(self._problem)
        if self._feed.client:
            self._feed.client.ends_at = time.monotonic() + seconds

    def _is_due(self, before: Pass, now: float) -> bool:
        """Tell whether a full pass is due.

        If the last full pass lies in the future, a clock was wrong, and a full pass counts as due.
        """
        return not before.full_at or not 0 <= now - before.full_at < self._relist_s


@contextmanager
def _translate_shape_errors() -> Iterator[None]:
    """Turn the errors that an answer of unexpected form causes inside the block into ``SourceUnavailableError``."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SourceUnavailableError(f"an answer of another shape than expected ({error!r})") from error


def _left_out(mirror: Mirror) -> list[Skip]:
    """Return at most ``_MAX_SKIPS`` skips of what the feed left out. If there are more, the last skip counts them."""
    reasons = (
        Skip(str(body.get("path")), str(body["reason"])) for _, body in mirror.under(LEFT_OUT) if body.get("reason")
    )
    skipped = list(islice(reasons, _MAX_SKIPS))
    more = sum(1 for _ in reasons)
    return [*skipped, Skip("…", f"{more:,} more are left out")] if more else skipped


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
