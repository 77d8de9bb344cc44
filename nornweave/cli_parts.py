"""What the commands share: where they print, their common options, how the configuration is read."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from nornweave.settings import Settings, load_settings
from nornweave.types import Domain

# Tables keep their columns on narrow terminals and in pipes: a wrapped line can be read, a cropped number cannot.
NARROWEST = 120
output = Console(width=max(NARROWEST, Console().width))
messages = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")]
DomainsOption = Annotated[
    list[Domain] | None, typer.Option("--domain", metavar="D", help="Only this domain; may be repeated.")
]


def settings_of(context: typer.Context) -> Settings:
    """Read the configuration that ``--config`` names."""
    return load_settings(context.obj)


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()
