"""Feedback in PostgreSQL, for all machines of a workspace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nornweave.ask.feedback.database import BATCH, JUDGED
from nornweave.ask.feedback.records import StoredAnswer, check_shown
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
    """Feedback in the workspace's schema; implements ``FeedbackDatabase``."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.name = server.name

    def exists(self) -> bool:
        return True

    def remember(self, answers: Sequence[StoredAnswer]) -> None:
        def work(connection: Connection) -> None:
            prepare_workspace(connection, self._server)
            with connection.transaction():
                connection.execute("set local synchronous_commit = off")
                connection.cursor().executemany(_REMEMBER, answers)

        self._server.read(work)

    def judge(self, query_id: str, chunk_id: str, *, useful: bool, at: str, asker: str) -> tuple[bool, bool | None]:
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

    def votes(self) -> list[Mapping[str, Any]]:
        names = ("query_id", "at", "text", "filters", "domains", "items", "chunk_id", "useful")
        return [dict(zip(names, row, strict=True)) for row in self._server.rows_if_there(JUDGED)]

    def forget(self, *, before: str, most: int) -> None:
        limits = {"before": before, "most": most, "batch": BATCH}
        for statement in (_FORGET_OLD, _FORGET_MANY):
            while len(self._server.rows_if_there(statement, limits)) == BATCH:
                pass

    def answers(self) -> list[tuple[str, str, str]]:
        return [
            (row[0], row[1], row[2]) for row in self._server.rows_if_there("select query_id, text, items from shown")
        ]

    def remove(self, query_ids: Sequence[str]) -> None:
        with writing(self._server, "nothing was forgotten") as connection:
            with connection.transaction():
                connection.execute("delete from feedback where query_id = any(%s)", [list(query_ids)])
                connection.execute("delete from shown where query_id = any(%s)", [list(query_ids)])
            compact(connection, ("feedback", "shown"))

    def close(self) -> None:
        """Keep nothing open: connections are of the pool."""
