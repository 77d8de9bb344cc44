"""What the commands share: consoles, common options, reading the configuration, and their groups in ``--help``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from nornweave.core.errors import ConfigError, DiskFullError, NornWeaveError, QueryError
from nornweave.core.files.writing import full_disk, no_memory, not_writable
from nornweave.core.text.terminal import Terminal
from nornweave.core.types import Domain

if TYPE_CHECKING:
    from nornweave.config import Settings

# Tables keep their columns on narrow terminals and in pipes: a wrapped line can be read, a cropped number cannot.
NARROWEST = 120
output = Terminal(width=max(NARROWEST, Terminal().width))
messages = Terminal(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]

# Command → the sentence of ``nornweave --help``; the command's own help says the rest.
COMMAND_GROUPS: dict[str, dict[str, str]] = {
    "Use": {
        "init": "Look for what can be indexed and write nornweave.yaml.",
        "sync": "Bring the index up to date with the sources.",
        "query": "Ask a question.",
        "find": "Find lines by exact text or by a regular expression.",
        "uses": "Find what uses a name of code.",
        "graph": "Show what a file imports, and what imports it.",
        "why": "Say why a document is not in an answer.",
        "conflicts": "Show what the domains disagree about.",
        "diff": "Show what changed between two moments.",
        "drift": "Show where documentation and code disagree.",
        "push": "Hand files in for the next sync.",
        "agents": "Register the tools with Claude Code, Codex, Cursor and others.",
        "mcp": "Serve the tools for agents over standard input and output.",
    },
    "Operate": {
        "up": "Start the page, the API and the Dagster UI.",
        "serve": "Start the page and the API.",
        "dagster": "Start the Dagster UI with its schedule.",
        "slack": "Answer questions in Slack.",
        "status": "Show what is published, what failed and what waits.",
        "doctor": "Find what keeps NornWeave from working.",
        "rollback": "Point a domain at an older generation.",
        "receipt": "Sign that nothing here holds a deleted document.",
        "access": "Say who may see a document, and why.",
        "token": "Make a token for a person in groups.",
    },
    "Judge": {
        "eval": "Measure retrieval on judged sets.",
        "evaluations": "Show or compare earlier measurements.",
    },
    "Deploy": {
        "publish": "Copy what is published to an object store.",
        "worker": "Encode or run syncs for other machines.",
        "key": "Print the public key of what is signed.",
        "roles": "Print the SQL of the roles in PostgreSQL.",
    },
}


def domain_named(text: str | Domain) -> Domain:
    """Return the domain with this name; a usage error suggests the most similar name."""
    from nornweave.config.load import did_you_mean

    names = [domain.value for domain in Domain]
    if text not in names:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(names)}{did_you_mean(text, names)}")
    return Domain(text)


DOMAIN: Any = {"parser": domain_named, "autocompletion": lambda: [domain.value for domain in Domain]}
"""What an option or argument that names a domain has besides its help."""
DomainsOption = Annotated[
    list[Domain] | None, typer.Option("--domain", metavar="D", help="Only this domain; may be repeated.", **DOMAIN)
]
SourcesOption = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="ID", help="Only this source; may be repeated.", show_default=False),
]


def settings_of(context: typer.Context) -> Settings:
    """Return the settings in the file of ``--config``. From now on, only this user may read new files."""
    from nornweave.connect.connectors import load_settings
    from nornweave.core.files.writing import check_folder, keep_private

    settings = load_settings(context.obj)
    if context.info_name != "doctor":  # it says more than the first that is wrong
        check_folder(settings.data_dir)
    keep_private(settings.data_dir, settings.file)
    return settings


def run(commands: Callable[[], object]) -> None:
    """Run a command line. Deliberate errors of NornWeave are printed as messages without a traceback.

    The exit code is 2 after an error in the configuration or a question, and 1 after other deliberate errors.
    """
    try:
        commands()
    except (ConfigError, QueryError) as error:
        messages.print(str(error), style="red", soft_wrap=True)
        sys.exit(2)
    except Exception as error:
        reason = error if isinstance(error, DiskFullError) else no_memory(error) or full_disk(error)
        if reason is None and not isinstance(error, NornWeaveError | ValueError):
            reason = not_writable(error)
            if reason is None:
                raise
        messages.print(str(reason or error), style="red", soft_wrap=True)
        sys.exit(1)


class GroupedCommands(TyperGroup):
    """The commands in groups, the most frequent ones first."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write a section for each group. Commands without a group come last."""
        grouped = {name for group in COMMAND_GROUPS.values() for name in group}
        others = {
            name: command.get_short_help_str(limit=60)
            for name in self.list_commands(ctx)
            if name not in grouped and (command := self.get_command(ctx, name))
        }
        for title, rows in (*COMMAND_GROUPS.items(), ("Others", others)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(list(rows.items()))
