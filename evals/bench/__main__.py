"""``make bench``: print the tables of ``docs/figures.md``, on whatever real documents are there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from evals.bench import encoding, evaluating, fusing, precision, ranking, reading, recalling, syncing, tuning
from nornweave.models.conversion import machine_cache


def main(
    shared: Annotated[Path, typer.Option(help="Judged sets, if there are any.")] = Path("../shared/evals"),
    documents: Annotated[int, typer.Option(help="Files of the installed packages to sync.")] = 600,
    only: Annotated[
        str,
        typer.Option(
            help="encoding, reading, sync, memory, fusion, ranking, evaluation, recall; "
            "only if named: precision, tuning, hnsw, large."
        ),
    ] = "",
    copies: Annotated[int, typer.Option(help="How many times 100,000 chunks `large` has.")] = 10,
    keep: Annotated[Path | None, typer.Option(help="Folder for the indexes of recall and fusion, used again.")] = None,
) -> None:
    """Print the benchmark tables; takes about 30 minutes on two cores, recall at a million chunks an hour more."""
    if only in {"", "encoding"}:
        encoding.print_encoding()
    if only in {"", "reading"}:
        reading.print_reading(shared)
    with tempfile.TemporaryDirectory(prefix="nornweave-bench-") as folder:
        if only in {"", "sync"}:
            syncing.print_syncs(shared, Path(folder), documents)
        if only in {"", "memory"}:
            syncing.print_memory(Path(folder))
        if only in {"", "fusion"}:
            fusing.print_fusion(shared, (keep or Path(folder)) / "fusion")
        if only in {"", "ranking"}:
            ranking.print_ranking(shared, (keep or Path(folder)) / "fusion")
        if only in {"", "evaluation"}:
            evaluating.print_evaluating(shared, (keep or Path(folder)) / "fusion")
        if only == "precision":
            precision.print_precision(shared, machine_cache(Path(folder)))
        if only == "tuning":
            tuning.print_tuning(shared, (keep or Path(folder)) / "fusion")
        if only in {"", "recall", "large"}:
            recalling.print_recall(keep or Path(folder) / "recall", copies=copies if only == "large" else 0)
        if only == "hnsw":
            recalling.print_hnsw(keep or Path(folder) / "recall")


if __name__ == "__main__":
    typer.run(main)
