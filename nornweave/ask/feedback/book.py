"""Remember what answers showed, and store what users say of it.

Remembering an answer never delays or fails its query. Feedback is on disk when ``add`` returns. The texts of queries
are stored here and nowhere else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.ask.feedback.database import FeedbackFile
from nornweave.ask.feedback.records import (
    FeedbackDatabase,
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
from nornweave.core.errors import StoreError
from nornweave.index.wiring import workspace_server

log = logging.getLogger(__name__)

# Who judges an answer does so within the hour, or when the work that it was for is done: a month is generous, and no
# longer than texts of questions have to lie around.
REMEMBERED_DAYS = 30
# About 400 MB at ten items each: more than a busy team asks in a month, and a bound for whoever asks in a loop.
REMEMBERED_ANSWERS = 100_000
# An answer takes about 4 kB. What takes this much more (filters of thousands of values) is not remembered.
MAX_ANSWER_CHARACTERS = 256_000
# What a query waits until its answer is written, which usually takes less than a millisecond. When it takes longer the
# answer waits in memory, and the queries of the next second do not wait at all.
PATIENCE_S, PAUSE_S = 0.025, 1.0
MOST_WAITING = 256
# Feedback waits longer: somebody is told whether it is stored.
FEEDBACK_PATIENCE_S = 5.0
TIDY_EVERY_S = 60.0
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
            keep_queries: remember answers; without, no new one can be judged, and ``tidy`` forgets those that were not.
        """
        self._database = database
        self._keep_queries = keep_queries
        self._now = now
        self._lock = threading.Lock()
        self._waiting: list[StoredAnswer] = []
        self._thread: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None
        self._not_before = self._tidy_at = 0.0
        self._in_trouble = False

    def shown(self, question: Question, document: FusionResult) -> None:
        """Remember an answer, so that its items can be judged.

        Never raises and hardly waits: an answer that cannot be written now (another process writes, the disk is full)
        waits in memory, with at most ``MOST_WAITING`` others beside those that are being written; the log says so once.
        """
        if not self._keep_queries:
            return
        row = stored_answer(question, document, self._now())
        if sum(map(len, row.values())) > MAX_ANSWER_CHARACTERS:
            log.info("answer %s is too large to be remembered", document["query_id"])
            return
        with self._lock:
            self._waiting = [*self._waiting, row][-MOST_WAITING:]
        writing = self._start()
        if writing and time.monotonic() >= self._not_before:
            try:
                writing.result(PATIENCE_S)
            except (StoreError, TimeoutError):
                self._not_before = time.monotonic() + PAUSE_S

    def add(self, query_id: str, chunk_id: str, useful: bool, *, asker: str = "") -> FeedbackDocument | None:
        """Store what a user says of one item of one answer; the last word counts. On disk when this returns.

        Returns:
            What is stored; ``None`` when no such answer to ``asker`` is remembered.

        Raises:
            QueryError: the answer did not show the chunk.
            StoreError: it cannot be stored now.
        """
        if not (self._is_pending() or self._database.exists()):
            return None
        at = written(self._now())
        with self._explained("feedback cannot be stored"):
            self._written(FEEDBACK_PATIENCE_S)
            is_known, previous = self._database.judge(query_id, chunk_id, useful=useful, at=at, asker=asker_of(asker))
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
            rows = self._database.votes()
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
        if time.monotonic() < self._tidy_at or not (self._is_pending() or self._database.exists()):
            return
        self._tidy_at = time.monotonic() + TIDY_EVERY_S
        oldest = written(self._now() - timedelta(days=REMEMBERED_DAYS)) if self._keep_queries else _ALWAYS
        try:
            self._written(FEEDBACK_PATIENCE_S)
            self._database.forget(before=oldest, most=REMEMBERED_ANSWERS)
        except TimeoutError:
            pass  # the thread goes on writing, and says what goes wrong
        except StoreError as error:
            self._say_once(error)

    def close(self) -> None:
        """Write pending answers and close the database; a later answer opens it again."""
        with suppress(StoreError, TimeoutError):
            self._written(FEEDBACK_PATIENCE_S)
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False)
        self._database.close()

    def _is_pending(self) -> bool:
        with self._lock:
            return bool(self._waiting) or self._writing is not None

    def _written(self, patience_s: float) -> None:
        """Have the one thread that writes write what waits, and wait for that.

        Raises:
            StoreError: it cannot be written; it goes on waiting.
            TimeoutError: that takes longer; the thread goes on with it.
        """
        if writing := self._start():
            writing.result(patience_s)

    def _start(self) -> Future[None] | None:
        """Let the thread write what waits, if anything does."""
        with self._lock:
            if self._writing is None and self._waiting:
                self._thread = self._thread or ThreadPoolExecutor(1, "nornweave-feedback")
                self._writing = self._thread.submit(self._write)
            return self._writing

    def _write(self) -> None:
        rows: list[StoredAnswer] = []
        try:
            while rows := self._taken():
                self._database.remember(rows)
            self._in_trouble = False
        except Exception as error:
            self._say_once(error)
            with self._lock:
                self._waiting, self._writing = [*rows, *self._waiting][-MOST_WAITING:], None
            raise

    def _taken(self) -> list[StoredAnswer]:
        """Take what waits; when that is nothing, the thread has ended its work."""
        with self._lock:
            rows, self._waiting = self._waiting, []
            if not rows:
                self._writing = None
        return rows

    def _say_once(self, error: Exception) -> None:
        if not self._in_trouble:
            self._in_trouble = True
            log.warning("%s: answers wait in memory to be remembered: %s", self._database.name, error)

    @contextmanager
    def _explained(self, otherwise: str) -> Iterator[None]:
        """Say what did not happen, to somebody who is told when that fails."""
        try:
            yield
        except TimeoutError as error:
            raise StoreError(f"{otherwise} now: the database is slow or locked; try again later") from error
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
