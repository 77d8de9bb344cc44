"""Connections to one domain's schema on a PostgreSQL server: few, with deadlines and clear errors."""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from nornweave.carry.lease import plain_address
from nornweave.core.errors import StoreError

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

# How long a reader waits for a connection: a query has other domains to answer from.
POOL_WAIT_S = 3.0
IDLE_S = 60.0
# Pause after a refusal: otherwise every thread would try again, until the server locks the account.
REFUSED_S = 1.0

Values: TypeAlias = Sequence[Any] | Mapping[str, Any]

# Somebody at a command line learns within 5 s why it waits.
CONNECT_S = 3
# Keepalives of idle connections: a vanished host is noticed after about 30 s, not two hours.
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
READ_MS = 10_000
# Building an index over millions of vectors takes an hour; what waits for a lock does not.
WRITE_MS, LOCK_MS = 4 * 3_600_000, 30_000
CONNECTIONS = 8

T = TypeVar("T")

_WITHOUT_VARIABLE = "PGPASSWORD or ~/.pgpass"
# libpq gives no code for what fails before there is a session, only these words (18.1); what a server says in another
# language is passed on as it is.
_REMEDIES: Mapping[str, str] = {
    r"password authentication failed": "the password is wrong; correct {password}",
    r"no password supplied": "no password was given; set {password}",
    r'database ".*" does not exist': "make the database, or correct {address}",
    r'role ".*" does not exist': "make the role, or correct the user in {address}",
    r"no pg_hba\.conf entry": "the server lets this user in from elsewhere only; add a line to its pg_hba.conf",
    r"Connection refused|No such file or directory": "the server does not answer; start it, or correct {address}",
    r"could not translate host name|failed to resolve host": (
        "nobody knows this host; correct {address}, with @ in a password as %40"
    ),
    r"invalid (integer|port|percent|URI)|in connection info string|in URI": (
        "{address} is not an address; in user and password write @ as %40, / as %2F, : as %3A and % as %25"
    ),
    r"timeout expired|timed out|unreachable": "the server does not answer; check network, firewall and {address}",
    r"too many clients|remaining connection slots|too many connections": (
        "the server has no connection left; raise its max_connections, or lower storage.connections"
    ),
    r"does not support SSL|certificate": "no encrypted connection comes about; check sslmode in {address}",
}


def cause_of(error: Exception, variable: str | None = None) -> str | None:
    """Return why connecting failed and what to do; ``None`` for other errors.

    Args:
        error: an error of libpq. Its message may repeat part of a password that holds ``@`` or ``/``.
        variable: the environment variable that holds the address with its password; ``None`` if the address is
            ``storage.url``.
    """
    said = str(error)
    address, password = variable or "storage.url", f"the password in {variable}" if variable else _WITHOUT_VARIABLE
    found = (remedy for words, remedy in _REMEDIES.items() if re.search(words, said))
    return next((remedy.format(address=address, password=password) for remedy in found), None)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without hints and the statement."""
    return str(error).strip().partition("\n")[0].removeprefix("connection failed: ")


class PoolBusyError(psycopg.OperationalError):
    """All connections are in use."""


@dataclass(frozen=True, slots=True)
class _Idle:
    options: str
    connection: Connection
    since: float


class ConnectionPool:
    """At most ``size`` connections, idle ones included. Thread-safe.

    The thread that needs a connection opens it, so that this thread gets the error if opening fails.
    """

    def __init__(self, conninfo: str, size: int) -> None:
        self._conninfo = conninfo
        self._size = size
        self._turns = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._used = 0
        self._idle: list[_Idle] = []
        self._refused = ""
        self._refused_until = 0.0

    @contextmanager
    def borrow(self, options: str) -> Iterator[Connection]:
        """Lend a connection with these options, in autocommit mode.

        Raises:
            PoolBusyError: all connections are in use, and none was given back in time.
            psycopg.OperationalError: connecting failed.
        """
        if not self._turns.acquire(timeout=POOL_WAIT_S):
            raise PoolBusyError(f"all {self._size} connections are in use; raise storage.connections")
        try:
            with self._lock:
                self._used += 1
                idle = self._idle_with(options)
            connection = idle or self._open(options)
            try:
                yield connection
            finally:
                self._give_back(options, connection)
        finally:
            with self._lock:
                self._used -= 1
            self._turns.release()

    def _idle_with(self, options: str) -> Connection | None:
        """Return the newest idle connection with these options; ``None`` if there is none.

        If there is none and the pool is full, close an idle connection with other options, so that one can be opened.
        """
        for place in reversed(range(len(self._idle))):
            if self._idle[place].options == options:
                return self._idle.pop(place).connection
        if self._used + len(self._idle) > self._size:
            self._idle.pop(0).connection.close()
        return None

    def _open(self, options: str) -> Connection:
        if time.monotonic() < self._refused_until:
            raise psycopg.OperationalError(self._refused)
        try:
            return psycopg.connect(self._conninfo, autocommit=True, options=options)
        except psycopg.Error as error:
            self._refused, self._refused_until = str(error), time.monotonic() + REFUSED_S
            raise

    def _give_back(self, options: str, connection: Connection) -> None:
        now = time.monotonic()
        if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
        with self._lock:
            old = [each for each in self._idle if now - each.since > IDLE_S]
            self._idle = [each for each in self._idle if now - each.since <= IDLE_S]
            if not connection.closed:
                self._idle.append(_Idle(options, connection, now))
        for each in old:
            each.connection.close()

    def close_idle(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.connection.close()


_pools: dict[tuple[int, str], ConnectionPool] = {}
_pools_lock = threading.Lock()


def pool_of(conninfo: str, size: int) -> ConnectionPool:
    """Return this process's pool for a database. A forked process gets a pool of its own."""
    with _pools_lock:
        return _pools.setdefault((os.getpid(), conninfo), ConnectionPool(conninfo, size))


def close_idle() -> None:
    """Close the idle connections of this process to every database."""
    with _pools_lock:
        pools = [pool for (process, _), pool in _pools.items() if process == os.getpid()]
    for pool in pools:
        pool.close_idle()


atexit.register(close_idle)


class _ConnectionDiedError(psycopg.OperationalError):
    """A pooled connection was lost. The statement itself did not fail."""


class Server:
    """Connections to one schema. Thread-safe."""

    def __init__(self, url: str, schema: str, connections: int = CONNECTIONS) -> None:
        """Store the arguments. No connection is opened.

        Args:
            url: the address of the database without a password. libpq takes the password from ``PGPASSWORD`` or its
                password file.
            schema: the schema of the domain, which the first writer creates.
            connections: how many connections to the database readers of this process may have, for all schemas.
        """
        self.schema = schema
        self._conninfo = make_conninfo(url, connect_timeout=CONNECT_S, application_name="nornweave", **_KEEPALIVE)
        self._connections = connections

    @property
    def name(self) -> str:
        """Return the address and schema for messages, without user, password and parameters."""
        said = conninfo_to_dict(self._conninfo)
        return f"PostgreSQL {said.get('host') or 'local'}/{said.get('dbname') or ''}, schema {self.schema}"

    def connect(self) -> Connection:
        """Open a new connection outside the pool, in autocommit.

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
        """Return the rows of a reader's query.

        Raises:
            StoreError: the query cannot be answered.
        """
        return self.read(lambda connection: connection.execute(statement, values, binary=True).fetchall())

    def rows_if_there(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a reader's query; no rows if the tables do not exist yet.

        Raises:
            StoreError: the query cannot be answered.
        """

        def ask(connection: Connection) -> list[tuple[Any, ...]]:
            try:
                return connection.execute(statement, values).fetchall()
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                return []

        return self.read(ask)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work`` with a pooled connection. If the connection was lost, try once more.

        Raises:
            StoreError: the server cannot be reached, or a statement fails.
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
        with pool.borrow(self._options(READ_MS)) as connection:
            try:
                return work(connection)
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise _ConnectionDiedError(str(error)) from error
                raise

    def unreadable(self, error: Exception) -> StoreError:
        """Return the error for a failed reading, with the place and a remedy."""
        said = first_line(error)
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return StoreError(f"{self.name}: a table is missing ({said}); run `nornweave sync`")
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreError(f"{self.name}: {said}; `nornweave roles` prints the grants")
        if isinstance(error, psycopg.OperationalError) and not isinstance(error, PoolBusyError):
            return StoreError(f"{self.name}: {cause_of(error) or 'the server does not answer'} ({said})")
        return StoreError(f"{self.name}: {said}")


@contextmanager
def translate_errors(server: Server, what: str) -> Iterator[None]:
    """Translate errors of PostgreSQL into ``StoreError``.

    Args:
        what: the start of the message, which says what was not done.

    Raises:
        StoreError: the block raised an error of PostgreSQL.
    """
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(f"{what}: {server.unreadable(error)}") from error


def check_answers(url: str, variable: str) -> None:
    """Check that a database answers. Its address is in the environment variable ``variable``.

    Raises:
        StoreError: the database does not answer. The message repeats no part of the address.
    """
    try:
        psycopg.connect(plain_address(url), connect_timeout=CONNECT_S).close()
    except psycopg.Error as error:
        said = cause_of(error, variable) or "the server does not answer"
        raise StoreError(f"PostgreSQL of {variable}: {said}") from None
