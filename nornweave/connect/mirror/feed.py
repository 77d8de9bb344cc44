"""The port of an API: pages of records, and how the records of one document become its bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar

from nornweave.connect.mirror.known import Body, Known, Pass
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import Document, Domain, JsonValue

LEFT_OUT = "left out/"
"""Keys of records that begin so tell what a feed leaves out on purpose: ``path`` and ``reason``; an empty reason is
nobody's concern. The records belong to no document."""
MAX_PAGES = 20_000
"""A server that sends more pages of a list than this sends the same ones for ever."""


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
    document: str = ""
    body: Body
    is_verified: bool = True


def left_out(path: str, reason: str) -> FeedRecord:
    """Return the record of what is left out, such as one channel of many that refuses."""
    return FeedRecord(key=f"{LEFT_OUT}{path}", body={"path": path, "reason": reason})


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
    """Run the stages of a pass in their order, from where it was interrupted.

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
    """Yield the pages of a list, each with the place of the one after it.

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


def least_confirmed(known: Known, prefix: str, before: float, limit: int) -> list[str]:
    """Return which documents to ask for again: those that were confirmed longest ago, by the second part of their keys.

    What an API does not tell of by itself, such as deletions, is found so within as many passes as it takes to ask for
    every document once.
    """
    records = known.oldest(prefix, before=before, limit=limit)
    return list(dict.fromkeys(key.split("/")[1] for key, _ in records))


class Feed(ABC):
    """One API of one source; nothing is asked before ``pages``, and ``ConfigError`` is raised when it is made.

    Attributes:
        version: changes when the same records may become another document.
        scope: changes when what is stored belongs to something else (another repository, other channels); it is then
            thrown away and read anew.
        parser: a function of a module that makes a document of what ``assemble`` returned; it runs in the sandbox.
        options: what that function takes besides.
    """

    domain: Domain
    version: str
    scope: str
    parser: ClassVar[Callable[..., Document]]
    options: Mapping[str, Domain] = MappingProxyType({})

    @abstractmethod
    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        """Ask the API, a page at a time; the page is stored before the next one is asked for.

        Raises:
            SourceUnavailableError: it refuses, does not answer, or answers nonsense.
            PositionLostError: ``state.position`` means nothing any more.
        """

    @abstractmethod
    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return the bytes of a document: equal exactly when it says the same.

        Raises:
            DocumentSkipped: there is nothing in it that says anything.
        """
