"""Records of feedback, and the port of what stores them: a file of this machine, or a server that several share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from nornweave.ask.search.question import Question
from nornweave.ask.views.answer import FusedItemDocument, FusionResult
from nornweave.core.errors import QueryError
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Metadata, canonical_json, digest, freeze

StoredAnswer: TypeAlias = Mapping[str, str]
"""An answer as it is stored: ``query_id``, ``at``, ``asker``; as JSON ``text``, ``filters``, ``domains``, ``items``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownItem:
    """One item as an answer showed it: its place in its document, not its text.

    Attributes:
        rank: from 1.
        line_range: first and last line, from 1; ``None`` where lines are not what one cites.
        message_ids: of the messages that the chunk itself holds; empty outside conversations.
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
    """An answer of which at least one item was judged.

    Attributes:
        items: all that were shown, best first.
        votes: chunk → whether it was useful; always of items that were shown.
    """

    query_id: str
    at: datetime
    text: str
    filters: Mapping[str, Metadata]
    domains: tuple[str, ...]
    items: tuple[ShownItem, ...]
    votes: Mapping[str, bool]


def stored_answer(question: Question, document: FusionResult, now: datetime) -> StoredAnswer:
    """Return what is remembered of an answer."""
    filters = {domain.value: json.loads(canonical_json(one)) for domain, one in question.filters.items() if one}
    items = [_shown_item(item, rank) for rank, item in enumerate(document["items"], 1)]
    return {
        "query_id": document["query_id"],
        "at": written(now),
        # JSON in ASCII takes halves of characters, too, which a database need not.
        "text": json.dumps(question.text),
        "filters": json.dumps(filters, sort_keys=True),
        "domains": json.dumps(document["domains_queried"]),
        "items": json.dumps(items),
        "asker": asker_of(question.viewer.name),
    }


def asker_of(name: str) -> str:
    """Return what tells an asker from others, without naming them; empty where nobody is told apart."""
    return digest(name) if name else ""


def judged_answers(votes: Iterable[Mapping[str, Any]]) -> tuple[JudgedAnswer, ...]:
    """Put answers together, of votes that each come with their answer, those of one answer in a row.

    Raises:
        ValueError, KeyError, TypeError: something else was stored.
    """
    return tuple(_answer(list(of_one)) for _, of_one in groupby(votes, key=lambda vote: str(vote["query_id"])))


def _shown_item(item: FusedItemDocument, rank: int) -> dict[str, Any]:
    """Return the fields of a ``ShownItem``; every question pays for this."""
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


def _answer(votes: Sequence[Mapping[str, Any]]) -> JudgedAnswer:
    """Put one answer together, of its votes."""
    first = votes[0]
    filters: Mapping[str, Any] = json.loads(first["filters"])
    return JudgedAnswer(
        query_id=first["query_id"],
        at=datetime.fromisoformat(first["at"]),
        text=json.loads(first["text"]),
        filters=MappingProxyType({domain: freeze(values) for domain, values in filters.items()}),
        domains=tuple(json.loads(first["domains"])),
        items=tuple(map(_read_item, json.loads(first["items"]))),
        votes=MappingProxyType({vote["chunk_id"]: bool(vote["useful"]) for vote in votes}),
    )


def _read_item(stored: Mapping[str, Any]) -> ShownItem:
    lines = tuple(stored["line_range"] or ()) or None
    return ShownItem(**{**stored, "line_range": lines, "message_ids": tuple(stored["message_ids"])})


def written(moment: datetime) -> str:
    """Return a moment as text that sorts as time does."""
    return utc_text(moment, "microseconds")


class FeedbackDatabase(Protocol):
    """Answers that were shown, and what was said of them.

    ``remember`` is called by one thread at a time, everything else by any. A method waits some seconds for others.

    Raises:
        StoreError: from every method, when it cannot be done; the reason, without a path of this machine.
    """

    name: str
    """For the log."""

    def exists(self) -> bool:
        """Tell whether anything may have been written; asks nobody who is far away."""

    def remember(self, answers: Sequence[StoredAnswer]) -> None:
        """Write answers, all or none; one that is there already stays as it is."""

    def judge(self, query_id: str, chunk_id: str, *, useful: bool, at: str, asker: str) -> tuple[bool, bool | None]:
        """Write what is said of an item of an answer; it survives a crash of the machine.

        Returns:
            Whether the answer is remembered as one to ``asker``, and what was said of the item before.

        Raises:
            QueryError: the answer did not show the chunk.
        """

    def votes(self) -> list[Mapping[str, Any]]:
        """Return everything that was said, each with its answer: in the order of the answers, then by chunk."""

    def forget(self, *, before: str, most: int) -> None:
        """Delete what was not judged and was shown before a moment, or before the last ``most`` answers."""

    def answers(self) -> list[tuple[str, str, str]]:
        """Return every answer that is remembered: its query id, and its question and items as JSON."""

    def remove(self, query_ids: Sequence[str]) -> None:
        """Forget answers with what was said of them; their bytes are overwritten."""

    def close(self) -> None:
        """Close what is open; the next call opens it again."""


def check_shown(chunk_id: str, shown: Sequence[str]) -> None:
    """Refuse a chunk that an answer did not show.

    Raises:
        QueryError: it did not.
    """
    if chunk_id not in shown:
        named = repr(chunk_id) if len(chunk_id) <= 80 else f"a name of {len(chunk_id)} characters"
        raise QueryError("chunk_id", f"{named} is not among the {len(shown)} items that this answer showed")
