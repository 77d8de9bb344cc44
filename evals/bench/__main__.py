"""``make bench``: print the tables of ``docs/figures.md``, on whatever real documents are there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from evals.bench import (
    access,
    encoding,
    evaluating,
    fetching,
    fusing,
    pages,
    precision,
    ranking,
    reading,
    recalling,
    streaming,
    syncing,
    tuning,
)
from nornweave.models.conversion import machine_cache


def main(
    shared: Annotated[Path, typer.Option(help="Judged sets, if there are any.")] = Path("../shared/evals"),
    documents: Annotated[int, typer.Option(help="Files of the installed packages to sync.")] = 600,
    only: Annotated[
        str,
        typer.Option(
            help="encoding, reading, sync, memory, fusion, streaming, ranking, evaluation, recall; "
            "only if named: access, precision, tuning, hnsw, large, pages, remote."
        ),
    ] = "",
    copies: Annotated[int, typer.Option(help="How many times 100,000 chunks `large` has.")] = 10,
    url: Annotated[
        str, typer.Option(help="Server over the example corpus that `pages` asks.")
    ] = "http://127.0.0.1:8082",
    keep: Annotated[Path | None, typer.Option(help="Folder for the indexes of recall and fusion, used again.")] = None,
) -> None:
    """Print the benchmark tables; takes about 30 minutes on two cores, recall at a million chunks an hour more."""
    with tempfile.TemporaryDirectory(prefix="nornweave-bench-") as temporary:
        folder = Path(temporary)
        kept = keep or folder
        usual: dict[str, Callable[[], None]] = {
            "encoding": encoding.print_encoding,
            "reading": lambda: reading.print_reading(shared),
            "sync": lambda: syncing.print_syncs(shared, folder, documents),
            "memory": lambda: syncing.print_memory(folder),
            "fusion": lambda: fusing.print_fusion(shared, kept / "fusion"),
            "streaming": lambda: streaming.print_streaming(kept / "streaming"),
            "ranking": lambda: ranking.print_ranking(shared, kept / "fusion"),
            "evaluation": lambda: evaluating.print_evaluating(shared, kept / "fusion"),
            "recall": lambda: recalling.print_recall(kept / "recall", copies=0),
        }
        if_named: dict[str, Callable[[], None]] = {
            "access": lambda: access.print_access(kept / "access"),
            "precision": lambda: precision.print_precision(shared, machine_cache(folder)),
            "tuning": lambda: tuning.print_tuning(shared, kept / "fusion"),
            "hnsw": lambda: recalling.print_hnsw(kept / "recall"),
            "pages": lambda: pages.print_pages(url),
            "remote": fetching.print_fetching,
            "large": lambda: recalling.print_recall(kept / "recall", copies=copies),
        }
        tables = {**usual, **if_named}
        if only and only not in tables:
            raise typer.BadParameter(f"{only!r} is not a part; parts: {', '.join(tables)}", param_hint="--only")
        for name in [only] if only else usual:
            tables[name]()


if __name__ == "__main__":
    typer.run(main)
