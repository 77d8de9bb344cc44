"""Measure what a refactoring must not change: judged sets, labelled pairs, latency and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import yaml

from evals.judged_files import read_judgments
from evals.judgments import JudgedSet
from evals.results import ScopeResult
from evals.runs import Progress, SetToRun, evaluate_all
from evals.searching import PathSearcher
from lab import duplicates
from lab.bench.fusing import SOURCES, asked, judged_sources, server, synced
from lab.conflicts.pairs import judge, load_pairs, rows
from nornweave.ask.engine import Engine
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import digest
from nornweave.improve.records import LAST_STAGE

Rows: TypeAlias = dict[str, dict[str, float]]
"""A part of the record: by row (a judged set in a scope, a split, …) its figures by name."""

REPOSITORY = Path(__file__).parents[2]
MEASURES = {"Recall@10": "Recall@10", "MRR": "RR@10", "nDCG@10": "nDCG@10"}
SERVED_QUERIES = 200
WARM_UP = 20


@dataclass(frozen=True, slots=True)
class JudgedCorpus:
    """Sources, as in ``nornweave.yaml`` with absolute paths, and the judged sets that are run against them."""

    name: str
    sources: tuple[dict[str, Any], ...]
    sets: tuple[JudgedSet, ...]

    def index(self, folder: Path) -> Path:
        """Index the sources with ``nornweave sync --full`` and return the configuration.

        Everything is read and chunked by this code, also where ``folder`` has an index: only its vectors are reused.
        """
        return synced(folder, self.sources, "--full", stdout=2)  # the tables of the sync are progress: to stderr


def example_corpus() -> JudgedCorpus:
    """Return the example platform and the golden sets.

    The project's own code and documentation, which ``nornweave.yaml`` indexes as well, are left out: a refactoring
    changes these documents, and the figures with them.
    """
    configured = yaml.safe_load((REPOSITORY / "nornweave.yaml").read_text(encoding="utf-8"))["sources"]
    examples = (one for one in configured if str(one["path"]).startswith("examples/"))
    sources = tuple(
        {key: str(REPOSITORY / value) if key in {"path", "metadata"} else value for key, value in one.items()}
        for one in examples
    )
    folders = sorted(file.parent for file in (REPOSITORY / "evals" / "golden").glob("*/queries.jsonl"))
    return JudgedCorpus("golden sets", sources, tuple(map(read_judgments, folders)))


def shared_corpus(shared: Path) -> JudgedCorpus:
    """Return the judged sets from elsewhere; raises ``JudgmentError`` where one is missing."""
    sets = tuple(read_judgments(shared / name) for name in SOURCES)
    return JudgedCorpus("judged sets", tuple(judged_sources(shared)), sets)


def rankings(engine: Engine, sets: Sequence[JudgedSet], progress: Progress | None = None) -> Rows:
    """Run judged sets in their own domain, with and without filters, and over all: the figures of what is served."""
    results = evaluate_all(PathSearcher(engine.path), [SetToRun(one) for one in sets], progress=progress)
    return {
        f"{one.name}, {run.scope.value}": {"queries": one.measured, "failed": len(run.failures), **_means(run)}
        for one in results
        for run in one.scopes
    }


def _means(run: ScopeResult) -> dict[str, float]:
    served = run.stage(LAST_STAGE)
    return {name: served.metrics[measure].mean for name, measure in MEASURES.items()} if served else {}


def index_facts(engine: Engine) -> dict[str, str]:
    """Return what each domain answers from: documents, chunks, encoder."""
    facts = {}
    for domain, agent in engine.agents.items():
        with agent.generation.use(OPERATOR) as served:
            size = f"{served.document_count} documents, {served.chunk_count} chunks"
            facts[domain.value] = f"{size}, {served.meta['encoder']}"
    return facts


def conflict_pairs(file: Path) -> Rows:
    """Measure conflict detection on labelled pairs: on all, and on each kind or split."""
    measured = rows(list(judge(load_pairs(file))))
    return {
        f"conflicts, {name}": _of_pairs(
            duplicates.MeasuredPairs(
                right=one.recall.hits,
                wrong=one.precision.of - one.recall.hits,
                missed=one.recall.of - one.recall.hits,
            )
        )
        for name, one in measured
    }


def duplicate_pairs() -> Rows:
    """Measure deduplication on labelled pairs by split: by words alone, and with vectors of the default model."""
    pairs = duplicates.read_pairs()
    embedded = zip(pairs, duplicates.embed(pairs), strict=True)
    runs = {"words": map(duplicates.judge, pairs), "words and vectors": (duplicates.judge(*one) for one in embedded)}
    found: Rows = {}
    for name, judged in runs.items():
        outcomes = list(judged)
        for split in ("dev", "test"):
            one = duplicates.measure([each for each in outcomes if each.pair.split == split])
            found[f"duplicates by {name}, {split}"] = _of_pairs(one)
    return found


def _of_pairs(one: duplicates.MeasuredPairs) -> dict[str, float]:
    positive = one.right + one.missed
    return {"positive": positive, "precision": one.precision, "recall": one.recall, "F1": one.f1}


def serving(config: Path, sets: Sequence[JudgedSet]) -> Rows:
    """Time recall of one domain and ``POST /query`` with one client, each in processes of its own.

    Returns:
        Milliseconds, and MB of all serving processes; the rows name the index, as a larger one takes longer.
    """
    command = [sys.executable, "-m", "lab.bench.serving", str(config), str(SERVED_QUERIES)]
    recall = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    texts = sorted({query.text for one in sets for query in one.queries}, key=digest)[: WARM_UP + SERVED_QUERIES]
    with server(config) as (url, process):
        asked(url, texts[:WARM_UP], 1)
        answered = asked(url, texts[WARM_UP:], 1)
        serving_processes = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        memory = sum(one.memory_full_info().pss for one in serving_processes) / 1e6
    index = config.parent.name
    return {
        f"recall of code, {index}": {"p50 ms": recall["p50_ms"], "p95 ms": recall["p95_ms"]},
        f"POST /query, {index}": {"p50 ms": answered["p50_ms"], "p95 ms": answered["p95_ms"], "memory MB": memory},
    }
