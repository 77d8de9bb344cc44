"""``nornweave token`` and ``nornweave roles``: tokens for people, roles of least privilege for PostgreSQL."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from nornweave.cli.options import JsonOption, messages, settings_of
from nornweave.core.access.rules import group_name
from nornweave.core.access.tokens import line_of, new_token
from nornweave.core.errors import ConfigError
from nornweave.core.text.terminal import print_json, print_text


def token(
    group: Annotated[list[str] | None, typer.Option("--group", metavar="G", help="A group; may be repeated.")] = None,
    name: Annotated[str, typer.Option(help="Whose it is, for who reads the file.")] = "",
    expires: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="The last day on which it is valid.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token for somebody in groups, and the line for the file of tokens; the token is shown once."""
    groups = [group_name(name) for name in group or []]
    if not all(groups):
        raise ConfigError("--group: a group needs a name")
    made = new_token()
    line = line_of(made, groups, name, expires.date() if expires else None)
    if as_json:
        print_json({"token": made, "line": line})
        return
    messages.print("The token, for whoever sends it; it is not shown again:", style="bold", soft_wrap=True)
    print_text(made)
    said = "Its line for the file that 'access.tokens' names, which a running server reads at once:"
    messages.print(said, style="bold", soft_wrap=True)
    print_text(line)


def roles(context: typer.Context) -> None:
    """Print the SQL that an administrator of PostgreSQL runs once: schemas, roles and what each may do."""
    from nornweave.index.wiring import storage_schemas, workspace_schema

    settings = settings_of(context)
    if settings.storage is None:
        raise ConfigError(f"{settings.file}: has no storage: the domains are stored in files below {settings.data_dir}")
    from nornweave.index.postgresql.schema import role_statements

    print_text(role_statements(storage_schemas(settings), workspace_schema(settings.storage)))
