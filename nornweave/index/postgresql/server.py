"""One domain's schema on a PostgreSQL server: connections with deadlines, and errors that say what to do."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from nornweave.core.errors import StoreError

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Values: TypeAlias = Sequence[Any] | Mapping[str, Any]

CONNECT_S = 5
# Of a reader that waits for a connection or for a server that went away: a query has other domains to answer from.
POOL_WAIT_S = 3.0
# Of idle connections: a host that vanished is noticed after some 30 s, not after two hours.
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
READ_MS = 10_000
# Building an index over millions of vectors takes an hour; what waits for a lock does not.
WRITE_MS, LOCK_MS = 4 * 3_600_000, 30_000
_POOL_SIZE = 8

T = TypeVar("T")


class _ConnectionDiedError(psycopg.OperationalError):
    """A connection of the pool was lost, rather than a statement failed."""


class Server:
    """Connections to one schema; safe to use from several threads."""

    def __init__(self, url: str, schema: str) -> None:
        """Store the parameters; nothing is opened.

        Args:
            url: of the database, without a password: libpq takes that from ``PGPASSWORD`` or its password file.
            schema: of the domain; made by the first writer.
        """
        self.schema = schema
        self._conninfo = make_conninfo(url, connect_timeout=CONNECT_S, application_name="nornweave", **_KEEPALIVE)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._pid = 0

    @property
    def name(self) -> str:
        """Return the place of the schema as it may be shown: without user, password and parameters."""
        said = conninfo_to_dict(self._conninfo)
        return f"PostgreSQL {said.get('host') or 'local'}/{said.get('dbname') or ''}, schema {self.schema}"

    def connect(self, *, timeout_ms: int = WRITE_MS) -> Connection:
        """Open a connection of its own, in autocommit.

        Raises:
            StoreError: the server cannot be reached or refuses.
        """
        try:
            return psycopg.connect(self._conninfo, autocommit=True, options=self._options(timeout_ms))
        except psycopg.Error as error:
            raise self.unreadable(error) from error

    def _options(self, timeout_ms: int) -> str:
        return (
            f"-c search_path={self.schema},public -c statement_timeout={timeout_ms:d} -c lock_timeout={LOCK_MS:d} "
            "-c timezone=UTC -c client_min_messages=warning"
        )

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Run a query of a reader.

        Raises:
            StoreError: it cannot be answered.
        """
        return self.read(lambda connection: connection.execute(statement, values, binary=True).fetchall())

    def rows_if_there(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Run a query of a reader; no rows where no writer has made the tables yet.

        Raises:
            StoreError: it cannot be answered.
        """
        return self.read_if_there(lambda connection: connection.execute(statement, values).fetchall(), [])

    def read_if_there(self, work: Callable[[Connection], T], nothing: T) -> T:
        """Do the work of a reader; return ``nothing`` where no writer has made the tables yet.

        Raises:
            StoreError: the server is away, or a statement fails.
        """

        def attempt(connection: Connection) -> T:
            try:
                return work(connection)
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                return nothing

        return self.read(attempt)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work of a reader with a connection of the pool; once more if the connection had died meanwhile.

        Raises:
            StoreError: the server is away, or a statement fails.
        """
        try:
            try:
                return self._borrowed(work)
            except _ConnectionDiedError:  # the server was restarted: what else the pool holds is dead as well
                self._connections().check()
                return self._borrowed(work)
        except (psycopg.Error, PoolTimeout) as error:
            raise self.unreadable(error) from error

    def _borrowed(self, work: Callable[[Connection], T]) -> T:
        with self._connections().connection() as connection:
            try:
                return work(connection)
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise _ConnectionDiedError(str(error)) from error
                raise

    def unreadable(self, error: Exception) -> StoreError:
        """Return the error that says where and what to do."""
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return StoreError(f"{self.name}: a table is missing ({_first_line(error)}); run `nornweave sync`")
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreError(f"{self.name}: {_first_line(error)}; `nornweave roles` prints the grants")
        if isinstance(error, psycopg.OperationalError | PoolTimeout):
            return StoreError(f"{self.name}: the server does not answer ({_first_line(error)}); it is tried again")
        return StoreError(f"{self.name}: {_first_line(error)}")

    def _connections(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():  # a connection cannot be shared with a forked process
                self._pid = os.getpid()
                self._pool = ConnectionPool(
                    self._conninfo,
                    kwargs={"autocommit": True, "options": self._options(READ_MS)},
                    min_size=0,
                    max_size=_POOL_SIZE,
                    timeout=POOL_WAIT_S,
                    max_idle=60,
                    reconnect_timeout=POOL_WAIT_S,  # then it gives up, and the next query tries at once
                    name=self.schema,
                    open=True,
                )
            return self._pool

    def close(self) -> None:
        """Close the idle connections; the next query opens others."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


@contextmanager
def translated(server: Server, what: str) -> Iterator[None]:
    """Turn the errors of PostgreSQL into the store's.

    Raises:
        StoreError: in place of any of them; ``what`` says what did not happen.
    """
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(f"{what}: {server.unreadable(error)}") from error


_servers: dict[tuple[str, str], Server] = {}
_servers_lock = threading.Lock()


def server_of(url: str, schema: str) -> Server:
    """Return the process's connections to a schema: settings make many stores, all share them."""
    with _servers_lock:
        return _servers.setdefault((url, schema), Server(url, schema))


def close_servers() -> None:
    """Close all idle connections of the process."""
    with _servers_lock:
        servers = list(_servers.values())
    for server in servers:
        server.close()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
