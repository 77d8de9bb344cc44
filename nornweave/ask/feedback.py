"""Shown answers and the users' judgments of their items.

Both are in one table of a SQLite file that all processes of this machine share: SQLite, not DuckDB, because several
serving processes write it at once, a row at a time. The texts of queries are stored here and nowhere else.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.ask.search.question import Question
from nornweave.ask.views.answer import FusedItemDocument, FusionResult
from nornweave.config import Settings
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Metadata, canonical_json, digest, freeze

log = logging.getLogger(__name__)

FILE = "feedback.sqlite"
# Who judges an answer does so within the hour, or when the work that it was for is done: a month is generous, and no
# longer than texts of questions have to lie around.
REMEMBERED_DAYS = 30
# About 400 MB at ten items each: more than a busy team asks in a month, and a bound for whoever asks in a loop.
REMEMBERED_ANSWERS = 100_000
# An answer takes about 4 kB. What takes this much more (filters of thousands of values) is not remembered.
MAX_ANSWER_CHARACTERS = 256_000
# A query waits this long for its answer to be written, which usually takes less than a millisecond. After a failure
# the answers of the next second are not written, and their queries do not wait.
PATIENCE_S, PAUSE_S = 0.1, 1.0
# Feedback waits longer: somebody is told whether it is stored.
FEEDBACK_PATIENCE_S = 5.0
TIDY_EVERY_S = 60.0
# Deleted in one transaction, some 20 ms; what others have to write comes between two.
BATCH = 2_000
_ALWAYS = "~"  # comes after every date
_VERSION = 3
# Pages that are written before SQLite moves them from its log into the file: 40 MB, so that ``tidy`` does it.
_LOG_PAGES = 10_000

# ``votes`` is JSON: chunk → whether it was useful. Nobody has judged an answer whose votes are '{}'.
_MAKE = (
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
      votes text not null default '{}'
    )
    """,
    "create index if not exists shown_unjudged on shown (at) where votes = '{}'",
)
# Version 2 had a table of its own for what was said.
_UPGRADE = (
    "alter table shown add column votes text not null default '{}'",
    """
    update shown
    set votes = (
      select json_group_object(chunk_id, json(iif(useful, 'true', 'false')))
      from feedback
      where feedback.query_id = shown.query_id
    )
    where query_id in (select query_id from feedback)
    """,
    "drop table feedback",
    "drop index shown_unjudged",  # of another condition
)
_REMEMBER = """
insert or ignore into shown (query_id, at, text, filters, domains, items, asker)
values (:query_id, :at, :text, :filters, :domains, :items, :asker)
"""
_FORGET_OLD = """
delete from shown
where number in (select number from shown where votes = '{}' and at < :before order by at limit :batch)
"""
_FORGET_MANY = """
delete from shown
where number in (
  select number
  from shown
  where votes = '{}' and number <= (select max(number) from shown) - :most
  order by number
  limit :batch
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownItem:
    """One item of an answer as it was shown: its place in its document, without its text.

    Attributes:
        rank: from 1.
        line_range: first and last line, from 1; ``None`` if lines are not cited.
        message_ids: the ids of the messages that the chunk itself holds; empty outside conversations.
    """

    chunk_id: str
    rank: int
    score: float
    domain_id: str
    source_id: str
    source_path: str
    line_range: tuple[int, int] | None
    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """An answer with at least one judged item.

    Attributes:
        items: all shown items, best first.
        votes: chunk → whether it was useful; only for shown items.
    """

    query_id: str
    at: datetime
    text: str
    filters: Mapping[str, Metadata]
    domains: tuple[str, ...]
    items: tuple[ShownItem, ...]
    votes: Mapping[str, bool]


class FeedbackDocument(TypedDict):
    """The stored judgment of one item of one answer."""

    query_id: str
    chunk_id: str
    useful: bool
    at: Annotated[str, Field(description="ISO 8601, UTC")]
    previous: Annotated[bool | None, Field(description="what was said of it before; null if nothing")]


class FeedbackBook:
    """The feedback of a workspace. Every method may be called from any thread, in any number of processes.

    The first write makes the file.
    """

    def __init__(
        self, folder: Path, *, keep_queries: bool = True, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Store the place of the file.

        Args:
            keep_queries: whether to remember answers. If not, no new answer can be judged, and ``tidy`` forgets all
                answers without a judgment.
        """
        self.file = folder / FILE
        self._keep_queries = keep_queries
        self._now = now
        self._lock = threading.Lock()
        self._remembering: sqlite3.Connection | None = None
        self._not_before = self._tidy_at = 0.0
        self._in_trouble = False

    def shown(self, question: Question, document: FusionResult) -> None:
        """Remember an answer, so that its items can be judged.

        This never raises and hardly waits. An answer that cannot be written now (another process writes, the disk is
        full) is not remembered; the log says so once.
        """
        if not self._keep_queries or time.monotonic() < self._not_before:
            return
        row = _row(question, document, self._now())
        if sum(map(len, row.values())) > MAX_ANSWER_CHARACTERS:
            log.info("answer %s is too large to be remembered", document["query_id"])
            return
        if not self._lock.acquire(timeout=PATIENCE_S):
            return
        try:
            self._remembering = self._remembering or _open(self.file, PATIENCE_S)
            self._remembering.execute(_REMEMBER, row)
            self._in_trouble = False
        except (sqlite3.Error, OSError, StoreError) as error:
            self._not_before = time.monotonic() + PAUSE_S
            self._say_once(error)
        finally:
            self._lock.release()

    def add(self, query_id: str, chunk_id: str, useful: bool, *, asker: str = "") -> FeedbackDocument | None:
        """Store a user's judgment of one item, in place of an earlier one. It is on disk when this returns.

        Returns:
            The stored judgment; ``None`` if no answer to ``asker`` with this id is remembered.

        Raises:
            QueryError: the answer did not show the chunk.
            StoreError: the judgment cannot be stored now.
        """
        if not self.file.exists() and not self._in_trouble:
            return None
        at = _sortable_text(self._now())
        names = {"query_id": query_id, "asker": _asker(asker)}
        with self._open_file("feedback cannot be stored", synchronous=True) as connection, _transaction(connection):
            found = connection.execute(
                "select items, votes from shown where query_id = :query_id and asker = :asker", names
            ).fetchone()
            if found is None:
                return None
            shown = [str(item["chunk_id"]) for item in json.loads(found["items"])]
            if chunk_id not in shown:
                named = repr(chunk_id) if len(chunk_id) <= 80 else f"a name of {len(chunk_id)} characters"
                raise QueryError("chunk_id", f"{named} is not among the {len(shown)} items that this answer showed")
            votes = json.loads(found["votes"])
            previous = votes.get(chunk_id)
            votes[chunk_id] = useful
            connection.execute(
                "update shown set votes = :votes where query_id = :query_id", {**names, "votes": json.dumps(votes)}
            )
        return {"query_id": query_id, "chunk_id": chunk_id, "useful": useful, "at": at, "previous": previous}

    def judged(self) -> tuple[JudgedAnswer, ...]:
        """Return every judged answer, oldest first.

        Raises:
            StoreError: the feedback cannot be read.
        """
        if not self.file.exists():
            return ()
        with self._open_file("feedback cannot be read") as connection:
            rows = connection.execute("select * from shown where votes <> '{}' order by number").fetchall()
        try:
            return tuple(map(_judged_answer, rows))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{self.file}: is damaged ({error!r}); restore it, or move it away to begin anew"
            raise StoreError(message) from error

    def tidy(self) -> None:
        """Delete expired answers, at most once a minute. Never raises.

        An answer without a judgment expires after ``REMEMBERED_DAYS``, or when ``REMEMBERED_ANSWERS`` newer ones are
        stored, or at once if queries must not be kept.
        """
        if time.monotonic() < self._tidy_at or not self.file.exists():
            return
        self._tidy_at = time.monotonic() + TIDY_EVERY_S
        oldest = _sortable_text(self._now() - timedelta(days=REMEMBERED_DAYS)) if self._keep_queries else _ALWAYS
        limits = {"before": oldest, "most": REMEMBERED_ANSWERS, "batch": BATCH}
        try:
            with closing(_open(self.file, FEEDBACK_PATIENCE_S)) as connection:
                for statement in (_FORGET_OLD, _FORGET_MANY):
                    while connection.execute(statement, limits).rowcount == BATCH:
                        pass
                # Here, so that hardly a query has to.
                connection.execute("pragma wal_checkpoint(passive)").fetchall()
        except (sqlite3.Error, OSError, StoreError) as error:
            self._say_once(error)

    def answers(self) -> list[tuple[str, str, str]]:
        """Return every remembered answer: query id, question, and items as JSON.

        Raises:
            StoreError: the answers cannot be read.
        """
        if not self.file.exists():
            return []
        with self._open_file("answers cannot be read") as connection:
            return [tuple(row) for row in connection.execute("select query_id, text, items from shown")]

    def remove(self, query_ids: Sequence[str]) -> None:
        """Forget answers and their judgments; their bytes are overwritten.

        Raises:
            StoreError: they cannot be removed now.
        """
        with self._open_file("answers cannot be removed", synchronous=True) as connection:
            with _transaction(connection):
                connection.executemany("delete from shown where query_id = ?", [(each,) for each in query_ids])
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()

    def close(self) -> None:
        """Close the file. A later answer opens it again."""
        with self._lock:
            if self._remembering:
                self._remembering.close()
                self._remembering = None

    @contextmanager
    def _open_file(self, otherwise: str, *, synchronous: bool = False) -> Iterator[sqlite3.Connection]:
        """Open the file. If that fails, raise a ``StoreError`` that begins with ``otherwise`` and hides the path."""
        try:
            with closing(_open(self.file, FEEDBACK_PATIENCE_S, synchronous=synchronous)) as connection:
                yield connection
        except (sqlite3.Error, OSError, StoreError) as error:
            log.error("%s: %s: %s", self.file, otherwise, error)
            reason = error.strerror if isinstance(error, OSError) else error
            raise StoreError(f"{otherwise} now: {reason}; try again later") from error

    def _say_once(self, error: Exception) -> None:
        if not self._in_trouble:
            self._in_trouble = True
            log.warning("%s: answers are not remembered, and cannot be judged: %s", self.file, error)


def feedback_of(settings: Settings) -> FeedbackBook:
    """Return the feedback of a workspace on this machine."""
    return FeedbackBook(settings.data_dir / "feedback", keep_queries=settings.feedback.keep_queries)


def _row(question: Question, document: FusionResult, now: datetime) -> Mapping[str, str]:
    """Return the stored row of an answer."""
    filters = {domain.value: json.loads(canonical_json(one)) for domain, one in question.filters.items() if one}
    items = [_shown_item(item, rank) for rank, item in enumerate(document["items"], 1)]
    return {
        "query_id": document["query_id"],
        "at": _sortable_text(now),
        # JSON in ASCII takes halves of characters, too, which a database need not.
        "text": json.dumps(question.text),
        "filters": json.dumps(filters, sort_keys=True),
        "domains": json.dumps(document["domains_queried"]),
        "items": json.dumps(items),
        "asker": _asker(question.viewer.name),
    }


def _asker(name: str) -> str:
    """Return a digest that distinguishes askers without naming them; empty for an unknown asker."""
    return digest(name) if name else ""


def _sortable_text(moment: datetime) -> str:
    """Return a time as text that sorts in order of time."""
    return utc_text(moment, "microseconds")


def _shown_item(item: FusedItemDocument, rank: int) -> dict[str, Any]:
    """Return the fields of a ``ShownItem``. Every question runs this, so it must be fast."""
    citation = item["citation"]
    return {
        "chunk_id": item["chunk_id"],
        "rank": rank,
        "score": item["score"]["value"],
        "domain_id": citation["domain_id"],
        "source_id": citation["source_id"],
        "source_path": citation["source_path"],
        "line_range": citation["line_range"],
        "message_ids": citation["message_ids"] or (),
    }


def _judged_answer(row: sqlite3.Row) -> JudgedAnswer:
    filters: Mapping[str, Any] = json.loads(row["filters"])
    return JudgedAnswer(
        query_id=row["query_id"],
        at=datetime.fromisoformat(row["at"]),
        text=json.loads(row["text"]),
        filters=MappingProxyType({domain: freeze(values) for domain, values in filters.items()}),
        domains=tuple(json.loads(row["domains"])),
        items=tuple(
            ShownItem(
                **{
                    **item,
                    "line_range": tuple(item["line_range"] or ()) or None,
                    "message_ids": tuple(item["message_ids"]),
                }
            )
            for item in json.loads(row["items"])
        ),
        votes=MappingProxyType(dict(sorted(json.loads(row["votes"]).items()))),
    )


def _open(file: Path, patience_s: float, *, synchronous: bool = False) -> sqlite3.Connection:
    """Open the file; make it if there is none.

    Args:
        file: its folder is made as well.
        patience_s: how long to wait for other processes, which write a few milliseconds at a time.
        synchronous: whether a commit survives a crash of the machine; otherwise it survives a crash of the process.

    Raises:
        OSError, sqlite3.Error: the file cannot be opened.
        StoreError: another version wrote the file.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # Transactions are begun by hand; who shares a connection between threads sees to it that they take turns.
    connection = sqlite3.connect(file, timeout=patience_s, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute(f"pragma synchronous = {'full' if synchronous else 'normal'}")
        connection.execute(f"pragma wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute("pragma secure_delete = on")  # what is forgotten is overwritten
        with suppress(sqlite3.OperationalError):  # while another process writes the next one that opens it does this
            connection.execute("pragma journal_mode = wal").fetchone()
        if _version(connection) != _VERSION:
            _make_or_upgrade(connection, file)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_or_upgrade(connection: sqlite3.Connection, file: Path) -> None:
    with _transaction(connection):
        version = _version(connection)  # another process may have done it meanwhile
        if version not in {0, 2, _VERSION}:
            found = f"is of version {version}, this program writes version {_VERSION}"
            raise StoreError(f"{file.name} {found}; use the program that wrote it, or move the file away")
        for statement in (*(_UPGRADE if version == 2 else ()), *_MAKE):
            connection.execute(statement)
        connection.execute(f"pragma user_version = {_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction. It locks the file from the start, so that values read in it stay current."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it by itself when the disk is full
            connection.execute("rollback")
        raise
