"""Roles of least privilege: the statements that make them, and what a generation grants them."""

from __future__ import annotations

from collections.abc import Iterable

from nornweave.index.postgresql.schema import SCHEMA, WORKSPACE_SCHEMA, statement_text
from nornweave.index.postgresql.server import Connection

_ROLES = ("nornweave_owner", "nornweave_writer", "nornweave_reader", "nornweave_people")


def role_statements(schemas: Iterable[str], workspace: str) -> str:
    """Return the SQL that an administrator runs once: roles, schemas, working tables and grants.

    Args:
        schemas: of the domains.
        workspace: schema of what belongs to no single domain.
    """
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


def grant_generation(connection: Connection, prefix: str, tables: Iterable[str]) -> None:
    """Let readers read a generation, and people the documents of their groups, where the roles are there."""
    row = connection.execute("select count(*) from pg_roles where rolname = any(%s)", [list(_ROLES)]).fetchone()
    if row and row[0] == len(_ROLES):
        names = ", ".join(f"{prefix}{table}" for table in tables)
        connection.execute(statement_text("generation_access").format(g=prefix, tables=names))


def become_writer(connection: Connection) -> None:
    """Take the writers' role where the login is in it, so that each may drop what another made."""
    connection.execute(
        """
        select set_config('role', rolname, false)
        from pg_roles
        where rolname = 'nornweave_writer' and pg_has_role(session_user, oid, 'member')
        and not (select rolsuper from pg_roles where rolname = session_user)
        """
    )
