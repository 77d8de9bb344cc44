"""One domain's schema on a PostgreSQL server: connections with deadlines, and errors that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from nornweave.carry.lease import plain_address
from nornweave.carry.postgresql.causes import cause_of, first_line
from nornweave.carry.postgresql.pool import Connection, PoolBusyError, close_idle, pool_of
from nornweave.core.errors import StoreError

Values: TypeAlias = Sequence[Any] | Mapping[str, Any]

# Whoever waits at a command line is told why within 5 s.
CONNECT_S = 3
# Of idle connections: a host that vanished is noticed after some 30 s, not after two hours.
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
READ_MS = 10_000
# Building an index over millions of vectors takes an hour; what waits for a lock does not.
WRITE_MS, LOCK_MS = 4 * 3_600_000, 30_000
CONNECTIONS = 8

T = TypeVar("T")


class _ConnectionDiedError(psycopg.OperationalError):
    """A connection of the pool was lost, rather than a statement failed."""


class Server:
    """Connections to one schema; safe to use from several threads."""

    def __init__(self, url: str, schema: str, connections: int = CONNECTIONS) -> None:
        """Store the parameters; nothing is opened.

        Args:
            url: of the database, without a password: libpq takes that from ``PGPASSWORD`` or its password file.
            schema: of the domain; made by the first writer.
            connections: that readers of this process may have to the database, of all schemas together.
        """
        self.schema = schema
        self._conninfo = make_conninfo(url, connect_timeout=CONNECT_S, application_name="nornweave", **_KEEPALIVE)
        self._connections = connections

    @property
    def name(self) -> str:
        """Return the place of the schema as it may be shown: without user, password and parameters."""
        said = conninfo_to_dict(self._conninfo)
        return f"PostgreSQL {said.get('host') or 'local'}/{said.get('dbname') or ''}, schema {self.schema}"

    def connect(self) -> Connection:
        """Open a connection of its own, in autocommit.

        Raises:
            StoreError: the server cannot be reached or refuses.
        """
        try:
            return psycopg.connect(self._conninfo, autocommit=True, options=self._options(WRITE_MS))
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

        def ask(connection: Connection) -> list[tuple[Any, ...]]:
            try:
                return connection.execute(statement, values).fetchall()
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                return []

        return self.read(ask)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work of a reader with a connection of the pool; once more if the connection had died meanwhile.

        Raises:
            StoreError: the server is away, or a statement fails.
        """
        try:
            try:
                return self._borrowed(work)
            except _ConnectionDiedError:  # the server was restarted: what else the pool holds is dead as well
                close_idle()
                return self._borrowed(work)
        except psycopg.Error as error:
            raise self.unreadable(error) from error

    def _borrowed(self, work: Callable[[Connection], T]) -> T:
        pool = pool_of(self._conninfo, self._connections)
        with pool.borrowed(self._options(READ_MS)) as connection:
            try:
                return work(connection)
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise _ConnectionDiedError(str(error)) from error
                raise

    def unreadable(self, error: Exception) -> StoreError:
        """Return the error that says where and what to do."""
        said = first_line(error)
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return StoreError(f"{self.name}: a table is missing ({said}); run `nornweave sync`")
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreError(f"{self.name}: {said}; `nornweave roles` prints the grants")
        if isinstance(error, psycopg.OperationalError) and not isinstance(error, PoolBusyError):
            return StoreError(f"{self.name}: {cause_of(error) or 'the server does not answer'} ({said})")
        return StoreError(f"{self.name}: {said}")


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


def check_answers(url: str, variable: str) -> None:
    """Return if a database answers whose address, with its password, is in an environment variable.

    Raises:
        StoreError: it does not; the message repeats nothing of the address.
    """
    try:
        psycopg.connect(plain_address(url), connect_timeout=CONNECT_S).close()
    except psycopg.Error as error:
        said = cause_of(error, variable) or "the server does not answer"
        raise StoreError(f"PostgreSQL of {variable}: {said}") from None
