"""The port of an API: pages of records, and how the records of one document become its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import Document, Domain, Entry, JsonValue, SourceId

Body = Mapping[str, Any]
"""What an API says about one thing, as JSON."""

LEFT_OUT = "left out/"
"""Keys of records that begin so tell what a feed leaves out on purpose: ``path`` and ``reason``; an empty reason is
nobody's concern. The records belong to no document."""


class PositionLostError(SourceUnavailableError):
    """The API does not know the position any more at which a pass was interrupted; it has to begin again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRecord:
    """One thing that an API has: an issue, a comment, a message, a page.

    Attributes:
        key: names it within the source; a document is assembled from its records in the order of their keys.
        document: path of the document that it belongs to; empty for what belongs to none, such as a list of people.
        is_verified: the API has just said it; otherwise it is what was known, written anew.
    """

    key: str
    document: str
    body: Body
    is_verified: bool = True


def left_out(path: str, reason: str) -> FeedRecord:
    """Return the record of what is left out, such as one channel of many that refuses."""
    return FeedRecord(key=f"{LEFT_OUT}{path}", document="", body={"path": path, "reason": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """What one step of a pass brought; it is stored as a whole or not at all.

    Attributes:
        records: new or changed, or the same as before.
        confirmed: prefixes of the keys of records of which the API says that they are as they were.
        kept: prefixes of the keys of records of which the API says nothing now; they outlive a complete listing.
        gone: prefixes of the keys of records that are no longer there; applied before ``records`` are stored.
        listed: prefixes of the keys that this pass names completely: what starts so and was neither sent, confirmed nor
            kept until the pass ends is gone then. A full pass names everything.
        position: where a pass that was interrupted after this page goes on.
        since: where the next pass starts from, once this one is complete; ``None`` leaves it as an earlier page said.
        expected: how many documents the pass will bring, if the API says so.
    """

    records: tuple[FeedRecord, ...] = ()
    confirmed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    position: JsonValue
    since: JsonValue = None
    expected: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What a feed has to know to go on.

    Attributes:
        is_full: list everything; what it does not name is deleted at its end. Otherwise only what changed.
        is_thorough: a person wants everything asked for again, also what a full pass spares.
        began_at: when the pass began, in seconds since 1970.
        position: of the last page of this pass that was stored; ``None`` at its start.
        since: what the last complete pass left; ``None`` before there was one.
    """

    is_full: bool
    is_thorough: bool = False
    began_at: float = 0.0
    position: Any = None
    since: Any = None


class Known(Protocol):
    """What was stored so far."""

    def body(self, key: str) -> Body | None:
        """Return a record; ``None`` when it is not there."""

    def under(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so, by key."""

    def surviving(self, prefix: str) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so and that a full pass would not delete if it ended now, by key."""

    def oldest(self, prefix: str, *, before: float, limit: int, is_named: bool = False) -> Iterator[tuple[str, Body]]:
        """Yield the records whose keys start so and that were last confirmed before a moment, oldest first.

        Args:
            is_named: only those that this pass has confirmed or kept already.
        """

    def count(self, prefix: str) -> int:
        """Count the records whose keys start so."""


def least_confirmed(known: Known, prefix: str, before: float, limit: int) -> list[str]:
    """Return which documents to ask for again: those that were confirmed longest ago, by the second part of their keys.

    What an API does not tell of by itself, such as deletions, is found so within as many passes as it takes to ask for
    every document once.
    """
    records = known.oldest(prefix, before=before, limit=limit)
    return list(dict.fromkeys(key.split("/")[1] for key, _ in records))


class _NothingKnown:
    def body(self, key: str) -> Body | None:  # noqa: ARG002
        return None

    def under(self, prefix: str) -> Iterator[tuple[str, Body]]:  # noqa: ARG002
        return iter(())

    def surviving(self, prefix: str) -> Iterator[tuple[str, Body]]:  # noqa: ARG002
        return iter(())

    def oldest(
        self,
        prefix: str,  # noqa: ARG002
        *,
        before: float,  # noqa: ARG002
        limit: int,  # noqa: ARG002
        is_named: bool = False,  # noqa: ARG002
    ) -> Iterator[tuple[str, Body]]:
        return iter(())

    def count(self, prefix: str) -> int:  # noqa: ARG002
        return 0


NOTHING_KNOWN: Known = _NothingKnown()


class Feed(Protocol):
    """One API of one source.

    ``scope`` changes when what is stored belongs to something else (another repository, other channels); it is then
    thrown away and read anew.
    """

    @property
    def domain(self) -> Domain:
        """The domain that its documents belong to."""

    @property
    def version(self) -> str:
        """Changes when the same records may become another document."""

    @property
    def scope(self) -> str:
        """What is read: changes when the records would be others."""

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        """Ask the API, a page at a time; the page is stored before the next one is asked for.

        Raises:
            SourceUnavailableError: it refuses, does not answer, or answers nonsense.
            PositionLostError: ``state.position`` means nothing any more.
        """

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return the bytes of a document: equal exactly when it says the same.

        Raises:
            DocumentSkipped: there is nothing in it that says anything.
        """

    def parse(self, source_id: SourceId, entry: Entry, raw: bytes) -> Document:
        """Turn what ``assemble`` returned into a document."""
