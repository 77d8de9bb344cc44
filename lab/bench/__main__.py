"""``make bench``: print the tables of ``docs/figures.md``, on whatever real documents are there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from lab.bench import (
    corpora,
    encoding,
    fusing,
    large,
    recalling,
    segments,
    syncing,
)

Tables: TypeAlias = dict[str, Callable[[], None]]


def main(
    shared: Annotated[Path, typer.Option(help="Judged sets, if there are any.")] = Path("../shared/evals"),
    documents: Annotated[int, typer.Option(help="Files of the installed packages to sync.")] = 600,
    only: Annotated[
        str,
        typer.Option(help="encoding, sync, memory, fusion, recall; only if named: large, segments."),
    ] = "",
    corpus: Annotated[
        list[Path] | None, typer.Option(help="Folder or git directory that `large` reads; several may be given.")
    ] = None,
    made_up: Annotated[int, typer.Option(help="Documents of `segments`, of three chunks each.")] = 40_000,
    keep: Annotated[Path | None, typer.Option(help="Folder for the indexes of recall and fusion, used again.")] = None,
) -> None:
    """Print the benchmark tables; takes about 30 minutes on two cores, a million chunks an hour more."""
    with tempfile.TemporaryDirectory(prefix="nornweave-bench-") as temporary:
        folder = Path(temporary)
        kept = keep or folder
        usual: Tables = {
            "encoding": encoding.print_encoding,
            "sync": lambda: syncing.print_syncs(shared, folder, documents),
            "memory": lambda: syncing.print_memory(folder),
            "fusion": lambda: fusing.print_fusion(shared, kept / "fusion"),
            "recall": lambda: recalling.print_recall(kept / "recall"),
        }
        tables = {**usual, **_if_named(kept, corpus or [corpora.site_packages()], made_up)}
        if only and only not in tables:
            raise typer.BadParameter(f"{only!r} is not a part; parts: {', '.join(tables)}", param_hint="--only")
        for name in [only] if only else usual:
            tables[name]()


def _if_named(kept: Path, corpus: list[Path], made_up: int) -> Tables:
    return {
        "large": lambda: large.print_large(kept / "large", corpus),
        "segments": lambda: segments.print_segments(kept / "segments", made_up),
    }


if __name__ == "__main__":
    typer.run(main)
