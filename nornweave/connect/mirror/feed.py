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

from nornweave.connect.mirror.answers import ApiAnswer
from nornweave.connect.mirror.api_client import ApiClient
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
    """How far reading an API has come.

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
    """The stored records, while their file is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def body(self, key: str) -> Body | None:
        """Return a record, or ``None``."""
        row = self.connection.execute("select body from records where key = ?", (key,)).fetchone()
        return _body(row[0]) if row else None

    def under(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records with a key prefix, by key."""
        return self._records(_UNDER, in_range(prefix))

    def oldest(self, prefix: str, *, before: float, limit: int, is_named: bool = False) -> Iterator[tuple[str, Body]]:
        """Yield the records with a key prefix that were last confirmed before a moment, oldest first.

        Args:
            is_named: only those that this pass has confirmed or kept already.
        """
        values = {"before": before, "limit": limit, "is_named": is_named, "number": self.state().number}
        return self._records(_OLDEST, {**in_range(prefix), **values})

    def unnamed(self, prefix: str, start: str) -> Iterator[str]:
        """Yield the keys with a prefix, from ``start`` on, that this pass has neither stored, confirmed nor kept."""
        values = {**in_range(prefix), "first": start, "number": self.state().number}
        return (key for (key,) in self.connection.execute(_UNNAMED, values).fetchall())

    def state(self) -> Pass:
        """Return how far the reading has come."""
        row = self.connection.execute("select state from reading").fetchone()
        return Pass(**json.loads(row[0])) if row else NO_PASS

    def count(self, prefix: str) -> int:
        """Count the records with a key prefix."""
        statement = f"select count(*) from records where {IN_RANGE}"  # noqa: S608 - a constant
        return int(self.connection.execute(statement, in_range(prefix)).fetchone()[0])

    def documents(self) -> Iterator[Entry]:
        """Yield the documents by path. A document's confirmation is its oldest record's."""
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
        """Return the first key of a document; ``None`` if nothing of it is stored."""
        key: str | None
        (key,) = self.connection.execute("select min(key) from records where document = ?", (path,)).fetchone()
        return key

    def totals(self) -> tuple[int, int]:
        """Return the number of documents, and of their bytes."""
        row = self.connection.execute(_TOTALS).fetchone()
        return int(row[0]), int(row[1])

    def _records(self, statement: str, values: Any) -> Iterator[tuple[str, Body]]:
        rows: Iterable[tuple[str, bytes]] = self.connection.execute(statement, values).fetchall()
        return ((key, _body(body)) for key, body in rows)


def in_range(prefix: str) -> dict[str, Any]:
    """Return the SQL values of ``IN_RANGE`` for a prefix."""
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
    """The API no longer knows the position of an interrupted pass, which must start again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRecord:
    """One object of an API: an issue, a comment, a message, a page.

    Attributes:
        key: names it within the source; a document is assembled from its records in the order of their keys.
        document: path of the document that it belongs to; empty for what belongs to none, such as a list of people.
        is_verified: it comes from the API now; otherwise it is an older record, written again.
    """

    key: str
    document: str = ""
    body: Body
    is_verified: bool = True


def left_out(path: str, reason: str) -> FeedRecord:
    """Return a record that something is left out, such as a channel that refuses access."""
    return FeedRecord(key=f"{LEFT_OUT}{path}", body={"path": path, "reason": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """The result of one step of a pass, stored as a whole or not at all.

    Attributes:
        records: new or changed, or the same as before.
        confirmed: key prefixes of records that the API confirms as unchanged.
        kept: key prefixes of records that the API does not mention now. They survive a complete listing.
        gone: key prefixes of deleted records, applied before ``records`` are stored.
        listed: prefixes of the keys that this pass names completely: what starts so and was neither sent, confirmed nor
            kept until the pass ends is gone then. A full pass names everything.
        position: where a pass that was interrupted after this page goes on; of a page of a stage, where the stage does.
        since: where the next pass starts from, once this one is complete; ``None`` leaves it as an earlier page said.
        expected: how many documents the pass will bring, if the API says so.
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
    """Run the stages of a pass in order, from the interrupted one on.

    Args:
        notes: what the stages note for the next pass, whose ``since`` it becomes; kept with each page.
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
    """Yield the pages of a list, each with the position of the next one.

    Args:
        ask: for the page at a place; returns it and the place of the next one, ``None`` after the last.
        at: where to begin; ``None`` for the first page.
        name: of the list, for messages.

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
        asked: the query of the first page.

    Raises:
        SourceUnavailableError: an answer is none, or no list.
    """

    def ask(url: str | None) -> tuple[ApiAnswer, str | None]:
        answer = client.get(url or f"{address}?{asked}")
        return answer, answer.following

    return (each for answer, _ in pages_of(ask, None, address) for each in answer.objects())


def least_confirmed(known: Known, prefix: str, before: float, limit: int) -> list[str]:
    """Return the documents with the oldest confirmations, by the second part of their keys.

    This finds changes that the API does not list, such as deletions, after enough passes to ask for every document
    once.
    """
    records = known.oldest(prefix, before=before, limit=limit)
    return list(dict.fromkeys(key.split("/")[1] for key, _ in records))


class Feed(ABC):
    """One API of one source. Making one sends no request but may raise ``ConfigError``.

    Attributes:
        version: changes when the same records may become another document.
        scope: changes when what is stored belongs to something else (another repository, other channels); it is then
            thrown away and read anew.
        parser: a function of a module that makes a document of what ``assemble`` returned; it runs in the sandbox.
        options: what that function takes besides.
        client: asks the API; ``None`` where a file is read.
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
            SourceUnavailableError: it refuses, does not answer, or answers nonsense.
            PositionLostError: ``state.position`` means nothing any more.
        """

    @abstractmethod
    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return a document's bytes. Equal contents give equal bytes.

        Raises:
            DocumentSkipped: it has no content.
        """

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:
        """Return a document's readers as statements. A reader must be in one principal of each.

        A reader must meet all statements. Without any, nobody may read the document.
        """
        raise NotImplementedError

    def origin(self, known: Known) -> str:  # noqa: ARG002
        """Return the service that defines the principals' names."""
        return self.scope

    def members(self, known: Known) -> Iterator[Grant]:
        """Ask for the members of all principals that ``readers`` names.

        Args:
            known: what the last pass stored; nothing of documents is asked for.

        Raises:
            SourceUnavailableError: the API refuses, does not answer, or answers nonsense.
        """
        raise NotImplementedError
