"""Run a judged set against published generations: every stage of the query path is measured as it is served."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from evals.confidence import TopScore, confidence_of
from evals.controls import Control, control_of, shuffled
from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentError
from evals.measures import DEEPEST, JudgedHits, Ranking, measure
from evals.results import ITEMS, KindResult, QueryFailure, ResultScope, ScopeResult, SetResult, StageResult
from evals.searching import Rankings
from evals.targets import RunTarget, Searcher, locate
from nornweave.ask.search.records import Citation, Filters
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.types import Domain, digest
from nornweave.improve.records import LAST_STAGE

# The query path's order; other stages follow in the order in which they are first seen.
STAGES = ("dense", "sparse", "fulltext", "structured", "combined", "expanded", "reranked", "merged", "fused")
CONTROLLED = ("Recall@10", "RR@10")
STANDS_IN = {"expanded": "combined"}
"""Stages that some queries pass by: what stands for them is what they were given."""
DOCUMENT_DEPTHS = (30, 100)
"""Items asked for where whole documents are judged: ten documents are wanted, and one of them may hold the best twenty
chunks. Where places are judged the first ten items are what counts, and ten are asked for, as a user would."""


Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a step, and how many of how many queries of it are through."""


@dataclass(slots=True)
class _Run:
    """The rankings collected for one scope, as places by stage and query."""

    places: dict[str, dict[str, Ranking]] = field(default_factory=lambda: {LAST_STAGE: {}})
    items: dict[str, dict[str, Ranking]] = field(default_factory=lambda: {LAST_STAGE: {}})
    latencies_ms: list[float] = field(default_factory=list)
    failures: list[QueryFailure] = field(default_factory=list)
    top_scores: list[TopScore] = field(default_factory=list)
    answers: dict[str, tuple[Citation, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetToRun:
    """A judged set to run.

    Attributes:
        domains: those that it may belong to, all if empty; see ``targets.domain_of_set``.
        min_score: how well this threshold tells questions without an answer.
    """

    judged: JudgedSet
    domains: tuple[Domain, ...] = ()
    min_score: float | None = None


def evaluate_all(
    searcher: Searcher,
    sets: Sequence[SetToRun],
    *,
    scopes: Collection[ResultScope] = tuple(ResultScope),
    count_missing: bool = False,
    progress: Progress | None = None,
) -> tuple[SetResult, ...]:
    """Run judged sets in order; see ``evaluate``.

    Every set is looked up in the index before the first one runs, so that a mistake in the last one is found at once.

    Raises:
        JudgmentError: there is no set, or one whose documents are not published.
    """
    if not sets:
        raise JudgmentError("no judged set to run: nothing is published, or no folder is named (--judgments)")
    for to_run in sets:
        locate(searcher, to_run.judged, to_run.domains, count_missing=count_missing)
    return tuple(
        evaluate(
            searcher,
            to_run.judged,
            domains=to_run.domains,
            scopes=scopes,
            count_missing=count_missing,
            min_score=to_run.min_score,
            progress=progress,
        )
        for to_run in sets
    )


def evaluate(
    searcher: Searcher,
    judged: JudgedSet,
    *,
    domains: Sequence[Domain] = (),
    scopes: Collection[ResultScope] = tuple(ResultScope),
    count_missing: bool = False,
    min_score: float | None = None,
    progress: Progress | None = None,
) -> SetResult:
    """Run a judged set in each scope and measure every stage.

    A query that is refused (``QueryError``) or meets a damaged store (``StoreError``) counts as unanswered and is
    listed.

    Args:
        searcher: the measured search.
        domains: those that the set may belong to, all if empty; see ``targets.domain_of_set``.
        count_missing: count judged documents that nothing published holds as misses; they are left out otherwise, as
            they say nothing about retrieval.
        min_score: how well this threshold tells questions without an answer; see ``confidence.confidence_of``.

    Raises:
        JudgmentError: the set's domain cannot be told, or none of its documents is published.
    """
    target = locate(searcher, judged, domains, count_missing=count_missing)
    ran = tuple(_run_scope(searcher, target, scope, min_score, progress) for scope in _scopes(target, scopes))
    return _set_result(target, ran, count_missing)


def _set_result(target: RunTarget, scopes: tuple[ScopeResult, ...], count_missing: bool) -> SetResult:
    judged, domain, relevant = target.judged, target.domain, target.relevant
    elsewhere = sorted(
        {
            judgment.path
            for of_query in relevant.values()
            for judgment in of_query
            if any(target.held.get(path, domain) != domain for path in judgment.paths)
        }
    )
    return SetResult(
        name=judged.name,
        domain=domain,
        across_domains=judged.across_domains,
        origin=judged.origin,
        queries=len(judged.queries),
        measured=len(target.queries),
        unjudged=tuple(query.id for query in judged.queries if query.answerable and query.id not in judged.relevant),
        unanswerable=len(judged.unanswerable),
        judgments=sum(map(len, relevant.values())),
        missing=target.missing,
        moved=target.moved,
        missing_counted=count_missing,
        unmeasured=tuple(query for query in judged.relevant if query not in relevant),
        digests=MappingProxyType({query.id: _digest(query, relevant[query.id]) for query in target.queries}),
        elsewhere=() if judged.across_domains else tuple(elsewhere),
        scopes=scopes,
    )


def _scopes(target: RunTarget, wanted: Collection[ResultScope]) -> list[ResultScope]:
    if target.judged.across_domains:
        return [ResultScope.EVERYWHERE]
    filtered = any(query.filters for query in target.queries)
    return [scope for scope in ResultScope if scope in wanted and (filtered or scope is not ResultScope.UNFILTERED)]


def _digest(query: JudgedQuery, judgments: Sequence[Judgment]) -> str:
    places = sorted(f"{judgment.key} {judgment.grade}" for judgment in judgments)
    return digest(query.text, json.dumps(dict(query.filters), sort_keys=True), *places)[:16]


def _run_scope(
    searcher: Searcher, target: RunTarget, scope: ResultScope, min_score: float | None, progress: Progress | None
) -> ScopeResult:
    run = _Run()
    queries = [*target.queries, *target.judged.unanswerable]
    for number, query in enumerate(queries, 1):
        _run_query(run, searcher, target, query, scope)
        if progress:
            progress(f"{target.judged.name}, {scope.value}", number, len(queries))
    for stage, before in STANDS_IN.items():
        for found in (run.places, run.items):
            if stage in found:
                found[stage] = {**found.get(before, {}), **found[stage]}
    p50, p95 = map(float, np.percentile(run.latencies_ms, (50, 95))) if run.latencies_ms else (None, None)
    return ScopeResult(
        scope=scope,
        stages=tuple(_stage_result(run, stage, target) for stage in sorted(run.places, key=_stage_order)),
        p50_ms=p50,
        p95_ms=p95,
        failures=tuple(run.failures),
        kinds=_kinds(run, target),
        confidence=confidence_of(run.top_scores, min_score),
        controls=_control_by_shuffling(run, target),
    )


def _control_by_shuffling(run: _Run, target: RunTarget) -> tuple[Control, ...]:
    """Return a control without searches: every answer is measured by another query's judgments."""
    found = shuffled(run.answers, target.relevant, target.domain, target.held)
    real = measure(run.places[LAST_STAGE], _grades(target), CONTROLLED)
    return tuple(control_of("shuffled", LAST_STAGE, name, real[name], found[name]) for name in CONTROLLED if found)


def _run_query(run: _Run, searcher: Searcher, target: RunTarget, query: JudgedQuery, scope: ResultScope) -> None:
    started = time.perf_counter()
    hits = JudgedHits(target.relevant.get(query.id, ()), target.domain, target.held)
    try:
        rankings = rankings_of(searcher, target, query, scope, hits)
    except (QueryError, StoreError) as error:
        run.failures.append(QueryFailure(query.id, str(error)))
        return
    run.latencies_ms.append((time.perf_counter() - started) * 1000)
    run.top_scores.append(TopScore(query.id, rankings.confidence, query.answerable))
    if not query.answerable:
        return
    run.answers[query.id] = rankings.stages.get(LAST_STAGE, ())
    for stage, ranking in rankings.stages.items():
        run.places.setdefault(stage, {})[query.id] = hits.places(ranking, by_document=hits.whole_documents)
        run.items.setdefault(stage, {})[query.id] = hits.places(ranking, by_document=False)


def rankings_of(
    searcher: Searcher, target: RunTarget, query: JudgedQuery, scope: ResultScope, hits: JudgedHits
) -> Rankings:
    """Ask for enough items to measure. The depth grows only while a ranking ends before its tenth document."""
    filters: Mapping[Domain, Filters] = {target.domain: query.filters} if query.filters else {}
    views = {target.domain: query.hidden.view} if query.hidden else {}
    for depth in DOCUMENT_DEPTHS if hits.whole_documents else (DEEPEST,):
        rankings = searcher.rankings(
            query.text,
            domains=None if scope is ResultScope.EVERYWHERE else (target.domain,),
            filters=filters if scope is ResultScope.DOMAIN else {},
            depth=depth,
            views=views,
        )
        cut_off = (found for found in rankings.stages.values() if len(found) >= depth)
        if all(len(hits.places(found, by_document=True)) == DEEPEST for found in cut_off):
            break
    return rankings


def _stage_result(run: _Run, stage: str, target: RunTarget) -> StageResult:
    grades = _grades(target)
    metrics = dict(measure(run.places[stage], grades))
    if any(judgment.whole_document for judgments in target.relevant.values() for judgment in judgments):
        metrics[ITEMS] = measure(run.items[stage], grades, ("Recall@10",))["Recall@10"]
    answered = sum(1 for found in run.places[stage].values() if found)
    return StageResult(stage, answered, MappingProxyType(metrics))


def _kinds(run: _Run, target: RunTarget) -> tuple[KindResult, ...]:
    of_kind: dict[str, list[str]] = {}
    for query in target.queries:
        if query.kind is not None:
            of_kind.setdefault(query.kind, []).append(query.id)
    places, grades = run.places[LAST_STAGE], _grades(target)
    return tuple(
        KindResult(kind, len(queries), measure(places, {query: grades[query] for query in queries}))
        for kind, queries in sorted(of_kind.items())
    )


def _grades(target: RunTarget) -> dict[str, dict[str, int]]:
    return {
        query: {judgment.key: judgment.grade for judgment in judgments} for query, judgments in target.relevant.items()
    }


def _stage_order(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else len(STAGES)
