"""``make bench``: every table of the README, on whatever real documents are there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from evals.bench import encoding, syncing


def main(
    shared: Annotated[Path, typer.Option(help="Judged sets, if there are any.")] = Path("../shared/evals"),
    documents: Annotated[int, typer.Option(help="Files of the installed packages to sync.")] = 600,
    only: Annotated[str, typer.Option(help="encoding, sync or memory; everything if left out.")] = "",
) -> None:
    """Print the benchmark tables; takes about 15 minutes on two cores."""
    if only in {"", "encoding"}:
        encoding.print_encoding()
    with tempfile.TemporaryDirectory(prefix="nornweave-bench-") as folder:
        if only in {"", "sync"}:
            syncing.print_syncs(shared, Path(folder), documents)
        if only in {"", "memory"}:
            syncing.print_memory(Path(folder))


if __name__ == "__main__":
    typer.run(main)
