"""A million real chunks: a folder or a git directory is ingested with a cheap encoder, and served by two processes.

A real model would take hours on two cores (``--only encoding`` measures it), and what a search costs does not depend on
what the vectors say. What it finds is measured on vectors of the real model (``--only hnsw``).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport
from nornweave.ingest.wiring import domain_parts

DIMENSIONS = 384
WORKERS = 2
_QUERIES = 300
_CHANGED = 100
_TEXTS = ("py", "pyi", "c", "h", "cc", "cpp", "hpp", "go", "rs", "java", "js", "ts", "kt", "rb", "php", "cs", "swift")


def print_large(work: Path, corpus: Sequence[Path]) -> None:
    """Print what a large corpus costs to build, to serve by two processes at once, and to change.

    Args:
        work: where the index is kept; one that is there is used, and changed.
        corpus: folders of texts, and git directories, whose newest commit is read.
    """
    config = work / "nornweave.yaml"
    if not config.exists():
        _configure(config, [_unpacked(folder, work) for folder in corpus])
        _changing(work, 0)
    built = _sync(config)
    processes = [_serving(config) for _ in range(WORKERS)]
    rows = [json.loads(process.communicate()[0]) for process in processes]
    rows.append(json.loads(_serving(config).communicate()[0]))
    _changing(work, int(time.time()))
    changed = _sync(config)
    console = Console(width=140)
    console.print(_table(rows))
    console.print(f"build, vectors of hashed words included: {_times(built)}")
    console.print(f"{_CHANGED} changed documents: {_times(changed)}")


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=f"recall over {rows[0]['chunks']:,} chunks, four sources, 2 cores", title_justify="left")
    columns = ("start_s", "p50_ms", "p95_ms", "queries_per_s", "memory_mb", "pss_mb", "private_mb")
    for name in ("process", *columns):
        table.add_column(name.replace("_", " "), justify="right")
    names = [*(f"{number} of {WORKERS}, together" for number in range(1, WORKERS + 1)), "one alone"]
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *(f"{row[column]:,.1f}" for column in columns))
    return table


def _serving(config: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "lab.bench.serving", str(config), str(_QUERIES)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _sync(config: Path) -> SyncReport:
    return run(domain_parts(load_settings(config), Domain.CODE), SyncOptions(run_id="bench"))


def _times(report: SyncReport) -> str:
    steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in report.step_seconds.items() if seconds >= 0.1)
    return f"{report.seconds:.1f} s ({steps})"


def _changing(work: Path, number: int) -> None:
    """Write the documents that are changed."""
    folder = work / "changing"
    folder.mkdir(parents=True, exist_ok=True)
    for place in range(_CHANGED):
        text = (
            f'def changed_{place}():\n    """Return what changed in round {number}."""\n    return {number + place}\n'
        )
        (folder / f"changed_{place}.py").write_text(text, encoding="utf-8")


def _unpacked(folder: Path, work: Path) -> Path:
    """Return the folder itself, or the newest commit of a git directory."""
    if not (folder / "HEAD").is_file():
        return folder.resolve()
    target = work / "unpacked" / folder.resolve().parent.name
    target.mkdir(parents=True)
    with subprocess.Popen(["git", "-C", str(folder), "archive", "HEAD"], stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "-C", str(target)], stdin=archive.stdout, check=True)
    return target


def _configure(config: Path, folders: Sequence[Path]) -> None:
    include = [f"**/*.{ending}" for ending in _TEXTS]
    sources = [
        {"id": f"corpus-{number}", "domain": "code", "type": "files", "path": str(folder), "include": include}
        for number, folder in enumerate(folders)
    ]
    sources.append({"id": "changing", "domain": "code", "type": "files", "path": "changing"})
    code = {
        "chunking": {"max_chunk_tokens": 256},
        "embedding": {"model": f"hash:{DIMENSIONS}", "dimensions": DIMENSIONS},
        "reranking": {"model": None},
    }
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"data_dir": "var", "sources": sources, "domains": {"code": code}}), encoding="utf-8")
