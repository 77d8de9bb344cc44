"""``python -m lab.baseline``: record the figures that a refactoring must not change, compare them with a record."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from evals.code_version import code_version
from lab.baseline import measuring
from lab.baseline.comparing import NOISY, report, worse
from lab.baseline.measuring import Rows
from lab.conflicts.pairs import OWN, SHARED
from nornweave.ask.engine import Engine
from nornweave.connect.connectors import load_settings


def main(
    shared: Annotated[Path | None, typer.Option(help="Folder of judged sets and pairs from elsewhere.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder for the indexes; their vectors are used again.")] = None,
    written: Annotated[Path, typer.Option("--json", help="Where the record is written.")] = Path("build/baseline.json"),
    against: Annotated[Path | None, typer.Option(help="Compare with this record; exit 1 if a figure is worse.")] = None,
) -> None:
    """Measure judged sets, labelled pairs and latency; write them as JSON and print them as Markdown."""
    before = json.loads(against.read_text(encoding="utf-8")) if against else None
    with tempfile.TemporaryDirectory(prefix="nornweave-baseline-") as folder:
        record = measured(shared, keep or Path(folder))
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    typer.echo(report(record, before))
    raise typer.Exit(1 if before and any(worse(before["parts"], record["parts"])) else 0)


def measured(shared: Path | None, folder: Path) -> dict[str, Any]:
    """Measure what there is material for; ``folder`` is where the indexes go."""
    parts: dict[str, Rows] = {}
    seconds: dict[str, int] = {}
    record: dict[str, Any] = {
        "code": code_version(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the start",
        "queries": "all of each set, no sample",
        "seconds": seconds,
        "parts": parts,
    }
    for corpus in (measuring.example_corpus(), *([measuring.shared_corpus(shared)] if shared else [])):
        with _step(f"index of {corpus.name}", seconds):
            config = corpus.index(folder / corpus.name.replace(" ", "-"))
        with _step(corpus.name, seconds), Engine(load_settings(config), watch=False) as engine:
            record[f"index of {corpus.name}"] = measuring.index_facts(engine)
            parts[corpus.name] = measuring.rankings(engine, corpus.sets, _say_progress)
    with _step("labelled pairs", seconds):
        parts["labelled pairs"] = measuring.conflict_pairs(OWN) | measuring.duplicate_pairs()
        if shared:
            parts["labelled pairs from elsewhere"] = measuring.conflict_pairs(shared / SHARED)
    with _step(NOISY, seconds):
        parts[NOISY] = measuring.serving(config, corpus.sets)
    return record


@contextmanager
def _step(name: str, seconds: dict[str, int]) -> Iterator[None]:
    """Say that a step begins, and note how long it takes."""
    typer.echo(name, err=True)
    started = time.perf_counter()
    yield
    seconds[name] = round(time.perf_counter() - started)


def _say_progress(step: str, done: int, total: int) -> None:
    if done % 100 == 0 or done == total:
        typer.echo(f"  {step}: {done} of {total}", err=True)


if __name__ == "__main__":
    typer.run(main)
