"""``nornweave roles``: print the SQL that makes roles of least privilege for PostgreSQL."""

from __future__ import annotations

import typer

from nornweave.cli.options import settings_of
from nornweave.core.errors import ConfigError
from nornweave.core.text.terminal import print_text


def roles(context: typer.Context) -> None:
    """Print the SQL that an administrator of PostgreSQL runs once: schemas, roles and what each may do."""
    from nornweave.index.wiring import storage_schemas, workspace_schema

    settings = settings_of(context)
    if settings.storage is None:
        raise ConfigError(f"{settings.file}: has no storage: the domains are stored in files below {settings.data_dir}")
    from nornweave.index.postgresql.roles import role_statements

    print_text(role_statements(storage_schemas(settings), workspace_schema(settings.storage)))
