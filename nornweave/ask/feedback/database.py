"""The SQLite file of feedback: its tables and its queries.

SQLite, not DuckDB: several serving processes write it at once, a row at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from nornweave.ask.feedback.records import StoredAnswer, check_shown
from nornweave.core.errors import StoreError

FILE = "feedback.sqlite"

# Deleted in one transaction, some 20 ms; what others have to write comes between two.
BATCH = 2_000
# How long to wait for others, who write a few milliseconds at a time.
BUSY_S = 5.0
_VERSION = 2
# Pages that are written before SQLite moves them from its log into the file: 40 MB, so that ``forget`` does it.
_LOG_PAGES = 10_000

_TABLES = (
    """
    create table if not exists shown (
      number integer primary key,
      query_id text not null unique,
      at text not null,
      text text not null,
      filters text not null,
      domains text not null,
      items text not null,
      asker text not null default '',
      judged integer not null default 0
    )
    """,
    "create index if not exists shown_unjudged on shown (at) where judged = 0",
    """
    create table if not exists feedback (
      query_id text not null references shown (query_id),
      chunk_id text not null,
      useful integer not null check (useful in (0, 1)),
      at text not null,
      primary key (query_id, chunk_id)
    ) without rowid
    """,
)
_REMEMBER = """
insert or ignore into shown (query_id, at, text, filters, domains, items, asker)
values (:query_id, :at, :text, :filters, :domains, :items, :asker)
"""
_ITEMS = "select items from shown where query_id = :query_id and asker = :asker"
_VOTE = "select useful from feedback where query_id = :query_id and chunk_id = :chunk_id"
_JUDGE = """
insert into feedback (query_id, chunk_id, useful, at)
values (:query_id, :chunk_id, :useful, :at)
on conflict (query_id, chunk_id) do update
set useful = excluded.useful, at = excluded.at
"""
_KEEP = "update shown set judged = 1 where query_id = :query_id"
JUDGED = """
select query_id, shown.at, text, filters, domains, items, chunk_id, useful
from feedback
join shown using (query_id)
order by shown.number, chunk_id
"""
_FORGET_OLD = """
delete from shown
where number in (select number from shown where judged = 0 and at < :before order by at limit :batch)
"""
_FORGET_MANY = """
delete from shown
where number in (
  select number
  from shown
  where judged = 0 and number <= (select max(number) from shown) - :most
  order by number
  limit :batch
)
"""


class FeedbackFile:
    """Feedback in a file that all processes of this machine share; implements ``FeedbackDatabase``.

    The file is made when there is something to write.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self.name = str(self._file)
        self._remembering: sqlite3.Connection | None = None

    def exists(self) -> bool:
        return self._file.exists()

    def remember(self, answers: Sequence[StoredAnswer]) -> None:
        with _translated():
            connection = self._remembering = self._remembering or _open(self._file)
            with _transaction(connection):
                connection.executemany(_REMEMBER, answers)

    def judge(self, query_id: str, chunk_id: str, *, useful: bool, at: str, asker: str) -> tuple[bool, bool | None]:
        names = {"query_id": query_id, "chunk_id": chunk_id}
        with self._opened(synchronous=True) as connection, _transaction(connection):
            found = connection.execute(_ITEMS, {"query_id": query_id, "asker": asker}).fetchone()
            if found is None:
                return False, None
            check_shown(chunk_id, [str(item["chunk_id"]) for item in json.loads(found["items"])])
            before = connection.execute(_VOTE, names).fetchone()
            connection.execute(_JUDGE, {**names, "useful": int(useful), "at": at})
            connection.execute(_KEEP, names)
        return True, None if before is None else bool(before["useful"])

    def votes(self) -> list[Mapping[str, Any]]:
        with self._opened() as connection:
            return [dict(row) for row in connection.execute(JUDGED)]

    def forget(self, *, before: str, most: int) -> None:
        limits = {"before": before, "most": most, "batch": BATCH}
        with self._opened() as connection:
            for statement in (_FORGET_OLD, _FORGET_MANY):
                while connection.execute(statement, limits).rowcount == BATCH:
                    pass
            # Here, so that hardly a query has to.
            connection.execute("pragma wal_checkpoint(passive)").fetchall()

    def answers(self) -> list[tuple[str, str, str]]:
        if not self.exists():
            return []
        with self._opened() as connection:
            return [tuple(row) for row in connection.execute("select query_id, text, items from shown")]

    def remove(self, query_ids: Sequence[str]) -> None:
        with self._opened(synchronous=True) as connection:
            with _transaction(connection):
                for table in ("feedback", "shown"):
                    statement = f"delete from {table} where query_id = ?"  # noqa: S608 - of two constants
                    connection.executemany(statement, [(each,) for each in query_ids])
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()

    def close(self) -> None:
        """Close the connection that answers are written with."""
        if self._remembering:
            self._remembering.close()
            self._remembering = None

    @contextmanager
    def _opened(self, *, synchronous: bool = False) -> Iterator[sqlite3.Connection]:
        with _translated(), closing(_open(self._file, synchronous=synchronous)) as connection:
            yield connection


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(str(error)) from error
    except OSError as error:  # without the path
        raise StoreError(str(error.strerror)) from error


def _open(file: Path, *, synchronous: bool = False) -> sqlite3.Connection:
    """Open the file, making it where there is none.

    Args:
        file: in a folder that is made as well.
        synchronous: what is committed survives a crash of the machine; otherwise one of the process.

    Raises:
        OSError, sqlite3.Error: it cannot be opened.
        StoreError: another version wrote it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # Transactions are begun by hand; who shares a connection between threads sees to it that they take turns.
    connection = sqlite3.connect(file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute(f"pragma synchronous = {'full' if synchronous else 'normal'}")
        connection.execute(f"pragma wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute("pragma secure_delete = on")  # what is forgotten is overwritten
        with suppress(sqlite3.OperationalError):  # while another process writes the next one that opens it does this
            connection.execute("pragma journal_mode = wal").fetchone()
        _make_or_check(connection, file)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_or_check(connection: sqlite3.Connection, file: Path) -> None:
    version = connection.execute("pragma user_version").fetchone()[0]
    if version == 0:
        _make(connection)
    elif version != _VERSION:
        found = f"is of version {version}, this program writes version {_VERSION}"
        raise StoreError(f"{file.name} {found}; use the program that wrote it, or move the file away")


def _make(connection: sqlite3.Connection) -> None:
    """Make the tables; another process may do so at the same time."""
    with _transaction(connection):
        for table in _TABLES:
            connection.execute(table)
        connection.execute(f"pragma user_version = {_VERSION}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write, all or nothing; locked from the start, so that nothing that was read is outdated when it is written."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it by itself when the disk is full
            connection.execute("rollback")
        raise
