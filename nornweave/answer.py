"""The path of a query: ``encode → recall per domain → combine on one scale → cite``.

A first version: two retrieval sources, no filters, no fusion beyond one scale for all domains.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from nornweave import analysis
from nornweave.embedding import Encoder
from nornweave.errors import NoGenerationError, StoreError
from nornweave.recall.agent import Candidates, candidate_name, recall
from nornweave.recall.combine import Leg, convex_combination
from nornweave.settings import PlanSettings
from nornweave.store.corpus import DuckDBStore
from nornweave.store.generation import Generation, StoredChunk
from nornweave.types import Domain

# The theoretical minimum of each retrieval source: cosine and BM25.
FLOORS: Mapping[str, float] = {"dense": -1.0, "sparse": 0.0}
MAX_QUERY_CHARACTERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Searchable:
    """What answering from one domain needs."""

    domain: Domain
    agent_id: str
    store: DuckDBStore
    encoder: Encoder
    plan: PlanSettings


def answer(query: str, domains: Sequence[Searchable], *, top_k: int = 10) -> dict[str, Any]:
    """Answer a query from the published generations.

    Returns:
        A ``FusionResult`` of contract §4; a domain that could not be searched is a coverage gap.

    Raises:
        ValueError: the query is blank or longer than 4,096 characters, or ``top_k`` is not in 1 to 100.
    """
    _check(query, top_k)
    started = time.perf_counter()
    gaps: list[dict[str, str]] = []
    coverage: dict[str, Any] = {}
    found: list[Candidates] = []
    with ExitStack() as stack:
        generations: dict[Domain, Generation] = {}
        for one in domains:
            try:
                generation = stack.enter_context(open_published(one.store))
            except StoreError as error:
                gaps.append({"domain_id": one.domain.value, "agent_id": one.agent_id, "reason": str(error)})
                coverage[one.domain.value] = {"searched": False, "reason": str(error)}
                continue
            generations[one.domain] = generation
            vector = one.encoder.encode_query(query)
            candidates = recall(one.domain, generation, vector, analysis.query_terms(query), top_k)
            found.append(candidates)
            coverage[one.domain.value] = _coverage(generation, candidates)
        items = _items(found, generations, {one.domain: one.plan for one in domains}, top_k)
    return {
        "query_id": str(uuid.uuid4()),
        "query": query,
        "items": items,
        "synthesis": None,
        "conflicts": [],
        "coverage": coverage,
        "coverage_gaps": gaps,
        "domains_queried": [one.domain.value for one in domains],
        "duplicates_removed": 0,
        "stats": {"total_items": sum(len(c.scores("dense") | c.scores("sparse")) for c in found),
                  "final_items": len(items)},
        "total_latency_ms": round((time.perf_counter() - started) * 1000),
    }  # fmt: skip


def open_published(store: DuckDBStore) -> Generation:
    """Open the generation that a domain's pointer names.

    Raises:
        NoGenerationError: nothing is published yet.
        StoreError: the file cannot be read.
    """
    generation = store.current()
    if generation is None:
        raise NoGenerationError("nothing is published yet; run `nornweave sync`")
    return Generation(store.files.path(generation))


def _check(query: str, top_k: int) -> None:
    if not query.strip():
        raise ValueError("query: blank; ask something")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise ValueError(f"query: {len(query)} characters, allowed are 1 to {MAX_QUERY_CHARACTERS}")
    if not 1 <= top_k <= 100:
        raise ValueError(f"top_k: {top_k}, allowed are 1 to 100")


def _items(
    found: Sequence[Candidates],
    generations: Mapping[Domain, Generation],
    plans: Mapping[Domain, PlanSettings],
    top_k: int,
) -> list[dict[str, Any]]:
    """Combine all domains on one scale: a source's ceiling is its best score in any of them."""
    ceilings = {
        source: max((hit.score for candidates in found for hit in candidates.hits[source]), default=FLOORS[source])
        for source in FLOORS
    }
    ranked: list[tuple[float, str]] = []
    for candidates in found:
        legs = [Leg(source, candidates.scores(source), FLOORS[source], ceilings[source]) for source in FLOORS]
        plan = plans[candidates.domain]
        combined = convex_combination(legs, {"dense": plan.dense, "sparse": plan.sparse})
        ranked.extend((score, name) for name, score in combined)
    best = sorted(ranked, key=lambda pair: (-pair[0], pair[1]))[:top_k]
    sources = _ranks(found)
    chunks = _fetch(best, generations)
    return [_item(name.split(":")[0], chunks[name], score, sources[name]) for score, name in best]


def _ranks(found: Sequence[Candidates]) -> dict[str, dict[str, dict[str, float]]]:
    ranks: dict[str, dict[str, dict[str, float]]] = {}
    for candidates in found:
        for source, hits in candidates.hits.items():
            for rank, hit in enumerate(hits, 1):
                name = candidate_name(candidates.domain, hit.chunk_no)
                ranks.setdefault(name, {})[source] = {"rank": rank, "score": round(hit.score, 4)}
    return ranks


def _fetch(best: Sequence[tuple[float, str]], generations: Mapping[Domain, Generation]) -> dict[str, StoredChunk]:
    wanted: dict[Domain, list[int]] = {}
    for _, name in best:
        domain, number = name.split(":")
        wanted.setdefault(Domain(domain), []).append(int(number))
    return {
        candidate_name(domain, number): chunk
        for domain, numbers in wanted.items()
        for number, chunk in generations[domain].chunks(numbers).items()
    }


def _item(domain: str, chunk: StoredChunk, score: float, sources: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "chunk_id": chunk.chunk_id,
        "content": chunk.content,
        "score": {"value": round(score, 4), "signals": {}},
        "citation": {
            "domain_id": domain,
            "source_id": chunk.source_id,
            "source_path": chunk.path,
            "timestamp": chunk.updated_at.isoformat().replace("+00:00", "Z") if chunk.updated_at else None,
            "line_range": None if chunk.message_ids or chunk.page else list(chunk.line_range),
            "char_range": list(chunk.char_range),
            "page": chunk.page,
            "section": chunk.section,
            "message_ids": list(chunk.message_ids) or None,
            "url": chunk.url,
            "title": chunk.title,
            "revision": chunk.revision,
            "stale": chunk.stale,
        },
        "corroborated_by": [],
        "sources": dict(sources),
        "rerank_score": None,
        "conflict": None,
        "metadata": dict(chunk.metadata),
    }


def _coverage(generation: Generation, candidates: Candidates) -> dict[str, Any]:
    return {
        "searched": True,
        "generation": generation.meta["generation"],
        "indexed_at": generation.meta["built_at"],
        "total_searched": generation.chunk_count,
        "retrieval": {source: "ok" if hits else "empty" for source, hits in candidates.hits.items()},
    }
