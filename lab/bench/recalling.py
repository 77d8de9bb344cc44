"""Recall over 100,000 chunks of real code, as it is served: latency, throughput, memory, start."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from lab.bench.corpora import site_packages
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.index.index import Index
from nornweave.index.port import Mask, Numbers, Vectors
from nornweave.index.searching.generation import open_generation
from nornweave.index.searching.ranked_chunks import best
from nornweave.index.wiring import file_store_of
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

# 101,853 chunks of library code, installed with torch and scikit-learn.
PACKAGES = ("sympy", "scipy", "numpy")
_QUERIES = 300


def print_recall(work: Path) -> None:
    """Print the tables of recall; reuses the index in ``work`` if there is one."""
    rows = [("exact", _serve(_workspace(work)))]
    table = Table(title="recall, four sources, query encoding included, 2 cores", title_justify="left")
    for name in ("index", "chunks", "start s", "p50 ms", "p95 ms", "2 clients q/s", "memory MB", "torch"):
        table.add_column(name, justify="left" if name == "index" else "right")
    for name, measured in rows:
        table.add_row(
            name,
            f"{measured['chunks']:,}",
            f"{measured['start_s']:.1f}",
            f"{measured['p50_ms']:.1f}",
            f"{measured['p95_ms']:.1f}",
            f"{measured['queries_per_s']:.0f}",
            f"{measured['memory_mb']:,.0f}",
            "loaded" if measured["torch"] else "not loaded",
        )
    console = Console(width=140)
    console.print(table)
    for name, measured in rows:
        parts = Table(title=f"{name}: each step alone, ms", title_justify="left")
        for column in ("step", "p50", "p95"):
            parts.add_column(column, justify="left" if column == "step" else "right")
        for step, (median, late) in measured["steps"].items():
            parts.add_row(step, f"{median:.2f}", f"{late:.2f}")
        console.print(parts)


def print_hnsw(work: Path) -> None:
    """Print how much of the exact answer one byte a component and the ``vss`` index find, how fast, and its build."""
    config = _workspace(work)
    indexed, build_s = _indexed(config, work / "hnsw")
    with open_generation(_published(config)) as matrix, open_generation(_published(indexed)) as index:
        chosen = np.sort(np.random.default_rng(7).choice(matrix.chunk_count, _QUERIES, replace=False)).astype(np.int32)
        # Near real vectors, though not on them: a query is no chunk.
        vectors = matrix.vectors(chosen) + matrix.vectors(np.roll(chosen, 1)) / 2
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        within = np.arange(matrix.size) % 2 == 0
        everything = np.arange(matrix.chunk_count, dtype=np.int32)
        table = Table(title=f"dense search over {matrix.chunk_count:,} chunks", title_justify="left")
        for name in ("index", "filter", "recall@10", "p50 ms"):
            table.add_column(name, justify="right")
        for name, generation in (("matrix", matrix), ("vss", index)):
            for label, mask in (("none", None), ("half", within)):
                allowed = everything if mask is None else np.flatnonzero(mask).astype(np.int32)
                shares, times = zip(*(_search(generation, vector, mask, allowed) for vector in vectors), strict=True)
                table.add_row(name, label, f"{np.mean(shares):.4f}", f"{np.median(times):.2f}")
    Console(width=140).print(table)
    Console().print(f"a generation with the vss index, built from what is chunked and encoded: {build_s:.0f} s")


def _search(generation: Index, vector: Vectors, mask: Mask | None, allowed: Numbers) -> tuple[float, float]:
    """Return the share of the ten nearest that is found, and in how many milliseconds."""
    exact = best(generation.similarities(vector, allowed), 10, allowed).numbers
    started = time.perf_counter()
    hits = generation.dense(vector, 10, mask)
    taken = (time.perf_counter() - started) * 1000
    return len(np.intersect1d(exact, hits.numbers)) / 10, taken


def _indexed(config: Path, work: Path) -> tuple[Path, float]:
    """Publish the same chunks and vectors with the ``vss`` index; return the configuration, and the seconds."""
    target = work / "nornweave.yaml"
    work.mkdir(parents=True, exist_ok=True)
    shutil.copytree(config.parent / "var" / "domains", work / "var" / "domains", dirs_exist_ok=True)
    document = json.loads(config.read_text(encoding="utf-8"))
    document.setdefault("domains", {}).setdefault("code", {})["storage"] = {"vector_index": "hnsw"}
    target.write_text(json.dumps(document), encoding="utf-8")
    started = time.perf_counter()
    run(domain_parts(load_settings(target), Domain.CODE), SyncOptions(run_id="bench"))
    return target, time.perf_counter() - started


def _published(config: Path) -> Path:
    store = file_store_of(load_settings(config), Domain.CODE)
    current = store.current()
    if current is None:
        raise RuntimeError(f"{config}: nothing is published")
    return store.files.data_files(current)[0].path


def _workspace(work: Path) -> Path:
    config = work / "nornweave.yaml"
    if not config.exists():
        work.mkdir(parents=True, exist_ok=True)
        source = {
            "id": "packages",
            "domain": "code",
            "type": "files",
            "path": str(site_packages()),
            "include": [f"{name}/**/*.py" for name in PACKAGES],
        }
        config.write_text(json.dumps({"data_dir": "./var", "sources": [source]}), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "nornweave.cli", "--config", str(config), "sync"], check=True)
    return config


def _serve(config: Path) -> dict[str, Any]:
    """Measure in a process that does nothing else."""
    command = [sys.executable, "-m", "lab.bench.serving", str(config), str(_QUERIES)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))
