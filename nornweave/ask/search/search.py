"""Search one generation: run the four retrieval sources and combine their rankings."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial

import numpy as np

from nornweave.ask.search.combine import (
    Evidence,
    Leg,
    Ranking,
    convex_combination,
    on_one_scale,
    reciprocal_rank_fusion,
)
from nornweave.ask.search.exact import exact_evidence
from nornweave.ask.search.query import Query
from nornweave.ask.search.records import RetrievalSource, SourceState
from nornweave.ask.search.retrievers import (
    RetrieverFinding,
    search_dense,
    search_fulltext,
    search_sparse,
    search_structured,
    term_weights,
)
from nornweave.config import PlanSettings, SourceWeights
from nornweave.core.errors import NornWeaveError
from nornweave.core.tracing import in_span
from nornweave.core.types import Domain
from nornweave.index.index import Index
from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.ranked_chunks import NO_HITS, found
from nornweave.index.verified import NOTHING_VERIFIED, Verified

log = logging.getLogger(__name__)

# Candidates of each retrieval source, whatever is asked for: combining and reranking need more than they return, and
# ten items must be the first ten of a hundred.
CANDIDATES = 200
ONE_SCALE = PlanSettings()
"""Its weights are what domains are compared by, whatever weights each has for itself."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SearchContext:
    """What a question searches one domain with: the same for each of its wordings.

    Attributes:
        domain: whose chunks are searched.
        generation: open for reading.
        plan: the domain's weights.
        encode: text → vector, with the generation's own encoder; may raise ``NornWeaveError``.
        executor: where quoted phrases are looked for, in the file; what is in memory is searched by the caller.
        dense_executor: where dense retrieval runs, which waits for an encoder.
        within: which chunks may be found; ``None`` are all.
        deadline: ``time.monotonic()`` after which sources that have not answered are left out.
        depth: candidates per source.
        verified: what the sources confirmed of the generation.
    """

    domain: Domain
    generation: Index
    plan: PlanSettings
    encode: Callable[[str], Vectors]
    executor: Executor
    dense_executor: Executor
    within: Mask | None = None
    deadline: float | None = None
    depth: int = CANDIDATES
    verified: Verified = NOTHING_VERIFIED


@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """The combined result of the retrieval sources.

    Attributes:
        findings: of the sources that answered.
        states: of all four.
        reasons: why a source did not answer.
        weights: what each source counts for, together 1.
    """

    ranking: Ranking
    findings: Mapping[str, RetrieverFinding]
    states: Mapping[str, SourceState]
    reasons: Mapping[str, str]
    weights: Mapping[str, float]


def search(query: Query, context: SearchContext) -> SearchOutcome:
    """Run the four retrieval sources concurrently and combine their results.

    Returns:
        Every chunk that any source found; a source that failed or was late adds nothing and is named.
    """
    futures = _run(query, context)
    outcomes = {name.value: _outcome(name.value, futures[name.value]) for name in RetrievalSource}
    findings = {name: finding for name, (_, _, finding) in outcomes.items() if finding is not None}
    weights, common = (source_weights(plan.weights) for plan in (context.plan, ONE_SCALE))
    return SearchOutcome(
        ranking=_combine(query, findings, context, weights, common),
        findings=findings,
        states={name: state for name, (state, _, _) in outcomes.items()},
        reasons={name: reason for name, (_, reason, _) in outcomes.items() if reason},
        weights=weights,
    )


def _run(query: Query, context: SearchContext) -> dict[str, Future[RetrieverFinding]]:
    """Hand to other threads what waits, do the rest here meanwhile; return when all is done or too late."""
    deadline = context.deadline
    futures = {}
    tasks = _tasks(query, context)
    for name, task in tasks.items():
        if name == RetrievalSource.DENSE:
            futures[name] = context.dense_executor.submit(copy_context().run, task)
        elif name == RetrievalSource.FULLTEXT and query.phrases:
            futures[name] = context.executor.submit(copy_context().run, task)
    # The others take some 0.1 ms each, out of memory: handing them to another thread would cost more than it gains.
    futures |= {name: _here(task, deadline) for name, task in tasks.items() if name not in futures}
    wait(futures.values(), None if deadline is None else max(0.0, deadline - time.monotonic()))
    return futures


def _here(task: Callable[[], RetrieverFinding], deadline: float | None) -> Future[RetrieverFinding]:
    """Run a task at once, unless the deadline has passed."""
    future: Future[RetrieverFinding] = Future()
    if deadline is not None and time.monotonic() >= deadline:
        return future
    try:
        future.set_result(task())
    except Exception as error:  # as a pool does: who asks for the result gets the error
        future.set_exception(error)
    return future


def _tasks(query: Query, context: SearchContext) -> dict[str, Callable[[], RetrieverFinding]]:
    generation, plan, depth, within = context.generation, context.plan, context.depth, context.within
    weights = term_weights(query, generation, plan)

    def dense() -> RetrieverFinding:
        return search_dense(context.encode(query.text), generation, depth, within)

    tasks: dict[str, Callable[[], RetrieverFinding]] = {
        RetrievalSource.DENSE.value: dense,
        RetrievalSource.SPARSE.value: partial(search_sparse, weights, generation, plan, depth, within),
        RetrievalSource.FULLTEXT.value: partial(search_fulltext, query, weights, generation, depth, within),
        RetrievalSource.STRUCTURED.value: partial(search_structured, query, generation, depth, within),
    }
    return {name: in_span(f"search {name}", task) for name, task in tasks.items()}


def _outcome(name: str, future: Future[RetrieverFinding]) -> tuple[SourceState, str, RetrieverFinding | None]:
    if not future.done():
        future.cancel()
        return "timeout", f"{name}: no answer before the deadline", None
    error = future.exception()
    if error is None:
        finding = future.result()
        return ("ok" if len(finding.hits) else "empty"), "", finding
    if not isinstance(error, NornWeaveError):
        log.error("retrieval source %s failed", name, exc_info=error)
    return "failed", f"{name}: {error or type(error).__name__}", None


def _combine(
    query: Query,
    findings: Mapping[str, RetrieverFinding],
    context: SearchContext,
    weights: Mapping[str, float],
    common: Mapping[str, float],
) -> Ranking:
    generation = context.generation
    if not findings:  # all failed or were late: what is known would only look like an answer
        return convex_combination(NO_HITS.numbers, [], weights)
    evidence = exact_evidence(query.text, generation, _quoting(query, findings), context.within)
    candidates = _union([*(finding.hits.numbers for finding in findings.values()), _proven(evidence)], generation.size)
    legs = [
        Leg(name, _scores(finding, candidates, generation), finding.hits.numbers) for name, finding in findings.items()
    ]
    if context.plan.combine == "rrf":
        return reciprocal_rank_fusion(candidates, legs, weights, evidence)
    ranking = convex_combination(candidates, legs, weights, evidence)
    return ranking if weights == common else on_one_scale(ranking, candidates, legs, common, evidence)


def _quoting(query: Query, findings: Mapping[str, RetrieverFinding]) -> Numbers:
    """Return the chunks that hold a quoted phrase, to which full text gives its highest score."""
    finding = findings.get(RetrievalSource.FULLTEXT) if query.phrases else None
    return finding.hits.numbers[finding.hits.scores == 1] if finding else NO_HITS.numbers


def _proven(evidence: Evidence) -> Numbers:
    """Return the chunks with the most exact evidence; there may be none."""
    return found(evidence.scores, CANDIDATES).numbers


def source_weights(weights: SourceWeights) -> dict[str, float]:
    """Return the share of each retrieval source, together 1."""
    stated = {source.value: float(getattr(weights, source.value)) for source in RetrievalSource}
    whole = sum(stated.values())
    return {name: weight / whole for name, weight in stated.items()}


def _union(numbers: Sequence[Numbers], size: int) -> Numbers:
    """Return distinct chunks, ascending."""
    named = np.zeros(size, np.bool_)
    for some in numbers:
        named[some] = True
    return np.flatnonzero(named).astype(np.int32)


def _scores(finding: RetrieverFinding, candidates: Numbers, generation: Index) -> Scores:
    """Score every candidate, not only the source's own hits: what it ranks 101st counts for nearly as much."""
    if finding.scores is not None:
        return finding.scores[candidates]
    if finding.vector is None or not len(candidates):
        return np.zeros(len(candidates), np.float32)
    # From one byte a component a vector may be a little more than 1 like itself.
    return np.clip(generation.similarities(finding.vector, candidates), 0, 1)
