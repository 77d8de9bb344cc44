"""``python -m lab.stages CONFIG JUDGMENTS…``: what a question costs, stage by stage, and whether answers are the same.

Every stage is a function of the path of a question. It is timed where it is called, in one process, once with one
client and once with several. Processor time is that of the thread that runs the stage; it holds on a busy machine. Wall
time also counts what it waits for: other threads, the interpreter, the encoder. A stage includes those that it calls.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evals.judged_files import read_judgments
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import digest

NOW = datetime(2026, 11, 24, tzinfo=UTC)
WARM_UP = 40
# As indented as they call each other.
STAGES = {
    "a domain": "nornweave.ask.search.fan_out:_recall",
    "· the query's vector": "nornweave.models.encoders.queries:QueryMemo.encode",
    "· dense": "nornweave.ask.search.retrievers:search_dense",
    "· sparse": "nornweave.ask.search.retrievers:search_sparse",
    "· full text": "nornweave.ask.search.retrievers:search_fulltext",
    "· structured": "nornweave.ask.search.retrievers:search_structured",
    "· exact evidence": "nornweave.ask.search.exact:exact_evidence",
    "· select items": "nornweave.ask.search.selection:select",
    "· signals": "nornweave.ask.search.signals:signals_of",
    "fuse": "nornweave.ask.fuse.pipeline:fuse",
    "· deduplicate": "nornweave.ask.fuse.deduplication.merge:deduplicate",
    "· conflicts": "nornweave.ask.fuse.conflict_resolution:resolve_conflicts",
    "· rank": "nornweave.ask.fuse.rank:rank",
    "extract": "nornweave.ask.answer.extract:extract",
    "JSON": "nornweave.ask.views.answer:answer_document",
}
# What differs between two answers to one question.
_CHANGING = ("query_id", "trace_id", "stage_latency_ms", "total_latency_ms")


@dataclass
class Spent:
    """What a stage took in all: seconds of its thread's processor time, seconds by the wall, calls."""

    cpu: float = 0.0
    wall: float = 0.0
    calls: int = 0


@dataclass
class StageRun:
    """One run: by stage what it took, the seconds of each answer, and of all of them by the wall and the processor."""

    stages: dict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    answers: list[float] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0


def main(
    config: Annotated[Path, typer.Argument(help="Of the workspace that is asked.")],
    judgments: Annotated[list[Path], typer.Argument(help="Folders of judged sets: their questions are asked.")],
    questions: Annotated[int, typer.Option(help="Asked in each run.")] = 240,
    clients: Annotated[list[int] | None, typer.Option(help="Threads that ask; one run each.")] = None,
    answers: Annotated[Path | None, typer.Option(help="Where answers are written instead, one a line.")] = None,
    against: Annotated[Path | None, typer.Option(help="Compare with answers that were written; exit 1.")] = None,
) -> None:
    """Print what each stage takes; with ``--answers`` write what is answered, and compare it with ``--against``."""
    texts = sorted({query.text for folder in judgments for query in read_judgments(folder).queries}, key=digest)
    with Engine(load_settings(config), watch=False) as engine:
        asked = engine.as_seen_by(OPERATOR).answers
        if answers:
            answers.write_text("".join(f"{line}\n" for line in answered(asked, texts[:questions])), encoding="utf-8")
            raise typer.Exit(_differing(answers, against) if against else 0)
        timed(asked, texts[-WARM_UP:], 1)
        starts = enumerate(clients or [1, 8])  # other questions in each run: the vectors of the last ones are known
        runs = {count: timed(asked, texts[place * questions :][:questions], count) for place, count in starts}
    typer.echo("\n".join(_table(runs, questions)))


def answered(asked: SeenAnswers, texts: Sequence[str]) -> Iterator[str]:
    """Yield answers as JSON, in turns plain, explained, short, expanded; without what differs from answer to answer."""
    short, expanded = {"top_k": 5, "max_tokens": 800}, {"expand": "on", "rerank": "on"}
    options: list[dict[str, Any]] = [{}, {"explain": True}, short, expanded]
    for place, text in enumerate(texts):
        question = Question(text=text, now=NOW, viewer=OPERATOR, **options[place % len(options)])
        document: dict[str, Any] = dict(asked.query(question))
        for domain in document["coverage"].values():
            domain["latency_ms"] = None
        yield json.dumps({name: value for name, value in document.items() if name not in _CHANGING}, sort_keys=True)


def _differing(answers: Path, against: Path) -> int:
    pairs = list(zip(*(file.read_text(encoding="utf-8").splitlines() for file in (answers, against)), strict=True))
    different = [(json.loads(one), json.loads(other)) for one, other in pairs if one != other]
    for one, other in different[:5]:
        typer.echo(f"{one['query']!r}: {[name for name in one if one[name] != other.get(name)]}")
    typer.echo(f"{len(pairs)} answers, {len(different)} differ")
    return 1 if different else 0


def timed(asked: SeenAnswers, texts: Sequence[str], clients: int) -> StageRun:
    """Ask all questions, each once, from some threads at a time."""
    run = StageRun()

    def ask(text: str) -> None:
        started = time.perf_counter()
        asked.query(Question(text=text, now=NOW, viewer=OPERATOR))
        run.answers.append(time.perf_counter() - started)

    with _watched(run), ThreadPoolExecutor(clients) as pool:
        started, cpu = time.perf_counter(), time.process_time()
        list(pool.map(ask, texts))
        run.wall, run.cpu = time.perf_counter() - started, time.process_time() - cpu
    return run


@contextmanager
def _watched(run: StageRun) -> Iterator[None]:
    """Time the functions of all stages, wherever they were imported to."""
    undo: list[tuple[Any, str, Any]] = []
    for name, place in STAGES.items():
        module, _, path = place.partition(":")
        holder, _, attribute = path.rpartition(".")
        owner: Any = importlib.import_module(module)
        owner = getattr(owner, holder) if holder else owner
        original = getattr(owner, attribute)
        holders = [owner] if holder else [each for key, each in [*sys.modules.items()] if key.startswith("nornweave.")]
        for each in holders:
            for known in [known for known, value in vars(each).items() if value is original]:
                undo.append((each, known, original))
                setattr(each, known, _timing(original, run.stages[name]))
    try:
        yield
    finally:
        for each, known, original in undo:
            setattr(each, known, original)


def _timing(function: Callable[..., Any], spent: Spent) -> Callable[..., Any]:
    @functools.wraps(function)
    def timing(*values: Any, **named: Any) -> Any:
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            return function(*values, **named)
        finally:
            spent.cpu += time.thread_time() - cpu
            spent.wall += time.perf_counter() - wall
            spent.calls += 1

    return timing


def _table(runs: dict[int, StageRun], count: int) -> Iterator[str]:
    """Yield the rows of a table: for each run milliseconds of processor time and by the wall, a question."""
    yield f"| stage, ms a question | {' | '.join(f'{clients} clients: CPU | wall' for clients in runs)} |"
    yield f"|---|{'---|' * 2 * len(runs)}"
    for name in STAGES:
        spent = [run.stages[name] for run in runs.values()]
        yield _row(name, [(one.cpu / count * 1e3, one.wall / count * 1e3) for one in spent])
    yield _row("**all**", [(run.cpu / count * 1e3, float(np.mean(run.answers)) * 1e3) for run in runs.values()])
    yield _row("p50, p95", [(np.percentile(run.answers, (50, 95)) * 1e3).tolist() for run in runs.values()])
    yield _row("questions a second", [(count / run.wall,) for run in runs.values()])


def _row(name: str, pairs: Sequence[Sequence[float]]) -> str:
    return f"| {name} | {' | '.join(' | '.join(f'{value:.2f}' for value in pair) for pair in pairs)} |"


if __name__ == "__main__":
    typer.run(main)
