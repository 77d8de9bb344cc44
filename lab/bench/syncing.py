"""Cold sync, a sync without changes, a sync of 1 % changes, and peak memory: ``nornweave sync`` as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.bench.corpora import Corpus, functions_corpus, judged_sets, packages_corpus
from nornweave.models.encoders import load_encoder
from nornweave.models.encoders.loading import machine_cache
from nornweave.models.folders import MINILM

CHANGED_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class TimedSync:
    """One ``nornweave sync``: its report, the wall time of the process, and the most memory it held."""

    report: dict[str, Any]
    wall_s: float
    peak_mb: float

    @property
    def sync_s(self) -> float:
        """Return the seconds inside the sync itself."""
        return float(self.report["seconds"])

    def step(self, name: str) -> float:
        """Return the seconds of one step."""
        return float(self.report["step_seconds"].get(name, 0.0))


def bench_corpus(corpus: Corpus, folder: Path) -> tuple[TimedSync, TimedSync, TimedSync]:
    """Return a cold sync, one without changes, and one after 1 % of the documents changed."""
    config = folder / "nornweave.yaml"
    config.write_text(
        json.dumps(
            {
                "data_dir": str(folder / "var"),
                "sources": [{"id": "bench", "domain": corpus.domain, "type": "files", "path": str(corpus.folder)}],
            }
        ),
        encoding="utf-8",
    )
    cold = _sync(config, corpus)
    same = _sync(config, corpus)
    _change(corpus)
    return cold, same, _sync(config, corpus)


def _measure_speeds(work: Path) -> None:
    """Measure once what this CPU encodes fastest in, which no sync that is timed should do."""
    load_encoder(MINILM, cache_dir=machine_cache(work / "models"))


def _sync(config: Path, corpus: Corpus) -> TimedSync:
    started = time.perf_counter()
    command = [sys.executable, "-m", "nornweave.cli", "--config", str(config), "sync", "--json"]
    with tempfile.TemporaryFile() as output, subprocess.Popen(command, stdout=output) as process:
        peak_mb = _peak_memory(process)
        if process.returncode:
            raise RuntimeError(f"nornweave sync ended with exit code {process.returncode}")
        output.seek(0)
        report = json.load(output)[corpus.domain]
    return TimedSync(report, time.perf_counter() - started, peak_mb)


def _peak_memory(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; return the most memory it held, in MB.

    Asked of the process while it runs (``VmHWM``): what ``wait4`` says begins with the size of the forking parent.
    """
    status = Path(f"/proc/{process.pid}/status")
    peak = 0.0
    while process.poll() is None:
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                peak = float(line.split()[1]) / 1024
        time.sleep(0.05)
    return peak


def _change(corpus: Corpus) -> None:
    """Append a line to every hundredth document, and a comment sign where it is code."""
    files = sorted(file for file in corpus.folder.rglob("*") if file.is_file())
    for file in files[:: round(1 / CHANGED_SHARE)]:
        with file.open("a", encoding="utf-8") as stream:
            stream.write("\n# changed for the benchmark\n")


def print_syncs(shared: Path, work: Path, documents: int) -> None:
    """Print the table of cold, unchanged and slightly changed syncs."""
    table = Table(title="nornweave sync, files, 2 cores", title_justify="left")
    for name in ("corpus", "documents", "chunks", "cold s", "encoder share", "rest, chunks/s", "same again s",
                 "1 % changed / cold", "peak MB"):  # fmt: skip
        table.add_column(name, justify="left" if name == "corpus" else "right")
    _measure_speeds(work)
    corpora = [*judged_sets(shared, work), packages_corpus(work, documents)]
    for corpus in corpora:
        cold, same, changed = bench_corpus(corpus, work / f"{corpus.name}-index")
        table.add_row(corpus.name, *_figures(cold, same, changed))
    Console(width=140).print(table)


def _figures(cold: TimedSync, same: TimedSync, changed: TimedSync) -> tuple[str, ...]:
    encoder = cold.step("encoder")
    return (
        f"{cold.report['added']:,}",
        f"{cold.report['chunks']:,}",
        f"{cold.sync_s:.1f}",
        f"{encoder / cold.sync_s:.0%}",
        f"{cold.report['chunks'] / max(cold.sync_s - encoder, 1e-9):,.0f}",
        f"{same.sync_s:.2f}",
        f"{changed.sync_s / cold.sync_s:.1%}",
        f"{cold.peak_mb:,.0f}",
    )


def print_memory(work: Path) -> None:
    """Print the table of peak memory by number of documents."""
    _measure_speeds(work)
    table = Table(title="peak memory of a cold sync", title_justify="left")
    for name in ("documents", "chunks", "peak MB", "ratio"):
        table.add_column(name, justify="right")
    smaller: float | None = None
    for documents in (5_000, 20_000):
        corpus = functions_corpus(work, documents)
        cold, _, _ = bench_corpus(corpus, work / f"memory-{documents}")
        smaller = smaller or cold.peak_mb
        table.add_row(
            f"{documents:,}", f"{cold.report['chunks']:,}", f"{cold.peak_mb:,.0f}", f"{cold.peak_mb / smaller:.2f}"
        )
    Console(width=140).print(table)
