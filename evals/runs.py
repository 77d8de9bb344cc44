"""Run a judged set against what is published: every stage of the query path, measured as it is served.

What is searched comes in through ``Searcher``, which ``nornweave.engine.Engine`` satisfies; no storage is known here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np

from evals.hits import Hits
from evals.judgments import JudgedSet, Judgment, JudgmentError, Query
from evals.measures import Ranking, measure
from evals.results import ITEMS, QueryFailure, Scope, ScopeResult, SetResult, StageResult
from nornweave.errors import QueryError, StoreError
from nornweave.recall.records import Citation, Filters
from nornweave.types import Domain

# The query path's order; other stages follow in the order in which they are first seen.
STAGES = ("dense", "sparse", "fulltext", "structured", "combined", "reranked", "merged", "fused")
LAST_STAGE = "fused"
DEPTH = 100
"""Items asked for: enough for ten documents, though one of them may hold the best twenty chunks."""


class Searcher(Protocol):
    """What is measured."""

    def rankings(
        self, text: str, *, domains: Sequence[Domain] | None, filters: Mapping[Domain, Filters], depth: int
    ) -> Mapping[str, tuple[Citation, ...]]:
        """Return what every stage found, best first, by stage (``STAGES``; ``reranked`` only where a model ran).

        Args:
            text: the query.
            domains: which are asked; ``None`` leaves it to the system.
            filters: by domain.
            depth: items wanted of each stage.

        Raises:
            QueryError: the query or its filters are wrong.
            StoreError: what was published cannot be read.
        """
        ...

    def domain_of(self, paths: Collection[str]) -> Mapping[str, Domain]:
        """Return the domain that holds each document, by its path in its source; unknown paths are left out."""
        ...


class Progress(Protocol):
    """Told how many queries of a step are through."""

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` queries of the step ``name`` are through."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A judged set and where its documents lie.

    Attributes:
        queries: those with a relevant judgment.
        relevant: their relevant judgments, by query.
        domain: the set's own.
        held: path → the domain that holds the document, for those that are published.
    """

    judged: JudgedSet
    queries: tuple[Query, ...]
    relevant: Mapping[str, tuple[Judgment, ...]]
    domain: Domain
    held: Mapping[str, Domain]


@dataclass(slots=True)
class _Run:
    """What comes in while the queries of one scope run: by stage and query, the places of its ranking."""

    places: dict[str, dict[str, Ranking]] = field(default_factory=lambda: {LAST_STAGE: {}})
    items: dict[str, dict[str, Ranking]] = field(default_factory=lambda: {LAST_STAGE: {}})
    latencies_ms: list[float] = field(default_factory=list)
    failures: list[QueryFailure] = field(default_factory=list)


def evaluate(
    searcher: Searcher,
    judged: JudgedSet,
    *,
    domains: Sequence[Domain] = (),
    scopes: Collection[Scope] = tuple(Scope),
    depth: int = DEPTH,
    progress: Progress | None = None,
) -> SetResult:
    """Run a judged set in each scope and measure every stage.

    A query that is refused (``QueryError``) or meets a damaged store (``StoreError``) counts as unanswered and is
    listed.

    Args:
        searcher: what is measured.
        judged: the set.
        domains: those that the set may belong to, all if empty; see ``domain_of_set``.
        scopes: which to run.
        depth: items asked of every stage.
        progress: told after each query.

    Raises:
        JudgmentError: the set's domain cannot be told.
    """
    target = locate(searcher, judged, domains)
    domain, queries, relevant = target.domain, target.queries, target.relevant
    judged_paths = _paths(relevant)
    return SetResult(
        name=judged.name,
        domain=domain,
        queries=len(judged.queries),
        measured=len(queries),
        unjudged=tuple(query.id for query in judged.queries if query.id not in relevant),
        judgments=sum(map(len, relevant.values())),
        missing=tuple(path for path in judged_paths if path not in target.held),
        elsewhere=tuple(path for path in judged_paths if target.held.get(path, domain) is not domain),
        scopes=tuple(_run_scope(searcher, target, scope, depth, progress) for scope in _scopes(queries, scopes)),
    )


def locate(searcher: Searcher, judged: JudgedSet, domains: Sequence[Domain] = ()) -> Target:
    """Find out which domain a set is about, and where its documents lie; see ``evaluate``.

    Raises:
        JudgmentError: the set's domain cannot be told.
    """
    relevant = judged.relevant
    paths = _paths(relevant)
    held = searcher.domain_of(paths)
    return Target(
        judged=judged,
        queries=tuple(query for query in judged.queries if query.id in relevant),
        relevant=relevant,
        domain=domain_of_set(judged.name, paths, held, domains),
        held=held,
    )


def domain_of_set(
    name: str, paths: Sequence[str], held: Mapping[str, Domain], allowed: Sequence[Domain] = ()
) -> Domain:
    """Return the domain that a set is about: the only one allowed, or that which holds most of the judged documents.

    Raises:
        JudgmentError: none of the documents lies in a domain that is allowed.
    """
    if len(allowed) == 1:
        return allowed[0]
    counts = Counter(domain for domain in held.values() if not allowed or domain in allowed)
    if not counts:
        among = f" of {', '.join(allowed)}" if allowed else ""
        looked_for = ", ".join(paths[:3])
        raise JudgmentError(
            f"judged set {name!r}: none of its {len(paths)} judged documents is in a published generation{among} "
            f"(looked for {looked_for}, …); sync the source that holds them, with paths relative to it, or name the "
            "domain with --domain"
        )
    return max(Domain, key=lambda domain: counts[domain])


def _paths(relevant: Mapping[str, tuple[Judgment, ...]]) -> list[str]:
    return sorted({judgment.path for judgments in relevant.values() for judgment in judgments})


def _scopes(queries: Sequence[Query], wanted: Collection[Scope]) -> list[Scope]:
    filtered = any(query.filters for query in queries)
    return [scope for scope in Scope if scope in wanted and (filtered or scope is not Scope.UNFILTERED)]


def _run_scope(searcher: Searcher, target: Target, scope: Scope, depth: int, progress: Progress | None) -> ScopeResult:
    run = _Run()
    for number, query in enumerate(target.queries, 1):
        _run_query(run, searcher, target, query, scope, depth)
        if progress:
            progress(f"{target.judged.name}, {scope.value}", number, len(target.queries))
    p50, p95 = _percentiles(run.latencies_ms)
    return ScopeResult(
        scope=scope,
        stages=tuple(_stage_result(run, stage, target) for stage in sorted(run.places, key=_stage_order)),
        p50_ms=p50,
        p95_ms=p95,
        failures=tuple(run.failures),
    )


def _run_query(run: _Run, searcher: Searcher, target: Target, query: Query, scope: Scope, depth: int) -> None:
    filters: Mapping[Domain, Filters] = {target.domain: query.filters} if query.filters else {}
    started = time.perf_counter()
    try:
        rankings = searcher.rankings(
            query.text,
            domains=None if scope is Scope.EVERYWHERE else (target.domain,),
            filters=filters if scope is Scope.DOMAIN else {},
            depth=depth,
        )
    except (QueryError, StoreError) as error:
        run.failures.append(QueryFailure(query.id, str(error)))
        return
    run.latencies_ms.append((time.perf_counter() - started) * 1000)
    hits = Hits(target.relevant[query.id], target.domain, target.held)
    for stage, ranking in rankings.items():
        run.places.setdefault(stage, {})[query.id] = hits.places(ranking, by_document=hits.whole_documents)
        run.items.setdefault(stage, {})[query.id] = hits.places(ranking, by_document=False)


def _stage_result(run: _Run, stage: str, target: Target) -> StageResult:
    grades = {query: {one.key: one.grade for one in judgments} for query, judgments in target.relevant.items()}
    metrics = dict(measure(run.places[stage], grades))
    if any(judgment.whole_document for judgments in target.relevant.values() for judgment in judgments):
        metrics[ITEMS] = measure(run.items[stage], grades, ("Recall@10",))["Recall@10"]
    answered = sum(1 for found in run.places[stage].values() if found)
    return StageResult(stage, answered, MappingProxyType(metrics))


def _stage_order(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


def _percentiles(latencies_ms: Sequence[float]) -> tuple[float | None, float | None]:
    if not latencies_ms:
        return None, None
    p50, p95 = np.percentile(latencies_ms, (50, 95))
    return float(p50), float(p95)
