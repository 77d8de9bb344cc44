"""Remember what answers showed, and store what users say of it.

Remembering an answer never delays or fails its query. Feedback is on disk when ``add`` returns. The texts of queries
are stored here and nowhere else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.ask.feedback.database import FeedbackFile
from nornweave.ask.feedback.port import FeedbackDatabase
from nornweave.ask.feedback.records import (
    JudgedAnswer,
    StoredAnswer,
    asker_of,
    judged_answers,
    stored_answer,
    written,
)
from nornweave.ask.search.question import Question
from nornweave.ask.views.answer import FusionResult
from nornweave.config import Settings
from nornweave.core.errors import DatabaseBusyError, StoreError
from nornweave.index.wiring import workspace_server

log = logging.getLogger(__name__)

# Who judges an answer does so within the hour, or when the work that it was for is done: a month is generous, and no
# longer than texts of questions have to lie around.
REMEMBERED_DAYS = 30
# About 400 MB at ten items each: more than a busy team asks in a month, and a bound for whoever asks in a loop.
REMEMBERED_ANSWERS = 100_000
# An answer takes about 4 kB. What takes this much more (filters of thousands of values) is not remembered.
MAX_ANSWER_CHARACTERS = 256_000
# What a query waits for another process's write, which usually takes less than a millisecond. When it takes longer the
# answer waits in memory and a later query tries again, the next one only when a second has passed.
PATIENCE_S, PAUSE_S = 0.025, 1.0
MOST_WAITING = 256
# Feedback waits longer: somebody is told whether it is stored.
FEEDBACK_PATIENCE_S = 5.0
# Looked after this often, for at most so long at a time.
TIDY_EVERY_S, TIDY_WITHIN_S = 60.0, 0.5
# Comes after every date.
_ALWAYS = "~"


class FeedbackDocument(TypedDict):
    """What is stored of one item of one answer."""

    query_id: str
    chunk_id: str
    useful: bool
    at: Annotated[str, Field(description="ISO 8601, UTC")]
    previous: Annotated[bool | None, Field(description="what was said of it before; null if nothing")]


class FeedbackBook:
    """The store of feedback; every method may be called from any thread, in any number of processes."""

    def __init__(
        self,
        database: FeedbackDatabase,
        *,
        keep_queries: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Store where it is kept.

        Args:
            database: that it is written to.
            keep_queries: remember answers; without, no new one can be judged, and ``tidy`` forgets those that were not.
            now: the clock.
        """
        self._database = database
        self._keep_queries = keep_queries
        self._now = now
        self._writing = threading.Lock()
        self._queueing = threading.Lock()
        self._waiting: list[StoredAnswer] = []
        self._not_before = self._tidy_at = 0.0
        self._is_late = self._in_trouble = False

    def shown(self, question: Question, document: FusionResult) -> None:
        """Remember an answer, so that its items can be judged.

        Never raises and hardly waits: an answer that cannot be written now (another process writes, the disk is full)
        waits in memory, with at most ``MOST_WAITING`` others; the log says so once, when that is not over at once.
        """
        if not self._keep_queries:
            return
        row = stored_answer(question, document, self._now())
        if sum(map(len, row.values())) > MAX_ANSWER_CHARACTERS:
            log.info("answer %s is too large to be remembered", document["query_id"])
            return
        self._put((), (row,))
        if time.monotonic() >= self._not_before:
            self._write_waiting()

    def add(self, query_id: str, chunk_id: str, useful: bool, *, asker: str = "") -> FeedbackDocument | None:
        """Store what a user says of one item of one answer; the last word counts. On disk when this returns.

        Returns:
            What is stored; ``None`` when no such answer to ``asker`` is remembered.

        Raises:
            QueryError: the answer did not show the chunk.
            StoreError: it cannot be stored now.
        """
        with self._writing:  # an answer that is being written is there when this goes on
            if not (self._waiting or self._database.exists()):
                return None
        at = written(self._now())
        with self._explained("feedback cannot be stored"):
            with self._writing:
                self._hand_over(FEEDBACK_PATIENCE_S)
            is_known, previous = self._database.judge(
                query_id,
                chunk_id,
                useful=useful,
                at=at,
                asker=asker_of(asker),
                patience_s=FEEDBACK_PATIENCE_S,
            )
        if not is_known:
            return None
        return {"query_id": query_id, "chunk_id": chunk_id, "useful": useful, "at": at, "previous": previous}

    def judged(self) -> tuple[JudgedAnswer, ...]:
        """Return every answer that was judged, in the order in which they were given.

        Raises:
            StoreError: it cannot be read.
        """
        if not self._database.exists():
            return ()
        with self._explained("feedback cannot be read"):
            rows = self._database.votes(patience_s=FEEDBACK_PATIENCE_S)
        try:
            return judged_answers(rows)
        except (ValueError, KeyError, TypeError) as error:
            message = f"{self._database.name}: is damaged ({error!r}); restore it, or move it away to begin anew"
            raise StoreError(message) from error

    def tidy(self) -> None:
        """Write pending answers and delete expired ones, at most once a minute. Never raises.

        Forgotten are answers that were not judged: after ``REMEMBERED_DAYS``, when ``REMEMBERED_ANSWERS`` came after
        them, and all of them when queries are not to be kept.
        """
        if time.monotonic() < self._tidy_at or not (self._waiting or self._database.exists()):
            return
        self._tidy_at = time.monotonic() + TIDY_EVERY_S
        if self._waiting:
            self._write_waiting()
        try:
            self._forget()
        except StoreError as error:
            self._say_once(error)

    def close(self) -> None:
        """Write pending answers and close the database; a later answer opens it again."""
        if self._waiting:
            self._write_waiting()
        with self._writing:
            self._database.close()

    def _forget(self) -> None:
        oldest = written(self._now() - timedelta(days=REMEMBERED_DAYS)) if self._keep_queries else _ALWAYS
        if not self._database.forget(
            before=oldest, most=REMEMBERED_ANSWERS, within_s=TIDY_WITHIN_S, patience_s=PATIENCE_S
        ):
            self._tidy_at = 0.0

    def _write_waiting(self) -> None:
        """Write what waits, or say once why not."""
        if not self._writing.acquire(timeout=PATIENCE_S):
            self._not_before = time.monotonic() + PAUSE_S
            return
        try:
            self._hand_over(PATIENCE_S)
            self._in_trouble = self._is_late = False
        except StoreError as error:
            self._not_before = time.monotonic() + PAUSE_S
            # Two processes that write at the same moment are no trouble; a file that is locked a second later is.
            if self._is_late or not isinstance(error, DatabaseBusyError):
                self._say_once(error)
            self._is_late = True
        finally:
            self._writing.release()

    def _hand_over(self, patience_s: float) -> None:
        """Write what waits, when it is this thread's turn; what cannot be written goes on waiting."""
        with self._queueing:
            rows, self._waiting = self._waiting, []
        try:
            if rows:
                self._database.remember(rows, patience_s=patience_s)
        except StoreError:
            self._put(rows, ())
            raise

    def _put(self, before: Sequence[StoredAnswer], after: Sequence[StoredAnswer]) -> None:
        with self._queueing:
            self._waiting = [*before, *self._waiting, *after][-MOST_WAITING:]

    def _say_once(self, error: Exception) -> None:
        if not self._in_trouble:
            self._in_trouble = True
            log.warning("%s: answers wait in memory to be remembered: %s", self._database.name, error)

    @contextmanager
    def _explained(self, otherwise: str) -> Iterator[None]:
        """Say what did not happen, to somebody who is told when that fails."""
        try:
            yield
        except StoreError as error:
            log.error("%s: %s: %s", self._database.name, otherwise, error)
            raise StoreError(f"{otherwise} now: {error}; try again later") from error


def feedback_of(settings: Settings) -> FeedbackBook:
    """Return the feedback store of a workspace."""
    return FeedbackBook(database_of(settings), keep_queries=settings.feedback.keep_queries)


def database_of(settings: Settings) -> FeedbackDatabase:
    """Return where the feedback of a workspace is stored."""
    server = workspace_server(settings)
    if server is None:
        return FeedbackFile(settings.data_dir / "feedback")
    from nornweave.ask.feedback.postgresql import FeedbackTables

    return FeedbackTables(server)
