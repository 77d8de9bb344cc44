"""The port of what stores feedback: a file of this machine, or a server that several machines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from nornweave.ask.feedback.records import StoredAnswer
from nornweave.core.errors import QueryError


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
