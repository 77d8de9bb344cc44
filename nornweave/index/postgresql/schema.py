"""Make the schemas of domains and of what they share: the history of evaluations, feedback, the conflict ledger."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

import psycopg
from psycopg import sql

from nornweave.core.errors import StoreError
from nornweave.index.postgresql.names import lock_class
from nornweave.index.postgresql.server import Connection, Server

# Each changes when its tables do.
SCHEMA = "1"
WORKSPACE_SCHEMA = "1"
_MAKING = 1  # the second key of an advisory lock; 0 is the writer's


def prepare_schema(connection: Connection, server: Server, dimensions: int) -> None:
    """Make what is missing; forget the vectors of another size.

    Raises:
        StoreError: pgvector is missing, or the schema is of another version.
        psycopg.Error: the server refuses.
    """
    _need_pgvector(connection, server)
    with connection.transaction():
        make_schema(connection, server)
        row = connection.execute("select to_regclass('meta') is not null").fetchone()
        if not row or not row[0]:
            connection.execute(statement_text("schema"))
            connection.execute("insert into meta values ('schema', %s)", [SCHEMA])
        meta: dict[str, str] = dict(connection.execute("select key, value from meta").fetchall())
        if meta.get("schema") != SCHEMA:
            raise StoreError(
                f"{server.name}: has version {meta.get('schema')!r}, this version needs {SCHEMA!r}; drop the schema: "
                "the next sync fills it from the sources"
            )
        if meta.get("dimensions") != str(dimensions):
            connection.execute("delete from embeddings")
            connection.execute(
                "insert into meta values ('dimensions', %s) on conflict (key) do update set value = excluded.value",
                [str(dimensions)],
            )


def prepare_workspace(connection: Connection, server: Server) -> None:
    """Make the tables unless they are there.

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
            "program that made it, or rename the schema: history and feedback begin anew"
        )


def make_schema(connection: Connection, server: Server) -> None:
    """Make the schema unless it is there; who may make none is not stopped then.

    Raises:
        psycopg.Error: the server refuses.
    """
    row = connection.execute("select to_regnamespace(%s) is not null", [server.schema]).fetchone()
    if not row or not row[0]:
        connection.execute(sql.SQL("create schema {}").format(sql.Identifier(server.schema)))


def _need_pgvector(connection: Connection, server: Server) -> None:
    if connection.execute("select 1 from pg_extension where extname = 'vector'").fetchone():
        return
    try:
        connection.execute("create extension if not exists vector")
    except psycopg.Error as error:
        raise StoreError(
            f"{server.name}: pgvector is missing; install it on the server, then run as its administrator: "
            f"create extension vector ({str(error).strip().splitlines()[0]})"
        ) from error


def compact(connection: Connection, tables: Iterable[str]) -> None:
    """Write tables anew without their deleted rows; nobody reads them meanwhile.

    Raises:
        psycopg.Error: the server refuses.
    """
    for table in tables:
        connection.execute(sql.SQL("vacuum (full) {}").format(sql.Identifier(table)))


def statement_text(name: str) -> str:
    """Return the text of ``sql/<name>.sql``."""
    return (resources.files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
