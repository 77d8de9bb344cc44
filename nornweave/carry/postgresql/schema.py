"""PostgreSQL schemas of domains and of the workspace: names, tables, the writer's lock, roles of least privilege.

One writer per domain, across machines: a session advisory lock on the connection that does all the writing. Whoever
loses the connection loses the lock and can write nothing any more: there is no moment with two writers.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources

import psycopg
from psycopg import sql

from nornweave.carry.postgresql.server import Connection, Server, translate_errors
from nornweave.core.errors import DomainBusyError, StoreError
from nornweave.core.files.lock import describe_holder

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
