"""One serving process: how long it takes to be ready, to answer, and what it holds; prints JSON."""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from nornweave.ask.engine import Engine
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.query import read_query, statistics_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.retrievers import (
    search_dense,
    search_fulltext,
    search_sparse,
    search_structured,
    term_weights,
)
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain, present
from nornweave.index.index import Index

CLIENTS = 2
_CANDIDATES = 200
_WARM_UP = 20


def main(config: Path, count: int) -> None:
    """Measure and print."""
    started = time.perf_counter()
    settings = load_settings(config)
    engine = Engine(settings, [Domain.CODE])
    engine.start()
    start_s = time.perf_counter() - started
    agent = engine.agents[Domain.CODE]
    with agent.generation.use(OPERATOR) as generation:
        queries = queries_of(generation, count)
        measured: dict[str, Any] = {"chunks": generation.chunk_count, "start_s": start_s, **_latencies(agent, queries)}
        memory = psutil.Process().memory_full_info()
        measured["memory_mb"] = memory.rss / 1e6
        measured["private_mb"] = memory.uss / 1e6
        measured["pss_mb"] = memory.pss / 1e6
        measured["torch"] = "torch" in sys.modules
        measured["steps"] = _steps(agent, generation, queries)
    engine.close()
    json.dump(measured, sys.stdout)


def queries_of(generation: Index, count: int) -> list[str]:
    """Make queries of what is there: a third each of first sentences of docstrings, names of symbols, lines of code."""
    chosen = random.Random(7)
    numbers = np.array(chosen.sample(range(generation.chunk_count), min(4 * count, generation.chunk_count)), np.int32)
    queries: dict[str, None] = {}
    for place, chunk in enumerate(generation.chunks(numbers).values()):
        lines = [line.strip() for line in chunk.content.splitlines() if len(line.split()) > 3]
        sentence = chunk.content.partition('"""')[2].strip().split(".")[0][:200]
        query = (sentence, chunk.title or "", lines[len(lines) // 2] if lines else "")[place % 3]
        if len(query) > 3:
            queries[query] = None
    return list(queries)[: count + _WARM_UP]


def _latencies(agent: Agent, queries: Sequence[str]) -> dict[str, float]:
    for query in queries[:_WARM_UP]:
        agent.recall(Question(text=query, now=present(), viewer=OPERATOR))
    alone = _timed(lambda query: agent.recall(Question(text=query, now=present(), viewer=OPERATOR)), queries[_WARM_UP:])
    # New words, or the vectors of the first round would be remembered.
    halves = [[f"{query} again" for query in queries[_WARM_UP + client :: CLIENTS]] for client in range(CLIENTS)]
    threads = [
        threading.Thread(
            target=lambda part=part: [
                agent.recall(Question(text=query, now=present(), viewer=OPERATOR)) for query in part
            ]
        )
        for part in halves
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "p50_ms": float(np.percentile(alone, 50)),
        "p95_ms": float(np.percentile(alone, 95)),
        "queries_per_s": sum(map(len, halves)) / (time.perf_counter() - started),
    }


def _steps(agent: Agent, generation: Index, queries: Sequence[str]) -> dict[str, tuple[float, float]]:
    plan = agent.settings.plan
    memo = agent.encoder()
    if memo is None:
        raise RuntimeError("no encoder")
    read = {query: read_query(query) for query in queries}
    weights = {query: term_weights(read[query], statistics_of(read[query], generation), plan) for query in queries}
    encoded = {query: memo.encode(query) for query in queries}
    ranked = {query: search_dense(encoded[query], generation, 10, None).hits.numbers for query in queries}
    steps: dict[str, Callable[[str], object]] = {
        "encode the query": memo.encoder.encode_query,
        "read the query": lambda query: statistics_of(read_query(query), generation),
        "dense": lambda query: search_dense(encoded[query], generation, _CANDIDATES, None),
        "sparse": lambda query: search_sparse(weights[query], generation, plan, _CANDIDATES, None),
        "fulltext": lambda query: search_fulltext(read[query], weights[query], generation, _CANDIDATES, None),
        "structured": lambda query: search_structured(read[query], generation, _CANDIDATES, None),
        "fetch ten chunks": lambda query: generation.chunks(ranked[query]),
    }
    return {
        name: (float(np.percentile(times, 50)), float(np.percentile(times, 95)))
        for name, step in steps.items()
        for times in [_timed(step, queries)]
    }


def _timed(step: Callable[[str], object], queries: Sequence[str]) -> list[float]:
    times = []
    for query in queries:
        started = time.perf_counter()
        step(query)
        times.append((time.perf_counter() - started) * 1000)
    return times


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
