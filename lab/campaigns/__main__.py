"""``python -m lab.campaigns``: do to an installation what must not harm it, and print what became of it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from lab.campaigns.beginning import kill_beginnings
from lab.campaigns.cloning import kill_clones
from lab.campaigns.damaging import damage_files
from lab.campaigns.fetching import kill_readings
from lab.campaigns.filling import fill_disks
from lab.campaigns.killing import kill_syncs
from lab.campaigns.offering import offer_sources
from lab.campaigns.publishing import publish_while_reading
from lab.campaigns.report import Order, Tally, as_markdown
from lab.campaigns.sharing import share_installation
from lab.campaigns.travelling import kill_travellers

# Per campaign what it does, and how often in full.
CAMPAIGNS: Mapping[str, tuple[Callable[[Order], Tally], int]] = {
    "kill": (kill_syncs, 200),
    "first": (kill_beginnings, 300),
    "remote": (kill_readings, 200),
    "clone": (kill_clones, 200),
    "disk-full": (fill_disks, 100),
    "publish": (publish_while_reading, 1000),
    "together": (share_installation, 50),
    "damage": (damage_files, 200),
    "travel": (kill_travellers, 200),
    "sources": (offer_sources, 2000),
}


def main(
    only: Annotated[str, typer.Option(help=f"Names with commas between them: {', '.join(CAMPAIGNS)}.")] = "",
    runs: Annotated[int | None, typer.Option(help="How often; in full unless given.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Decides what the documents say, and when and where harm is done.")] = 1,
    storage: Annotated[str, typer.Option(help="For kill: the PostgreSQL server that stores the documents.")] = "",
) -> None:
    """Run campaigns and print a table; exit 1 when something happened that must not."""
    names = [name.strip() for name in only.split(",") if name.strip()] or list(CAMPAIGNS)
    if unknown := [name for name in names if name not in CAMPAIGNS]:
        raise typer.BadParameter(f"{unknown[0]!r}; expected names of: {', '.join(CAMPAIGNS)}", param_hint="--only")
    tallies = []
    for name in names:
        campaign, usual = CAMPAIGNS[name]
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"nornweave-{name}-") as folder:
            tallies.append(campaign(Order(Path(folder), seed, runs or usual, storage)))
        typer.echo(f"{name}: {time.monotonic() - started:.0f} s", err=True)
    typer.echo(as_markdown(tallies))
    sys.exit(1 if any(tally.trouble for tally in tallies) else 0)


if __name__ == "__main__":
    typer.run(main)
