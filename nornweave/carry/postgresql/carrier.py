"""The files of one domain in PostgreSQL, as object storage has those of machines that write in turns.

Whoever writes holds a session advisory lock on the connection that does all the writing: without the connection there
is no lock and no way to write. What is published is in one row, which names the files, and is written in the
transaction that shows their documents to people with SQL.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from psycopg.types.json import Jsonb

from nornweave.carry.object_store import StoredDocument, StoredObject
from nornweave.carry.postgresql.people import show
from nornweave.carry.postgresql.schema import compact, prepare_schema, release_lock, take_lock, writing
from nornweave.carry.postgresql.server import Connection, Server, translate_errors
from nornweave.carry.shared_folder import SharedFolder
from nornweave.core.errors import MissingObjectError
from nornweave.core.files.lock import holder_text
from nornweave.index.generations.publish import GenerationFiles


class PostgresCarrier:
    """The schema of one domain. Implements ``Claim`` and ``Objects`` of ``parts``.

    An object is a row of at most 8 MiB, so that a reader can fetch it within the deadline of one statement.
    """

    def __init__(self, server: Server, folder: Path, purpose: str) -> None:
        """Store the arguments. ``folder`` has the files of the domain on this machine."""
        self.url = server.name
        self.fence = 0
        self._server = server
        self._files = GenerationFiles(folder / "generations", SharedFolder(folder, lambda _: self, lambda _: self))
        self._purpose = purpose
        self._former_copies = folder / "copies"
        self._resources = ExitStack()
        self._lock = threading.Lock()
        """Of the connection: parts of a file come from several threads."""

    def take(self, wait_s: float) -> Mapping[str, Any]:
        """Take the writer's lock. Return the last committed state; empty if there is none."""
        with ExitStack() as stack:
            connection = stack.enter_context(writing(self._server, "cannot be written"))
            take_lock(connection, self._server, wait_s=wait_s)
            stack.callback(release_lock, connection)
            prepare_schema(connection, self._server)
            shutil.rmtree(self._former_copies, ignore_errors=True)  # of an earlier version
            said = "update carried set fence = fence + 1, holder = %s returning fence, state"
            ((self.fence, state),) = connection.execute(said, [holder_text(self._purpose)]).fetchall()
            self._connection: Connection = connection
            self._resources = stack.pop_all()
        return dict(state)

    def state(self) -> Mapping[str, Any]:
        """Return the last committed state without taking the lock; empty if there is none."""
        rows = self._server.rows_if_there("select state from carried")
        return dict(rows[0][0]) if rows else {}

    def committed(self) -> str | None:
        """Return the name of the last commit; ``None`` if there is none."""
        rows = self._server.rows_if_there("select state->>'commit' from carried")
        return rows[0][0] if rows else None

    def confirm(self) -> None:
        """Check that the connection, and so the lock, still exists."""
        with translate_errors(self._server, "the lock is lost, nothing more is published"):
            self._connection.execute("select 1")

    def commit(self, state: Mapping[str, Any]) -> None:
        """Store the state for the next holder. Write the tables that people query with SQL."""
        connection = self._connection
        with (
            translate_errors(self._server, "nothing was published, the old generation stays"),
            connection.transaction(),
        ):
            connection.execute("update carried set state = %s", [Jsonb(dict(state))])
            show(connection, self._files)

    def release(self) -> None:
        """Release the lock."""
        self._resources.close()

    def read(self, key: str, *, arrived: Callable[[int], None] = lambda _: None) -> StoredDocument:
        """Return the object with a key. Call ``arrived`` with its size in bytes."""
        rows = self._server.rows("select content from objects where key = %s", [key])
        if not rows:
            raise MissingObjectError(f"{self.url}/{key}: there is no such object")
        arrived(len(rows[0][0]))
        return StoredDocument(rows[0][0], None)

    def write(self, key: str, content: bytes) -> None:
        """Write an object. If its key exists, replace the content."""
        statement = "insert into objects values (%s, %s) on conflict (key) do update set content = excluded.content"
        with self._lock, translate_errors(self._server, f"{key} was not stored"):
            self._connection.execute(statement, [key, content])

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with a prefix."""
        for (key,) in self._server.rows("select key from objects where starts_with(key, %s)", [prefix]):
            yield StoredObject(key, datetime.now(UTC))

    def remove(self, key: str) -> None:
        """Remove an object; do nothing if it does not exist."""
        with translate_errors(self._server, f"{key} was not removed"):
            self._connection.execute("delete from objects where key = %s", [key])

    def overwrite(self) -> None:
        """Rewrite the tables, so that the bytes of removed rows are gone."""
        with translate_errors(self._server, "removed rows are not overwritten"):
            compact(self._connection, ("objects", "documents", "chunks"))


def in_server(server: Server, folder: Path) -> SharedFolder:
    """Return the folder of a domain in a schema. Readers ask the server what is published."""
    committed = PostgresCarrier(server, folder, "read").committed
    return SharedFolder(folder, partial(PostgresCarrier, server, folder), lambda carrier: carrier, committed)
