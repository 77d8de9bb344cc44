"""One writer per domain, across machines: a session advisory lock on the connection that does all the writing.

Whoever loses the connection loses the lock and can write nothing any more: there is no moment with two writers.
"""

from __future__ import annotations

import logging
import time

from nornweave.core.errors import DomainBusyError
from nornweave.core.files.lock import describe_holder, holder_text
from nornweave.index.postgresql.names import lock_class
from nornweave.index.postgresql.server import Connection, Server

logger = logging.getLogger(__name__)

POLL_S = 0.1
_WRITER = 0  # generations are numbered from 1


def take_lock(connection: Connection, server: Server, *, wait_s: float) -> None:
    """Take the writer's lock for as long as the connection lives.

    Raises:
        DomainBusyError: somebody else still holds it after ``wait_s`` seconds; the message says who.
    """
    deadline = time.monotonic() + wait_s
    told = False
    while True:
        row = connection.execute("select pg_try_advisory_lock(%s, %s)", [lock_class(server.schema), _WRITER]).fetchone()
        if row and row[0]:
            return
        if time.monotonic() >= deadline:
            raise DomainBusyError(_describe_holder(connection, server))
        if not told:
            told = True
            logger.warning("waiting up to %g s: %s", wait_s, _describe_holder(connection, server))
        time.sleep(POLL_S)


def write_holder(connection: Connection, purpose: str) -> None:
    """Say who holds the lock."""
    connection.execute(
        "insert into writer (holder) values (%s) on conflict (one) do update set holder = excluded.holder",
        [holder_text(purpose)],
    )


def _describe_holder(connection: Connection, server: Server) -> str:
    exists = connection.execute("select to_regclass('writer') is not null").fetchone()
    row = connection.execute("select holder from writer").fetchone() if exists and exists[0] else None
    return describe_holder(server.name, row[0] if row else "")
