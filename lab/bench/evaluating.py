"""How long it takes to evaluate, without a model reranker."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from evals.judged_files import read_judgments
from evals.results import ResultScope
from evals.runs import evaluate
from evals.searching import PathSearcher
from lab.bench.fusing import SOURCES, workspace
from nornweave.ask.engine import Engine
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain

SET = "code-cosqa"
SCOPES = ((ResultScope.DOMAIN,), (ResultScope.EVERYWHERE,))
TIMES = 3


def print_evaluating(shared: Path, work: Path) -> None:
    """Print seconds for the 500 queries of CoSQA on its 6,299 chunks, alone and beside the other three domains."""
    console = Console(width=120)
    if not all((shared / name).is_dir() for name in SOURCES):
        console.print(f"evaluation: no judged sets in {shared}, nothing to measure on")
        return
    settings = load_settings(workspace(shared, work))
    judged = read_judgments(shared / SET)
    table = Table("served", "scope", "queries", f"seconds, {TIMES} times", "ms a query, p50", title="evaluating CoSQA")
    for served in ([Domain.CODE], None):
        with Engine(settings, served, watch=False) as engine:
            for scopes in SCOPES:
                seconds, p50 = [], 0.0
                for _ in range(TIMES):
                    started = time.perf_counter()
                    result = evaluate(PathSearcher(engine.path), judged, domains=[Domain.CODE], scopes=scopes)
                    seconds.append(f"{time.perf_counter() - started:.1f}")
                    p50 = result.scopes[0].p50_ms or 0.0
                names = ("code alone" if served else "four domains", scopes[0].value, str(result.measured))
                table.add_row(*names, ", ".join(seconds), f"{p50:.1f}")
    console.print(table)
