"""Recall over 100,000 chunks of real code, as it is served: latency, throughput, memory, start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.bench.corpora import site_packages

# 101,853 chunks of library code, installed with torch and scikit-learn.
PACKAGES = ("sympy", "scipy", "numpy")
_QUERIES = 300


def print_recall(work: Path) -> None:
    """Print the tables of recall; reuses the index in ``work`` if there is one."""
    measured = _serve(_workspace(work))
    shown = {
        "chunks": f"{measured['chunks']:,}",
        "start s": f"{measured['start_s']:.1f}",
        "p50 ms": f"{measured['p50_ms']:.1f}",
        "p95 ms": f"{measured['p95_ms']:.1f}",
        "2 clients q/s": f"{measured['queries_per_s']:.0f}",
        "memory MB": f"{measured['memory_mb']:,.0f}",
        "torch": "loaded" if measured["torch"] else "not loaded",
    }
    table = Table(*shown, title="recall, four sources, query encoding included, 2 cores", title_justify="left")
    table.add_row(*shown.values())
    parts = Table("step", "p50", "p95", title="each step alone, ms", title_justify="left")
    for step, (median, late) in measured["steps"].items():
        parts.add_row(step, f"{median:.2f}", f"{late:.2f}")
    console = Console(width=140)
    console.print(table)
    console.print(parts)


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
