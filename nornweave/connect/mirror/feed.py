"""The port of an API: its stored records, pages of records, and documents made from records."""

from __future__ import annotations

import json
import sqlite3
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar

from nornweave.connect.mirror.api_client import ApiAnswer, ApiClient
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.membership import Grant
from nornweave.core.types import Document, Domain, Entry, JsonValue, digest

Body = Mapping[str, Any]
"""What an API says about one thing, as JSON."""

# Keys that start with a prefix.
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
# The columns of each document's records; an index covers them.
_RECORDS_BY_DOCUMENT = """
select document, key, digest, size, verified_at
from records
where document != ''
order by document, key
"""
_TOTALS = "select count(distinct document), coalesce(sum(size), 0) from records where document != ''"
_UNNAMED = f"select key from records where {IN_RANGE} and pass < :number order by key"  # noqa: S608 - constants
_UNDER = f"select key, body from records where {IN_RANGE} order by key"  # noqa: S608 - constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The progress of reading an API. One reading from beginning to end is a pass.

    Attributes:
        number: the number of the pass, from 1; 0 before the first pass.
        is_full: whether everything is listed. At the end of such a pass, records that it did not name are deleted. Any
            other pass asks only for changes.
        is_thorough: whether everything is requested again because a person asked for that, even what a full pass skips.
        is_complete: whether the pass has ended. The next reading then starts a new pass.
        began_at: when the pass began, in seconds since 1970.
        full_at: when the last full pass ended; 0 if there was none.
        listed_at: when the last pass that named every document began; 0 if there was none.
        position: the position after the last page that was stored; ``None`` at the start of the pass.
        since: the value of ``next_since`` from the last complete pass; ``None`` if there was none.
        next_since: the value that the next pass gets as ``since`` when this pass is complete.
        listed: the key prefixes that this pass lists completely, as in ``RecordPage.listed``.
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
    """The stored records of a source, while their file is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def body(self, key: str) -> Body | None:
        """Return the record with a key; ``None`` if it is not stored."""
        row = self.connection.execute("select body from records where key = ?", (key,)).fetchone()
        return _body(row[0]) if row else None

    def under(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys have a prefix, by key."""
        return self._records(_UNDER, in_range(prefix))

    def oldest(self, prefix: str, *, before: float, limit: int, is_named: bool = False) -> Iterator[tuple[str, Body]]:
        """Yield the records with a key prefix that were last confirmed before a moment, oldest first.

        Args:
            is_named: yield only records that this pass has already confirmed or kept.
        """
        values = {"before": before, "limit": limit, "is_named": is_named, "number": self.state().number}
        return self._records(_OLDEST, {**in_range(prefix), **values})

    def unnamed(self, prefix: str, start: str) -> Iterator[str]:
        """Yield the keys with a prefix that this pass has not stored, confirmed or kept.

        Begin with the key ``start``.
        """
        values = {**in_range(prefix), "first": start, "number": self.state().number}
        return (key for (key,) in self.connection.execute(_UNNAMED, values).fetchall())

    def state(self) -> Pass:
        """Return the progress of the pass that is stored with the records."""
        row = self.connection.execute("select state from reading").fetchone()
        return Pass(**json.loads(row[0])) if row else NO_PASS

    def count(self, prefix: str) -> int:
        """Count the records with a key prefix."""
        statement = f"select count(*) from records where {IN_RANGE}"  # noqa: S608 - a constant
        return int(self.connection.execute(statement, in_range(prefix)).fetchone()[0])

    def documents(self) -> Iterator[Entry]:
        """Yield the documents by path. A document is as confirmed as its least recently confirmed record."""
        rows = self.connection.execute(_RECORDS_BY_DOCUMENT)
        for path, group in groupby(rows, key=itemgetter(0)):
            records = list(group)
            gate = digest(*(part for _, key, mark, *_ in records for part in (key, mark)))
            size = sum(record[3] for record in records)
            verified_at = datetime.fromtimestamp(min(record[4] for record in records), UTC)
            yield Entry(path=path, gate=gate, size=size, verified_at=verified_at)

    def records_of(self, path: str) -> Iterator[tuple[str, Body]]:
        """Yield the records of a document, by key."""
        return self._records("select key, body from records where document = ? order by key", (path,))

    def key_of(self, path: str) -> str | None:
        """Return the first key of a document; ``None`` if no record of the document is stored."""
        key: str | None
        (key,) = self.connection.execute("select min(key) from records where document = ?", (path,)).fetchone()
        return key

    def totals(self) -> tuple[int, int]:
        """Return the number of documents and their total size in bytes."""
        row = self.connection.execute(_TOTALS).fetchone()
        return int(row[0]), int(row[1])

    def _records(self, statement: str, values: Any) -> Iterator[tuple[str, Body]]:
        rows: Iterable[tuple[str, bytes]] = self.connection.execute(statement, values).fetchall()
        return ((key, _body(body)) for key, body in rows)


def in_range(prefix: str) -> dict[str, Any]:
    """Return the values for the SQL condition ``IN_RANGE`` with a key prefix."""
    return {"first": prefix, "last": prefix + _LAST}


def _body(packed: bytes) -> Body:
    loaded: Body = json.loads(zlib.decompress(packed))
    return loaded


LEFT_OUT = "left out/"
"""Keys of records that begin so tell what a feed leaves out on purpose: ``path`` and ``reason``; an empty reason is
nobody's concern. The records belong to no document."""
PER_PAGE = 100
"""Of GitHub's and GitLab's lists, the most that they give."""
MAX_PAGES = 20_000
"""A server that sends more pages of a list than this sends the same ones for ever."""


class PositionLostError(SourceUnavailableError):
    """The API no longer knows the position at which a pass was interrupted. The pass must start again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRecord:
    """One object of an API: an issue, a comment, a message, a page.

    Attributes:
        key: identifies the record within the source. A document is assembled from its records in the order of their
            keys.
        document: the path of the document that the record belongs to; empty for a record without a document, such as a
            list of people.
        is_verified: whether the API sent the record now. Otherwise it is an older record that is written again.
    """

    key: str
    document: str = ""
    body: Body
    is_verified: bool = True


def left_out(path: str, reason: str) -> FeedRecord:
    """Return a record which says that ``path``, such as a channel that refuses access, is left out."""
    return FeedRecord(key=f"{LEFT_OUT}{path}", body={"path": path, "reason": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """The result of one step of a pass. The page is stored as a whole or not at all.

    Attributes:
        records: new, changed or unchanged records.
        confirmed: key prefixes of records that the API confirms as unchanged.
        kept: key prefixes of records that the API does not mention now. These records survive a complete listing.
        gone: key prefixes of deleted records. They are removed before ``records`` are stored.
        listed: key prefixes that this pass lists completely. At the end of the pass, a record with such a prefix is
            deleted if it was not sent, confirmed or kept. A full pass lists every key completely.
        position: where to continue if the pass is interrupted after this page. For a page of a stage, it is the
            position in the stage.
        since: the value from which the next pass starts once this pass is complete; ``None`` keeps the value of an
            earlier page.
        expected: the number of documents in the whole pass, if the API states it.
    """

    records: tuple[FeedRecord, ...] = ()
    confirmed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    position: JsonValue = None
    since: JsonValue = None
    expected: int | None = None


Page = TypeVar("Page")
Cursor = TypeVar("Cursor")
Stage: TypeAlias = Callable[[Any], Iterator[RecordPage]]
"""A part of a pass, such as one list. It takes the position of its last page that was stored; ``None`` at its start."""


def staged(state: Pass, stages: Mapping[str, Stage], notes: dict[str, Any]) -> Iterator[RecordPage]:
    """Run the stages of a pass in order. An interrupted pass continues with the interrupted stage.

    Args:
        notes: values that the stages record for the next pass, which gets them as ``since``. They are stored with each
            page.
    """
    place: dict[str, Any] = state.position or {}
    notes.update(place.get("notes") or {})
    names = list(stages)
    first = names.index(place["stage"]) if place.get("stage") in names else 0
    for number, name in enumerate(names[first:], start=first):
        at = place.get("at") if name == place.get("stage") else None
        for page in stages[name](at):
            yield replace(page, position={"stage": name, "at": page.position, "notes": notes}, since=notes)
        if number + 1 < len(names):
            yield RecordPage(position={"stage": names[number + 1], "notes": notes}, since=notes)


def pages_of(
    ask: Callable[[Cursor | None], tuple[Page, Cursor | None]], at: Cursor | None, name: str
) -> Iterator[tuple[Page, Cursor | None]]:
    """Yield the pages of a list, each with the position of the next page.

    Args:
        ask: a function that requests the page at a position. It returns the page and the next position; ``None`` after
            the last page.
        at: the position of the first page to read; ``None`` for the start of the list.
        name: the name of the list, for messages.

    Raises:
        SourceUnavailableError: the list does not end.
    """
    for _ in range(MAX_PAGES):
        page, following = ask(at)
        if following is not None and following == at:
            raise SourceUnavailableError(f"{name}: the same page follows itself; try again later")
        yield page, following
        if following is None:
            return
        at = following
    raise SourceUnavailableError(f"{name}: more than {MAX_PAGES:,} pages; expected an end")


def linked(client: ApiClient, address: str, asked: str = f"per_page={PER_PAGE}") -> Iterator[dict[str, Any]]:
    """Yield the objects of a list over all its linked pages.

    Args:
        asked: the query string of the first page.

    Raises:
        SourceUnavailableError: an answer is missing or is not a list.
    """

    def ask(url: str | None) -> tuple[ApiAnswer, str | None]:
        answer = client.get(url or f"{address}?{asked}")
        return answer, answer.following

    return (each for answer, _ in pages_of(ask, None, address) for each in answer.objects())


def least_confirmed(known: Known, prefix: str, before: float, limit: int) -> list[str]:
    """Return the documents with the oldest confirmations. Each is named by the second part of its key.

    Such documents are requested again, because some APIs do not list changes such as deletions. After enough passes
    every document was requested once.
    """
    records = known.oldest(prefix, before=before, limit=limit)
    return list(dict.fromkeys(key.split("/")[1] for key, _ in records))


class Feed(ABC):
    """One API of one source. Making a feed sends no request, but may raise ``ConfigError``.

    Attributes:
        version: a version that changes whenever the same records may give another document.
        scope: what is read, such as the repository or the channels. If the scope changes, the stored records are
            deleted and everything is read again.
        parser: the function that builds a document from the bytes of ``assemble``. It runs in the sandbox, so it must
            be at the top level of a module.
        options: further arguments of ``parser``.
        client: the client that asks the API; ``None`` if the feed reads files.
    """

    domain: Domain
    version: str
    scope: str
    parser: ClassVar[Callable[..., Document]]
    options: Mapping[str, Domain] = MappingProxyType({})
    client: ApiClient | None = None

    @abstractmethod
    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        """Ask the API page by page. The caller stores each page before the next request.

        Raises:
            SourceUnavailableError: the API refuses, does not answer, or gives an invalid answer.
            PositionLostError: the API no longer knows ``state.position``.
        """

    @abstractmethod
    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return the bytes of a document. Equal contents give equal bytes.

        Raises:
            DocumentSkipped: the document has no content.
        """

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:
        """Return who may read a document, as a sequence of statements.

        Each statement is a set of principals. A reader must be in at least one principal of every statement. If there
        are no statements, nobody may read the document.
        """
        raise NotImplementedError

    def origin(self, known: Known) -> str:  # noqa: ARG002
        """Return the service that defines the principals' names."""
        return self.scope

    def members(self, known: Known) -> Iterator[Grant]:
        """Yield grants with the members of all principals that ``readers`` names.

        Args:
            known: the records that the last pass stored. No documents are requested.

        Raises:
            SourceUnavailableError: the API refuses, does not answer, or gives an invalid answer.
        """
        raise NotImplementedError
