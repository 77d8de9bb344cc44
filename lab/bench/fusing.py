"""Fused answers over four real domains: the stages alone, and ``POST /query`` as clients see it."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from lab.bench.corpora import messages_corpus
from nornweave.ask.engine import Engine
from nornweave.ask.fuse.pipeline import Stopwatch, fuse
from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import RecallResponse
from nornweave.config.workspace import FusionSettings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain, present
from nornweave.disagree.conflicts.records import NO_NOTES

# Judged set → source; the conversations among them make 751 chunks, the docstrings of the packages the rest.
SOURCES = {
    "code-cosqa": {"domain": "code", "type": "files"},
    "documentation-awsdocs": {"domain": "documentation", "type": "files"},
    "conversations-locomo": {"domain": "conversations", "type": "slack"},
    "research-scifact": {"domain": "research", "type": "files"},
}
CLIENTS = 8
_TALK = 24_000
_QUERIES = 400
_STAGED = 60
_READY_S = 120.0


def print_fusion(shared: Path, work: Path) -> None:
    """Print both tables; reuses the index in ``work`` if there is one, says so where the judged sets are missing."""
    console = Console(width=140)
    if not all((shared / name).is_dir() for name in SOURCES):
        console.print(f"fusion: no judged sets in {shared}, nothing to measure on")
        return
    config = four_domains(shared, work)
    texts = judged_questions(shared)
    console.print(_stages(config, texts))
    console.print(_served(config, texts))


def workspace(shared: Path, work: Path) -> Path:
    """Index the judged sets as four domains of one workspace and return its configuration; what is there is kept."""
    return synced(work / "judged", judged_sources(shared))


def four_domains(shared: Path, work: Path) -> Path:
    """Index the same with more conversations, so that every domain has 5,000 chunks, and return its configuration."""
    folder = work / "talking"
    if not folder.exists():
        messages_corpus(folder / "talk", _TALK)
        judged = workspace(shared, work).parent / "var"
        shutil.copytree(judged, folder / "var", ignore=shutil.ignore_patterns("dagster"))
    talk = {"id": "talk", "path": "talk", "domain": "conversations", "type": "messages"}
    return synced(folder, [talk, *judged_sources(shared)])


def judged_sources(shared: Path) -> list[dict[str, str]]:
    """Return the texts of the judged sets as sources, one for each domain."""
    return [{"id": name, "path": str((shared / name / "native").resolve()), **kind} for name, kind in SOURCES.items()]


def synced(folder: Path, sources: Sequence[Mapping[str, Any]], *options: str, stdout: int | None = None) -> Path:
    """Index sources with ``nornweave sync`` and its options; return the configuration."""
    config = folder / "nornweave.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"data_dir": "./var", "sources": list(sources)}), encoding="utf-8")
    command = [sys.executable, "-m", "nornweave.cli", "--config", str(config), "sync", *options]
    subprocess.run(command, check=True, stdout=stdout)
    return config


def judged_questions(shared: Path) -> list[str]:
    """Return questions of all judged sets, mixed, the same ones every time."""
    lines = [line for name in SOURCES for line in _judged(shared / name / "native")]
    return random.Random(7).sample(lines, min(len(lines), 2 * _QUERIES))


def _judged(folder: Path) -> Iterator[str]:
    for file in sorted((*folder.rglob("queries.jsonl"), *folder.parent.glob("queries.jsonl"))):
        with file.open(encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)


def _stages(config: Path, texts: Sequence[str]) -> Table:
    """Time the stages over what the domains really answer, with the claims that they have stored."""
    questions: dict[str, list[tuple[Question, Recalled]]] = {"80": [], "1,000": []}
    with Engine(load_settings(config)) as engine:
        for text in texts[:_STAGED]:
            question = Question(text=text, now=present(), viewer=OPERATOR, top_k=10)
            questions["80"].append(
                (question, _recalled(engine.as_seen_by(OPERATOR).answers.answer(question).recalled.responses))
            )
        for text in texts[: _STAGED // 4]:
            question = Question(text=text, now=present(), viewer=OPERATOR)
            questions["1,000"].append((question, _recalled(_many(engine, texts, text))))
        # While the engine is open, as it is where answers are served: then BLAS has one thread.
        timed = {name: [_timed(*asked) for asked in some] for name, some in questions.items()}
    table = Table(title="fusion, stages 1 to 5, ms", title_justify="left")
    stages = ("collect", "normalize", "deduplicate", "conflicts", "rank")
    for name in ("items", "requests", *stages, "p50", "p95"):
        table.add_column(name, justify="right")
    for name, rows in timed.items():
        totals = [sum(row.values()) for row in rows]
        medians = [f"{np.median([row[stage] for row in rows]):.2f}" for stage in stages]
        p50, p95 = np.percentile(totals, (50, 95))
        table.add_row(name, str(len(rows)), *medians, f"{p50:.1f}", f"{p95:.1f}")
    return table


def _recalled(responses: tuple[RecallResponse, ...]) -> Recalled:
    return Recalled(asked={}, responses=responses)


def _timed(question: Question, recalled: Recalled) -> Mapping[str, float]:
    clock = Stopwatch()
    fuse(question, recalled, FusionSettings(), notes=NO_NOTES, clock=clock)
    return clock.milliseconds


def _many(engine: Engine, texts: Sequence[str], first: str) -> tuple[RecallResponse, ...]:
    """Return 250 items of each domain: those of as many questions as it takes, each once."""
    items: dict[Domain, dict[str, Any]] = {domain: {} for domain in engine.agents}
    answered: dict[Domain, RecallResponse] = {}
    start = texts.index(first)
    for text in (*texts[start:], *texts[:start]):
        if all(len(found) >= 250 for found in items.values()):
            break
        question = Question(text=text, now=present(), viewer=OPERATOR, top_k=90)
        for response in engine.as_seen_by(OPERATOR).answers.answer(question).recalled.responses:
            domain = Domain(response.domain_id)
            answered[domain] = response
            items[domain].update({item.chunk_id: item for item in response.items})
    return tuple(replace(answered[domain], items=tuple(found.values())[:250]) for domain, found in items.items())


def _served(config: Path, texts: Sequence[str]) -> Table:
    table = Table(title="POST /query over HTTP, four domains, 2 cores", title_justify="left")
    for name in ("clients", "queries", "p50 ms", "p95 ms", "q/s", "failed"):
        table.add_column(name, justify="right")
    with server(config) as (url, _):
        asked(url, texts[:20], 2)
        for clients, part in ((1, texts[20 : 20 + _QUERIES // 2]), (CLIENTS, texts[20 + _QUERIES // 2 :])):
            measured = asked(url, part, clients)
            table.add_row(
                str(clients),
                str(len(part)),
                f"{measured['p50_ms']:.1f}",
                f"{measured['p95_ms']:.1f}",
                f"{measured['queries_per_s']:.0f}",
                str(measured["failed"]),
            )
    return table


def asked(url: str, texts: Sequence[str], clients: int) -> dict[str, Any]:
    """Ask from a process of its own, so that client and server do not share an interpreter."""
    command = [sys.executable, "-m", "lab.bench.clients", url, str(clients)]
    done = subprocess.run(command, check=True, input=json.dumps(list(texts)).encode(), stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


@contextmanager
def server(config: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve an index on a free port; yield the URL and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nornweave.cli", "--config", str(config), "serve", "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != "NORNWEAVE_SERVICE_TOKEN"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(f"{url}/ready")
            yield url, process
        finally:
            process.terminate()


def _wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"{url} is not ready after {_READY_S:g} s")
