"""What the commands share: consoles, common options, reading the configuration."""

from __future__ import annotations

from typing import Annotated

import typer

from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.files.private_folder import keep_private
from nornweave.core.text.terminal import Terminal
from nornweave.core.types import Domain

# Tables keep their columns on narrow terminals and in pipes: a wrapped line can be read, a cropped number cannot.
NARROWEST = 120
output = Terminal(width=max(NARROWEST, Terminal().width))
messages = Terminal(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
DomainsOption = Annotated[
    list[Domain] | None, typer.Option("--domain", metavar="D", help="Only this domain; may be repeated.")
]
SourcesOption = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="ID", help="Only this source; may be repeated.", show_default=False),
]


def settings_of(context: typer.Context) -> Settings:
    """Load the configuration of ``--config``, and make new files readable only by this user."""
    settings = load_settings(context.obj)
    keep_private(settings.data_dir, settings.file)
    return settings
