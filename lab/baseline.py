"""``python -m lab.baseline``: record the figures that a refactoring must not change, compare them with a record."""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
import yaml

from evals.history import code_version
from evals.judged_files import read_judgments
from evals.judgments import JudgedSet
from evals.results import ScopeResult
from evals.runs import Progress, SetToRun, evaluate_all
from evals.searching import PathSearcher
from lab import duplicates
from lab.bench.fusing import SOURCES, judged_sources, synced
from lab.conflicts.pairs import OWN, SHARED, judge, load_pairs, rows
from nornweave.ask.engine import Engine
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.improve.records import LAST_STAGE

Rows: TypeAlias = dict[str, dict[str, float]]
"""A part of the record: by row (a judged set in a scope, a split, …) its figures by name."""

REPOSITORY = Path(__file__).parents[1]
MEASURES = {"Recall@10": "Recall@10", "MRR": "RR@10", "nDCG@10": "nDCG@10"}
MAY_FALL = {"Recall@10": 0.005, "MRR": 0.005, "precision": 0.0, "recall": 0.0}
"""Figures that may not fall by more than this. All others are only shown."""
MUST_STAY = ("queries", "positive")
"""Counts of what was measured: figures of other queries or pairs cannot be compared."""
SUMMED = ("Recall@10", "MRR")
SUM = "sum"
_ROUNDING = 1e-6


def main(
    shared: Annotated[Path | None, typer.Option(help="Folder of judged sets and pairs from elsewhere.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder for the indexes; their vectors are used again.")] = None,
    written: Annotated[Path, typer.Option("--json", help="Where the record is written.")] = Path("build/baseline.json"),
    against: Annotated[Path | None, typer.Option(help="Compare with this record; exit 1 if a figure is worse.")] = None,
) -> None:
    """Measure judged sets and labelled pairs; write them as JSON and print them as Markdown."""
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
    for corpus in (example_corpus(), *([shared_corpus(shared)] if shared else [])):
        with _step(f"index of {corpus.name}", seconds):
            config = corpus.index(folder / corpus.name.replace(" ", "-"))
        with _step(corpus.name, seconds), Engine(load_settings(config), watch=False) as engine:
            record[f"index of {corpus.name}"] = index_facts(engine)
            parts[corpus.name] = rankings(engine, corpus.sets, _say_progress)
    with _step("labelled pairs", seconds):
        parts["labelled pairs"] = conflict_pairs(OWN) | duplicate_pairs()
        if shared:
            parts["labelled pairs from elsewhere"] = conflict_pairs(shared / SHARED)
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
    return {
        f"conflicts, {name}": _of_pairs(
            one.recall.hits, one.precision.of - one.recall.hits, one.recall.of - one.recall.hits
        )
        for name, one in rows(list(judge(load_pairs(file))))
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
            found[f"duplicates by {name}, {split}"] = _of_pairs(one.right, one.wrong, one.missed)
    return found


def _of_pairs(right: int, wrong: int, missed: int) -> dict[str, float]:
    one = duplicates.MeasuredPairs(right, wrong, missed)
    return {"positive": right + missed, "precision": one.precision, "recall": one.recall, "F1": one.f1}


def is_worse(row: str, figure: str, before: float | None, after: float | None) -> bool:
    """Tell whether a figure is lower than it may be, no longer measured, or measured on something else."""
    if before is None:
        return False
    if figure in MUST_STAY:
        return before != after
    allowed = 0.0 if row == SUM else MAY_FALL.get(figure, math.inf)
    return allowed < math.inf and (after is None or before - after > allowed + _ROUNDING)


def worse(before: Mapping[str, Rows], after: Mapping[str, Rows]) -> Iterator[str]:
    """Yield every figure that is worse, with both values, of the parts that both records have."""
    for part in before:
        if part in after:
            old, new = with_sums(before[part], after[part]), with_sums(after[part], before[part])
            for row, figures in old.items():
                for figure, value in figures.items():
                    now = new.get(row, {}).get(figure)
                    if is_worse(row, figure, value, now):
                        yield f"{part}, {row}, {figure}: {_cell(now, value)}"


def with_sums(rows: Rows, other: Rows) -> Rows:
    """Add a row with the sums over judged sets that another record has as well; none where nothing is judged."""
    common = [figures for row, figures in rows.items() if row in other]
    sums = {
        name: math.fsum(one[name] for one in common) for name in SUMMED if common and all(name in one for one in common)
    }
    return {**rows, SUM: sums} if sums else rows


def report(record: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """Return a record as Markdown, a table for each part; beside an earlier record both values where they differ."""
    lines = ["# Baseline", ""]
    for name in record:
        if name != "parts":
            lines.append(f"- {name}: {_told(record[name])}")
            if before and before.get(name) != record[name]:
                lines.append(f"  - before: {_told(before.get(name))}")
    for part, figures in record["parts"].items():
        old = before["parts"].get(part, {}) if before else figures
        table = _table(with_sums(figures, old), with_sums(old, figures), compared=before is not None)
        lines += ["", f"## {part}", "", *table]
    if before:
        lines += [*(f"\nNot measured this time: {part}." for part in before["parts"] if part not in record["parts"])]
        found = list(worse(before["parts"], record["parts"]))
        lines += ["", "## Worse", "", *(f"- {one}" for one in found)] if found else ["", "Nothing is worse."]
    return "\n".join(lines)


def _told(value: object) -> str:
    return "; ".join(f"{name} {each}" for name, each in value.items()) if isinstance(value, dict) else str(value)


def _table(rows: Rows, old: Rows, *, compared: bool) -> Iterator[str]:
    figures = list(dict.fromkeys(figure for row in rows.values() for figure in row))
    yield f"| | {' | '.join(figures)} |"
    yield f"|---|{'---:|' * len(figures)}"
    for name, row in rows.items():
        cells = [_cell(row.get(one), old.get(name, {}).get(one) if compared else None) for one in figures]
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(now: float | None, before: float | None) -> str:
    """Return a figure; where it changed, the one before, this one, and the difference."""
    if now is None or before is None or now == before:
        return _shown(before) + " → –" if now is None and before is not None else _shown(now)
    return f"{_shown(before)} → {_shown(now)} ({now - before:+.4f})"


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if isinstance(value, int) else f"{value:.4f}"


if __name__ == "__main__":
    typer.run(main)
