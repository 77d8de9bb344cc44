"""Feedback in PostgreSQL, for all machines of a workspace."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from nornweave.ask.feedback.database import BATCH, JUDGED, delete_in_batches
from nornweave.ask.feedback.port import check_shown
from nornweave.ask.feedback.records import StoredAnswer
from nornweave.core.errors import DatabaseBusyError
from nornweave.index.postgresql.pool import Connection
from nornweave.index.postgresql.schema import compact, prepare_workspace, writing
from nornweave.index.postgresql.server import Server

_REMEMBER = """
insert into shown (query_id, at, text, filters, domains, items, asker)
values (%(query_id)s, %(at)s, %(text)s, %(filters)s, %(domains)s, %(items)s, %(asker)s)
on conflict (query_id) do nothing
"""
_ITEMS = "select items from shown where query_id = %s and asker = %s for update"
_VOTE = "select useful from feedback where query_id = %s and chunk_id = %s"
_JUDGE = """
insert into feedback (query_id, chunk_id, useful, at)
values (%s, %s, %s, %s)
on conflict (query_id, chunk_id) do update
set useful = excluded.useful, at = excluded.at
"""
_FORGET_OLD = """
delete from shown
where number in (select number from shown where not judged and at < %(before)s order by at limit %(batch)s)
returning number
"""
_FORGET_MANY = """
delete from shown
where number in (
  select number
  from shown
  where not judged and number <= (select number from shown order by number desc offset %(most)s limit 1)
  order by number
  limit %(batch)s
)
returning number
"""


class FeedbackTables:
    """Feedback in the workspace's schema; implements ``FeedbackDatabase``.

    A server can be slow or away for seconds. Answers are written by a thread, and left to it when it takes longer than
    a query may wait: what is written twice is there once. Everything else has the deadlines of the server's readers.
    """

    def __init__(self, server: Server) -> None:
        """Store the parameters; nothing is opened."""
        self._server = server
        self.name = server.name
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._working: Future[Any] | None = None

    def exists(self) -> bool:
        """Tell that there may be something."""
        return True

    def remember(self, answers: Sequence[StoredAnswer], *, patience_s: float) -> None:
        """Write answers, all or none; one that is there already stays as it is."""

        def work(connection: Connection) -> None:
            prepare_workspace(connection, self._server)
            with connection.transaction():
                connection.execute("set local synchronous_commit = off")
                connection.cursor().executemany(_REMEMBER, answers)

        self._within(patience_s, lambda: self._server.read(work))

    def judge(
        self, query_id: str, chunk_id: str, *, useful: bool, at: str, asker: str, patience_s: float
    ) -> tuple[bool, bool | None]:
        """Write what is said of an item of an answer."""
        del patience_s
        if not query_id.isprintable():  # such as PostgreSQL cannot hold in a text
            return False, None

        def work(connection: Connection) -> tuple[bool, bool | None]:
            with connection.transaction():
                found = connection.execute(_ITEMS, [query_id, asker]).fetchone()
                if found is None:
                    return False, None
                check_shown(chunk_id, [str(item["chunk_id"]) for item in json.loads(found[0])])
                before = connection.execute(_VOTE, [query_id, chunk_id]).fetchone()
                connection.execute(_JUDGE, [query_id, chunk_id, useful, at])
                connection.execute("update shown set judged = true where query_id = %s", [query_id])
            return True, before[0] if before else None

        unknown: tuple[bool, bool | None] = (False, None)
        return self._server.read_if_there(work, unknown)

    def votes(self, *, patience_s: float) -> list[Mapping[str, Any]]:
        """Return everything that was said, each with its answer: in the order of the answers, then by chunk."""
        del patience_s
        names = ("query_id", "at", "text", "filters", "domains", "items", "chunk_id", "useful")
        return [dict(zip(names, row, strict=True)) for row in self._server.rows_if_there(JUDGED)]

    def forget(self, *, before: str, most: int, within_s: float, patience_s: float) -> bool:
        """Delete what was not judged and is old, or one of too many; tell whether that was everything."""
        del patience_s
        limits = {"before": before, "most": most, "batch": BATCH}

        def delete(statement: str) -> int:
            return len(self._server.rows_if_there(statement, limits))

        return delete_in_batches(delete, (_FORGET_OLD, _FORGET_MANY), within_s)

    def answers(self) -> list[tuple[str, str, str]]:
        """Return every answer that is remembered: its query id, and its question and items as JSON."""
        return [
            (row[0], row[1], row[2]) for row in self._server.rows_if_there("select query_id, text, items from shown")
        ]

    def remove(self, query_ids: Sequence[str]) -> None:
        """Forget answers with what was said of them; their bytes are overwritten."""
        with writing(self._server, "nothing was forgotten") as connection:
            with connection.transaction():
                connection.execute("delete from feedback where query_id = any(%s)", [list(query_ids)])
                connection.execute("delete from shown where query_id = any(%s)", [list(query_ids)])
            compact(connection, ("feedback", "shown"))

    def close(self) -> None:
        """Let the thread go when it has done what it was left with."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False)

    def _within(self, patience_s: float, work: Callable[[], None]) -> None:
        """Do it in the thread, when that is done with what came before.

        Raises:
            DatabaseBusyError: it is not done yet; if it has begun, the thread goes on with it.
            StoreError: it cannot be done.
        """
        deadline = time.monotonic() + patience_s
        is_ours = False
        while not is_ours:
            with self._lock:
                is_ours = self._working is None or self._working.done()
                if is_ours:
                    self._thread = self._thread or ThreadPoolExecutor(1, "nornweave-feedback")
                    self._working = self._thread.submit(work)
                assert self._working
                working = self._working
            wait([working], max(deadline - time.monotonic(), 0))
            if not working.done():
                raise DatabaseBusyError(f"{self.name} has taken longer than {patience_s:g} s")
        working.result()
