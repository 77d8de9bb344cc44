"""The schema of what belongs to no single domain: the history of evaluations, feedback, the conflict ledger."""

from __future__ import annotations

from nornweave.core.errors import StoreError
from nornweave.index.postgresql.names import lock_class
from nornweave.index.postgresql.schema import make_schema, statement_text
from nornweave.index.postgresql.server import Connection, Server

# Changes when the tables do.
WORKSPACE_SCHEMA = "1"
_MAKING = 1  # 0 is the writer's


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
