"""What asking over the network costs: the same questions of agents in one process, and of the same agents elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from lab.bench.corpora import functions_corpus
from lab.bench.serving import queries_of
from nornweave.ask.engine import Engine
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

QUERIES, ROUNDS, WARM_UP = 60, 3, 20
ACCEPTS = ["timeout_ms", "expand", "rerank", "explain", "now"]
NO_MODELS = {"embedding": {"model": "hash:64", "dimensions": 64}, "reranking": {"model": None}}


def print_agents(work: Path, documents: int = 2_000) -> None:
    """Print medians of ``POST /query`` here and elsewhere, their ratio, and whether the answers are the same."""
    settings = _workspace(work / "here", documents)
    with (
        Engine(settings, [Domain.CODE], watch=False) as engine,
        engine.agents[Domain.CODE].generation.use(OPERATOR) as generation,
    ):
        queries, chunks = queries_of(generation, QUERIES), generation.chunk_count
    with ExitStack() as stack:
        here = stack.enter_context(_served(settings.file))
        hub_file = _hub(work / "hub", here)
        hub = stack.enter_context(_served(hub_file))
        _join(hub, here)
        times: Mapping[str, list[float]] = {"here": [], "elsewhere": []}
        clients = {"here": stack.enter_context(_client(here)), "elsewhere": stack.enter_context(_client(hub))}
        same = 0
        for turn, query in enumerate([*queries[:WARM_UP], *(queries * ROUNDS)]):
            answers = {}
            for name in sorted(clients, reverse=bool(turn % 2)):
                started = time.perf_counter()
                answers[name] = clients[name].post("/query", json={"query": query, "domains": ["code"]}).json()
                if turn >= WARM_UP:
                    times[name].append((time.perf_counter() - started) * 1000)
            same += turn >= WARM_UP and _ranked(answers["here"]) == _ranked(answers["elsewhere"])
    table = Table(
        title=f"agents over {chunks:,} chunks: {ROUNDS * len(queries)} questions in turn", title_justify="left"
    )
    for column in ("agent", "p50 ms", "p95 ms", "ratio of p50"):
        table.add_column(column, justify="left" if column == "agent" else "right")
    p50 = {name: quantiles(found, n=20)[9] for name, found in times.items()}
    for name, found in times.items():
        table.add_row(name, f"{p50[name]:.2f}", f"{quantiles(found, n=20)[18]:.2f}", f"{p50[name] / p50['here']:.2f}")
    console = Console(width=140)
    console.print(table)
    console.print(f"same chunks, order and scores (five decimals): {same} of {ROUNDS * len(queries)}")


def _workspace(work: Path, documents: int) -> Settings:
    work.mkdir(parents=True, exist_ok=True)
    functions_corpus(work / "corpus", documents)
    source = {"id": "corpus", "domain": "code", "type": "files", "path": "corpus"}
    file = work / "nornweave.yaml"
    file.write_text(json.dumps({"data_dir": "var", "sources": [source], "domains": {"code": NO_MODELS}}))
    settings = load_settings(file, {})
    run(domain_parts(settings, Domain.CODE), SyncOptions(run_id="bench"))
    return settings


def _hub(work: Path, url: str) -> Path:
    work.mkdir(parents=True, exist_ok=True)
    file = work / "nornweave.yaml"
    domains = {domain.value: NO_MODELS for domain in Domain}
    file.write_text(json.dumps({"data_dir": "var", "agents": {"allow": [url], "lease_s": 3600}, "domains": domains}))
    return file


@contextmanager
def _served(config: Path) -> Iterator[str]:
    command = [sys.executable, "-c", "from nornweave.cli.main import main; main()", "--config", str(config)]
    command += ["serve", "--port", "0", "--workers", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.terminate()


def _client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=60, trust_env=False)


def _join(hub: str, here: str) -> None:
    body = {
        "agent_id": "code-elsewhere",
        "domain_id": "code",
        "url": f"{here}/agents/code",
        "capabilities": {"accepts": ACCEPTS},
    }
    with _client(hub) as client:
        client.post("/agents/register", json=body).raise_for_status()


def _ranked(answer: Mapping[str, Any]) -> Sequence[tuple[str, float]]:
    return [(item["chunk_id"], round(item["score"]["value"], 5)) for item in answer["items"]]
