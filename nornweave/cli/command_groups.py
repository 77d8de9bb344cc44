"""``nornweave --help``: the commands in groups, with a sentence each."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

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
