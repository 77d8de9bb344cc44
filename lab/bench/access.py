"""What a mask of access costs: the same questions on one index, in turn by who sees everything and by who does not."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from api.app import create_app
from lab.bench.corpora import functions_corpus
from lab.bench.serving import queries_of
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access.tokens import line_of
from nornweave.core.access.viewer import OPERATOR, Viewer
from nornweave.core.types import Domain, present
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

QUERIES, ROUNDS, WARM_UP = 120, 3, 30
SERVICE = "service-token"
VIEWERS = {
    "everything": OPERATOR,
    "all but one document": Viewer(groups=frozenset({"staff", "board"})),
    "two thirds": Viewer(groups=frozenset({"staff"})),
    "a third": Viewer(),
}


def print_access(work: Path, documents: int = 6_000) -> None:
    """Print medians of recall and of ``POST /query``, and their ratios to those of who sees everything."""
    settings = _workspace(work, documents)
    console = Console(width=140)
    with Engine(settings, [Domain.CODE], watch=False) as engine:
        agent = engine.agents[Domain.CODE]
        with agent.generation.use(OPERATOR) as generation:
            queries, chunks = queries_of(generation, QUERIES), generation.chunk_count

        def recalled(viewer: Viewer) -> Callable[[str], object]:
            return lambda query: agent.recall(Question(text=query, now=present(), viewer=viewer))

        recalls = _alternating({name: recalled(viewer) for name, viewer in VIEWERS.items()}, queries)
    served = asyncio.run(_served(settings, queries))
    table = Table(title=f"access over {chunks:,} chunks: medians of {ROUNDS * QUERIES} questions", title_justify="left")
    for column in ("viewer", "recall ms", "ratio", "POST /query ms", "ratio"):
        table.add_column(column, justify="left" if column == "viewer" else "right")
    for name in VIEWERS:
        ratios = [times[name] / times["everything"] for times in (recalls, served)]
        table.add_row(name, f"{recalls[name]:.2f}", f"{ratios[0]:.3f}", f"{served[name]:.2f}", f"{ratios[1]:.3f}")
    console.print(table)


def _alternating(asks: Mapping[str, Callable[[str], object]], queries: Sequence[str]) -> dict[str, float]:
    """Ask each question as everybody, in an order that changes; return the median of each in milliseconds."""
    chance = random.Random(7)
    times: dict[str, list[float]] = {name: [] for name in asks}
    for query in queries[:WARM_UP]:
        for ask in asks.values():
            ask(query)
    for _ in range(ROUNDS):
        for query in queries[WARM_UP:]:
            for name in chance.sample([*asks], len(asks)):
                started = time.perf_counter()
                asks[name](query)
                times[name].append((time.perf_counter() - started) * 1000)
    return {name: median(some) for name, some in times.items()}


async def _served(settings: Settings, queries: Sequence[str]) -> dict[str, float]:
    """Ask over HTTP, in process, each viewer with a token of their own."""
    app = create_app(settings, environment={"NORNWEAVE_SERVICE_TOKEN": SERVICE})
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://nornweave") as client,
    ):

        def posted(token: str) -> Callable[[str], Coroutine[Any, Any, httpx.Response]]:
            headers = {"authorization": f"Bearer {token}"}
            body = {"timeout_ms": 60_000}
            return lambda query: client.post("/query", json={**body, "query": query}, headers=headers, timeout=60)

        asks = {name: posted(_token(name)) for name in VIEWERS}
        chance = random.Random(7)
        times: dict[str, list[float]] = {name: [] for name in asks}
        for place in range(-WARM_UP, ROUNDS * (len(queries) - WARM_UP)):
            query = queries[place % (len(queries) - WARM_UP)]
            for name in chance.sample([*asks], len(asks)):
                started = time.perf_counter()
                (await asks[name](query)).raise_for_status()
                if place >= 0:
                    times[name].append((time.perf_counter() - started) * 1000)
    return {name: median(some) for name, some in times.items()}


def _token(name: str) -> str:
    return SERVICE if name == "everything" else f"nw_{name.replace(' ', '-')}"


def _workspace(work: Path, documents: int) -> Settings:
    """Publish functions in three sources, of which two are for groups, and one document for a group of its own."""
    config = work / "nornweave.yaml"
    if not config.exists():
        work.mkdir(parents=True, exist_ok=True)
        functions_corpus(work, documents)
        folders = sorted((work / f"functions-{documents}").iterdir())
        for place, folder in enumerate(folders):
            target = work / ("open", "staff", "board")[place % 3]
            target.mkdir(exist_ok=True)
            folder.rename(target / folder.name)
        (work / "one").mkdir()
        (work / "one" / "one.py").write_text("ONE = 1\n", encoding="utf-8")
        access = {"open": [], "staff": ["staff"], "board": ["board"], "one": ["nobody"]}
        sources = [
            {"id": name, "domain": "code", "type": "files", "path": name, **({"access": groups} if groups else {})}
            for name, groups in access.items()
        ]
        domains = {"code": {"embedding": {"model": "hash:384", "dimensions": 384}, "reranking": {"model": None}}}
        lines = [line_of(_token(name), sorted(viewer.groups)) for name, viewer in VIEWERS.items()]
        (work / "tokens.yaml").write_text("\n".join(lines), encoding="utf-8")
        document = {"data_dir": "var", "sources": sources, "domains": domains, "access": {"tokens": "tokens.yaml"}}
        config.write_text(json.dumps(document), encoding="utf-8")
    settings = load_settings(config)
    run(domain_parts(settings, Domain.CODE), SyncOptions(run_id="bench"))
    return settings
