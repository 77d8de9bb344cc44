"""One PostgreSQL server: few connections with deadlines, and the schemas of domains and of the workspace.

One writer per domain, across machines: a session advisory lock on the connection that does all the writing. Whoever
loses the connection loses the lock and can write nothing any more: there is no moment with two writers.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from nornweave.carry.lease import plain_address
from nornweave.core.errors import DomainBusyError, StoreError
from nornweave.core.files.lock import describe_holder

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


logger = logging.getLogger(__name__)
POLL_S = 0.1
_WRITER = 0
# Each changes when its tables do.
SCHEMA = "3"
WORKSPACE_SCHEMA = "1"
_MAKING = 1  # the second key of an advisory lock; 0 is the writer's


def prepare_schema(connection: Connection, server: Server) -> None:
    """Create the schema and its tables if they are missing.

    Raises:
        StoreError: the schema is of another version.
        psycopg.Error: the server refuses.
    """
    with connection.transaction():
        make_schema(connection, server)
        row = connection.execute("select to_regclass('meta') is not null").fetchone()
        if not row or not row[0]:
            connection.execute(statement_text("schema"))
            connection.execute("insert into meta values ('schema', %s)", [SCHEMA])
        found = connection.execute("select value from meta where key = 'schema'").fetchone()
        if found != (SCHEMA,):
            raise StoreError(
                f"{server.name}: has version {found and found[0]!r}, this version needs {SCHEMA!r}; drop the schema: "
                "the next sync fills it from the sources"
            )


def prepare_workspace(connection: Connection, server: Server) -> None:
    """Create the workspace's tables if they are missing.

    Raises:
        StoreError: the schema is of another version.
        psycopg.Error: the server refuses.
    """
    row = connection.execute("select to_regclass('meta') is not null").fetchone()
    if not row or not row[0]:
        with connection.transaction():
            # Several machines may begin at once.
            connection.execute("select pg_advisory_xact_lock(%s, %s)", [lock_class(server.schema), _MAKING])
            make_schema(connection, server)
            connection.execute(statement_text("workspace"))
            connection.execute(
                "insert into meta values ('schema', %s) on conflict (key) do nothing", [WORKSPACE_SCHEMA]
            )
    found = connection.execute("select value from meta where key = 'schema'").fetchone()
    if found != (WORKSPACE_SCHEMA,):
        raise StoreError(
            f"{server.name}: has version {found and found[0]!r}, this version needs {WORKSPACE_SCHEMA!r}; use the "
            "program that made it, or rename the schema: history begins anew"
        )


def make_schema(connection: Connection, server: Server) -> None:
    """Create the schema if it is missing. If it exists, the permission to create schemas is not needed.

    Raises:
        psycopg.Error: the server refuses.
    """
    row = connection.execute("select to_regnamespace(%s) is not null", [server.schema]).fetchone()
    if not row or not row[0]:
        connection.execute(sql.SQL("create schema {}").format(sql.Identifier(server.schema)))


def compact(connection: Connection, tables: Iterable[str]) -> None:
    """Rewrite tables without their deleted rows. Readers wait meanwhile.

    Raises:
        psycopg.Error: the server refuses.
    """
    for table in tables:
        connection.execute(sql.SQL("vacuum (full) {}").format(sql.Identifier(table)))


def statement_text(name: str) -> str:
    """Return the text of ``sql/<name>.sql``."""
    return (resources.files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def lock_class(schema: str) -> int:
    """Return the first key of a schema's advisory locks. It differs by schema, because a database shares its locks."""
    return zlib.crc32(f"nornweave/{schema}".encode()) - (1 << 31)


def take_lock(connection: Connection, server: Server, *, wait_s: float) -> None:
    """Take the writer's lock for as long as the connection lives.

    Raises:
        DomainBusyError: somebody else still holds it after ``wait_s`` seconds. The message says who.
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


def release_lock(connection: Connection) -> None:
    """Release the lock now. If the connection were only closed, the server would release it a moment later."""
    with suppress(psycopg.Error):
        connection.execute("select pg_advisory_unlock_all()")


def _describe_holder(connection: Connection, server: Server) -> str:
    exists = connection.execute("select to_regclass('carried') is not null").fetchone()
    row = connection.execute("select holder from carried").fetchone() if exists and exists[0] else None
    return describe_holder(server.name, row[0] if row else "")


def role_statements(schemas: Iterable[str], workspace: str) -> str:
    """Return the SQL for an administrator to run once: roles, schemas, working tables and grants."""
    parts = [_schema_statements(each, "schema", SCHEMA, "roles_domain") for each in schemas]
    shared = _schema_statements(workspace, "workspace", WORKSPACE_SCHEMA, "roles_workspace")
    return "\n".join([statement_text("roles"), *parts, shared])


def _schema_statements(schema: str, tables: str, version: str, grants: str) -> str:
    return statement_text("roles_schema").format(
        schema=schema,
        tables=statement_text(tables),
        version=version,
        grants=statement_text(grants).format(schema=schema),
    )


@contextmanager
def writing(server: Server, otherwise: str) -> Iterator[Connection]:
    """Open a connection in the writers' role.

    Raises:
        StoreError: the server cannot be reached, or the block fails. The message begins with ``otherwise``, which says
            what was not done.
    """
    with translate_errors(server, otherwise), server.connect() as connection:
        become_writer(connection)
        yield connection


def become_writer(connection: Connection) -> None:
    """Switch to the writers' role if the login has it, so that any writer may drop another's tables."""
    connection.execute(
        """
        select set_config('role', rolname, false)
        from pg_roles
        where rolname = 'nornweave_writer' and pg_has_role(session_user, oid, 'member')
        and not (select rolsuper from pg_roles where rolname = session_user)
        """
    )
