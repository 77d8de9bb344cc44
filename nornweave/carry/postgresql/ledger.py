"""The conflict ledger in PostgreSQL, for all machines of a workspace."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nornweave.carry.ledger_file import LOCK_WAIT_S
from nornweave.carry.postgresql.server import Server, compact, prepare_workspace, take_lock, translate_errors, writing
from nornweave.core.errors import StoreError

log = logging.getLogger(__name__)

# Every question needs the version. Ask the server this often, and less often while it does not answer.
LOOK_EVERY_S, LOOK_AGAIN_S = 1.0, 10.0


class LedgerRow:
    """The ledger in the workspace's schema. Implements ``LedgerPlace``."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.name = f"{server.name}, ledger"
        self._version: int | None = None
        self._look_at = 0.0

    def read(self) -> str | None:
        rows = self._server.rows_if_there("select document from ledger")
        return str(rows[0][0]) if rows else None

    def write(self, document: str) -> None:
        with writing(self._server, "the ledger was not written") as connection:
            prepare_workspace(connection, self._server)
            connection.execute(
                """
                insert into ledger (version, document) values (1, %s)
                on conflict (one) do update set version = ledger.version + 1, document = excluded.document
                """,
                [document],
            )
            # Old documents may hold statements of deleted documents.
            compact(connection, ["ledger"])

    def version(self) -> object:
        """Return the version, at most a second old. If the server does not answer, return the last known version."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_EVERY_S
            try:
                rows = self._server.rows_if_there("select version from ledger")
                self._version = rows[0][0] if rows else None
            except StoreError as error:
                self._look_at = time.monotonic() + LOOK_AGAIN_S
                log.info("the ledger cannot be looked at: %s", error)
        return self._version

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other machines out until the context ends."""
        with translate_errors(self._server, "the ledger was not written"), self._server.connect() as connection:
            take_lock(connection, self._server, wait_s=LOCK_WAIT_S)
            yield
