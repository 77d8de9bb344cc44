"""What is stored of one API: the tables of a mirror, and what a feed may ask of them.

``:first`` to ``:last`` are keys that start with a prefix.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nornweave.core.types import Entry

Body = Mapping[str, Any]
"""What an API says about one thing, as JSON."""

TABLES = (
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
    "create index if not exists records_of_document on records (document, key)",
    """
    create table if not exists documents (
      path text primary key,
      mark text not null,
      size integer not null
    ) without rowid
    """,
    "create table if not exists reading (id integer primary key check (id = 1), scope text, state text)",
)
IN_RANGE = "key >= :first and key < :last"
# Sorts after everything that starts with the same prefix.
_LAST = "\U0010ffff"
# Keys are chosen first: bodies would be sorted with them.
_OLDEST = f"""
select key, body
from records
where key in (
  select key
  from records
  where {IN_RANGE} and verified_at < :before
    and (not :is_named or pass = :number)
  order by verified_at, key
  limit :limit
)
order by verified_at, key
"""  # noqa: S608 - constants
# A document was confirmed when the last of its records was.
_DOCUMENTS = """
select path, mark, documents.size, min(verified_at)
from documents
join records on document = path
group by path
order by path
"""
_UNDER = f"select key, body from records where {IN_RANGE} order by key"  # noqa: S608 - constants
_SURVIVING = f"select key, body from records where {IN_RANGE} and pass >= :number order by key"  # noqa: S608 - constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """How far the reading of an API came.

    Attributes:
        number: of the pass, from 1; 0 before the first.
        is_full: list everything; what it does not name is deleted at its end. Otherwise only what changed.
        is_thorough: a person wants everything asked for again, also what a full pass spares.
        is_complete: it came to its end; the next reading starts a new pass.
        began_at: when the pass began, in seconds since 1970.
        full_at: when the last full pass ended; 0 before there was one.
        listed_at: when the last pass began that named every document; 0 before there was one.
        position: of the last page of this pass that was stored; ``None`` at its start.
        since: what the last complete pass left; ``None`` before there was one.
        next_since: what this one leaves when it is complete.
        listed: what it lists completely, as ``RecordPage.listed``.
    """

    number: int = 0
    is_full: bool
    is_thorough: bool = False
    is_complete: bool = False
    began_at: float = 0.0
    full_at: float = 0.0
    listed_at: float = 0.0
    position: Any = None
    since: Any = None
    next_since: Any = None
    listed: Sequence[str] = ()


NO_PASS = Pass(is_full=False, is_complete=True)


class Known:
    """The records that are stored, while their file is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def body(self, key: str) -> Body | None:
        """Return a record; ``None`` when it is not there."""
        row = self.connection.execute("select body from records where key = ?", (key,)).fetchone()
        return _body(row[0]) if row else None

    def under(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so, by key."""
        return self._records(_UNDER, in_range(prefix))

    def surviving(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so and that a full pass would not delete if it ended now, by key."""
        state = self.state()
        number = state.number if state.is_full and not state.is_complete else 0
        return self._records(_SURVIVING, {**in_range(prefix), "number": number})

    def oldest(self, prefix: str, *, before: float, limit: int, is_named: bool = False) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so and that were last confirmed before a moment, oldest first.

        Args:
            is_named: only those that this pass has confirmed or kept already.
        """
        values = {"before": before, "limit": limit, "is_named": is_named, "number": self.state().number}
        return self._records(_OLDEST, {**in_range(prefix), **values})

    def state(self) -> Pass:
        """Return how far the reading came."""
        row = self.connection.execute("select state from reading").fetchone()
        return Pass(**json.loads(row[0])) if row else NO_PASS

    def count(self, prefix: str) -> int:
        """Count the records whose keys start so."""
        statement = f"select count(*) from records where {IN_RANGE}"  # noqa: S608 - a constant
        return int(self.connection.execute(statement, in_range(prefix)).fetchone()[0])

    def documents(self) -> Iterator[Entry]:
        """Yield the documents, by path; each was verified when the API last confirmed all of its records."""
        for path, mark, size, verified_at in self.connection.execute(_DOCUMENTS):
            yield Entry(path=path, gate=mark, size=size, verified_at=datetime.fromtimestamp(verified_at, UTC))

    def records_of(self, path: str) -> Iterator[tuple[str, Body]]:
        """Yield the records of a document, by key."""
        return self._records("select key, body from records where document = ? order by key", (path,))

    def totals(self) -> tuple[int, int]:
        """Return how many documents there are, and their bytes."""
        row = self.connection.execute("select count(*), coalesce(sum(size), 0) from documents").fetchone()
        return int(row[0]), int(row[1])

    def _records(self, statement: str, values: Any) -> Iterator[tuple[str, Body]]:
        rows: Iterable[tuple[str, bytes]] = self.connection.execute(statement, values).fetchall()
        return ((key, _body(body)) for key, body in rows)


def nothing_known() -> Known:
    """Return what is known before anything was read."""
    connection = sqlite3.connect(":memory:")
    for table in TABLES:
        connection.execute(table)
    return Known(connection)


def in_range(prefix: str) -> dict[str, Any]:
    """Return the values of ``IN_RANGE``."""
    return {"first": prefix, "last": prefix + _LAST}


def _body(packed: bytes) -> Body:
    loaded: Body = json.loads(zlib.decompress(packed))
    return loaded
