"""Search one generation: run the four retrieval sources and combine their rankings."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from nornweave.ask.search.combine import (
    ExactEvidence,
    Leg,
    Ranking,
    convex_combination,
    on_one_scale,
    reciprocal_rank_fusion,
)
from nornweave.ask.search.exact import exact_evidence
from nornweave.ask.search.late_interaction import LATE, late_interaction
from nornweave.ask.search.query import Query, TermStatistics, statistics_of
from nornweave.ask.search.records import RetrievalSource, SourceState
from nornweave.ask.search.retrievers import (
    RetrieverFinding,
    search_dense,
    search_fulltext,
    search_sparse,
    search_structured,
    term_weights,
)
from nornweave.ask.search.telling import BY_WORDS, Told, tell
from nornweave.config import PlanSettings, SourceWeights
from nornweave.core.errors import NornWeaveError
from nornweave.core.tracing import span
from nornweave.core.types import Domain, Fact
from nornweave.index.index import Index
from nornweave.index.outcomes import NOTHING_VERIFIED, Verified
from nornweave.index.port import NO_HITS, Mask, Numbers, Scores, found
from nornweave.index.query_map import QueryMap
from nornweave.models.encoders.port import EncodedQuery

log = logging.getLogger(__name__)

# Candidates of each retrieval source, whatever is asked for: combining and reranking need more than they return, and
# ten items must be the first ten of a hundred.
CANDIDATES = 200
ONE_SCALE = PlanSettings()
"""Its weights are what domains are compared by, whatever weights each has for itself."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SearchContext:
    """The settings of a question's search in one domain, the same for each of its wordings.

    Attributes:
        encode: starts to encode a text with the generation's own encoder; the error may be a ``NornWeaveError``.
        executor: the threads that search quoted phrases in the file; the caller searches in memory.
        within: the chunks that may be found; ``None`` means all.
        deadline: the ``time.monotonic()`` after which retrievers without an answer are left out.
        verified: the sources' confirmations of the generation.
        query_map: the domain's learnt map of queries; ``None`` if none is in force.
    """

    domain: Domain
    generation: Index
    plan: PlanSettings
    encode: Callable[[str], Future[EncodedQuery]]
    executor: Executor
    within: Mask | None = None
    deadline: float | None = None
    verified: Verified = NOTHING_VERIFIED
    query_map: QueryMap | None = None

    @property
    def left_s(self) -> float | None:
        """Return the seconds until the deadline, negative after it; ``None`` without one."""
        return None if self.deadline is None else self.deadline - time.monotonic()


class RetrieverOutcome(NamedTuple):
    """The result of a retriever, or why it did not answer."""

    state: SourceState
    reason: str = ""
    finding: RetrieverFinding | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """The combined result of the retrieval sources.

    Attributes:
        findings: retriever → its finding, for the retrievers that answered.
        states: retriever → its state, for all four.
        weights: the weight of each retriever; the sum is 1.
        statistics: the statistics of the query's terms in the domain.
        places: mark → its chunks (``ExactEvidence``).
        told: chunk → the setting in it that the question describes.
    """

    ranking: Ranking
    findings: Mapping[str, RetrieverFinding]
    states: Mapping[str, SourceState]
    reasons: Mapping[str, str]
    weights: Mapping[str, float]
    statistics: TermStatistics
    places: Mapping[str, Numbers]
    told: Mapping[int, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpandedOutcome:
    """The ranking of a question, with the searches behind it.

    Attributes:
        ranking: the ranking of all wordings together.
        outcomes: one for each wording, the question itself first; if ``past``, another one for commits and releases
            alone comes last.
        past: whether commits and releases were searched apart.
        folded: chunk → the chunks folded behind it, which are not in the ranking, best first.
    """

    ranking: Ranking
    outcomes: tuple[SearchOutcome, ...]
    variants: tuple[str, ...]
    folded: Mapping[int, Numbers] = field(default_factory=dict)
    past: bool = False

    @property
    def states(self) -> Mapping[str, SourceState]:
        """Retriever → its state for the question itself; ``ok`` also if it found something only for a variant."""
        found = {name for each in self.outcomes for name, state in each.states.items() if state == "ok"}
        first = self.outcomes[0].states
        return {name: "ok" if state == "empty" and name in found else state for name, state in first.items()}


def search(query: Query, context: SearchContext) -> SearchOutcome:
    """Run the four retrieval sources and combine their results.

    Returns:
        Every chunk that any retriever found. A retriever that failed or was late is named and adds nothing.
    """
    encoded = context.encode(query.text)  # elsewhere, while the words are looked for here
    statistics = statistics_of(query, context.generation)
    weighted = term_weights(query, statistics, context.plan)
    outcomes = {name: _retrieve(name, task, context) for name, task in _word_tasks(query, weighted, context).items()}
    quoting = _quoting(query, outcomes[RetrievalSource.FULLTEXT].finding)
    outcomes[RetrievalSource.DENSE] = _retrieve(
        RetrievalSource.DENSE,
        lambda: search_dense(
            encoded.result(context.left_s), context.generation, CANDIDATES, context.within, context.query_map
        ),
        context,
    )
    retrieved = {name.value: outcomes[name] for name in RetrievalSource}
    findings = {name: each.finding for name, each in retrieved.items() if each.finding is not None}
    told = _tell(query, statistics, findings, context)
    scores = None if told is None else told.scores
    evidence = exact_evidence(query, statistics, context.generation, quoting, context.within, scores)
    return SearchOutcome(
        ranking=_combine(findings, evidence, statistics.idf, context),
        findings=findings,
        states={name: each.state for name, each in retrieved.items()},
        reasons={name: each.reason for name, each in retrieved.items() if each.reason},
        weights=source_weights(context.plan.weights),
        statistics=statistics,
        places=evidence.places,
        told={} if told is None else told.facts,
    )


def _tell(
    query: Query, statistics: TermStatistics, findings: Mapping[str, RetrieverFinding], context: SearchContext
) -> Told | None:
    """Return what ``tell`` says of the chunks that were found; ``None`` if dense retrieval did not answer."""
    dense = findings.get(_DENSE)
    if dense is None or dense.query is None:
        return None
    near = [finding.hits.numbers for name, finding in findings.items() if name in _NEAR]
    fulltext = findings.get(RetrievalSource.FULLTEXT.value)
    by_words = fulltext.hits.numbers[:BY_WORDS] if fulltext else dense.hits.numbers[:0]
    return tell(query, dense.query, statistics, context.generation, near, by_words)


def _word_tasks(
    query: Query, weights: Mapping[str, float], context: SearchContext
) -> dict[RetrievalSource, Callable[[], RetrieverFinding]]:
    generation, plan, within = context.generation, context.plan, context.within
    fulltext = partial(search_fulltext, query, weights, generation, CANDIDATES, within)

    def with_phrases() -> RetrieverFinding:
        """Run full text search in a thread, because quoted phrases are read from the file and may be late."""
        return context.executor.submit(copy_context().run, fulltext).result(context.left_s)

    return {
        RetrievalSource.SPARSE: partial(search_sparse, weights, generation, plan, CANDIDATES, within),
        RetrievalSource.FULLTEXT: with_phrases if query.phrases else fulltext,
        RetrievalSource.STRUCTURED: partial(search_structured, query, generation, CANDIDATES, within),
    }


def _retrieve(name: RetrievalSource, task: Callable[[], RetrieverFinding], context: SearchContext) -> RetrieverOutcome:
    """Run a retriever; return its finding, or why there is none: it failed, or the deadline has passed."""
    late = RetrieverOutcome("timeout", f"{name}: no answer before the deadline")
    if context.left_s is not None and context.left_s <= 0:
        return late
    try:
        with span(f"search {name}"):
            finding = task()
    except TimeoutError:
        return late
    except Exception as error:
        if not isinstance(error, NornWeaveError):
            log.exception("retrieval source %s failed", name)
        return RetrieverOutcome("failed", f"{name}: {error or type(error).__name__}")
    return RetrieverOutcome("ok" if len(finding.hits) else "empty", finding=finding)


def _combine(
    findings: Mapping[str, RetrieverFinding], evidence: ExactEvidence, idf: Mapping[str, float], context: SearchContext
) -> Ranking:
    generation = context.generation
    weights, common = (source_weights(plan.weights) for plan in (context.plan, ONE_SCALE))
    if not findings:  # all failed or were late: what is known would only look like an answer
        return convex_combination(NO_HITS.numbers, [], weights)
    proven = NO_HITS.numbers if evidence.scores is None else found(evidence.scores, CANDIDATES).numbers
    candidates = _union([*(finding.hits.numbers for finding in findings.values()), proven], generation.size)
    legs = [
        Leg(name, _scores(finding, candidates, generation), finding.hits.numbers) for name, finding in findings.items()
    ]
    if context.plan.combine == "rrf":
        return reciprocal_rank_fusion(candidates, legs, weights, evidence)
    ranking = convex_combination(candidates, legs, weights, evidence)
    dense = findings.get(RetrievalSource.DENSE)
    late = None
    if context.plan.late_interaction and dense and dense.query:
        late = late_interaction(dense.query, idf, ranking, candidates, generation)
    if late is not None:
        own = {**weights, LATE: context.plan.late_interaction}
        ranking = convex_combination(candidates, [*legs, late], own, evidence)
    elif weights == common and (dense is None or dense.unmapped is None):
        return ranking
    return on_one_scale(ranking, candidates, _unmapped(legs, dense, candidates, generation), common, evidence)


def _unmapped(
    legs: Sequence[Leg], dense: RetrieverFinding | None, candidates: Numbers, generation: Index
) -> Sequence[Leg]:
    """Return the legs, but with dense scores by the query's vector from before the domain's map changed it.

    The map only decides the order, because similarities after it do not compare between domains, and do not tell
    whether something answers.
    """
    if dense is None or dense.unmapped is None:
        return legs
    plain = Leg(_DENSE, np.clip(generation.similarities(dense.unmapped, candidates), 0, 1), NO_HITS.numbers)
    return [plain if leg.name == _DENSE else leg for leg in legs]


_DENSE = RetrievalSource.DENSE.value
_NEAR = frozenset({_DENSE, RetrievalSource.SPARSE.value})


def _quoting(query: Query, fulltext: RetrieverFinding | None) -> Numbers:
    """Return the chunks that hold a quoted phrase, which are those with full text's highest score, 1."""
    if fulltext is None or not query.phrases:
        return NO_HITS.numbers
    holding: Numbers = fulltext.hits.numbers[fulltext.hits.scores == 1]
    return holding


def source_weights(weights: SourceWeights) -> dict[str, float]:
    """Return the weight of each retriever; the weights add up to 1."""
    stated = {source.value: float(getattr(weights, source.value)) for source in RetrievalSource}
    whole = sum(stated.values())
    return {name: weight / whole for name, weight in stated.items()}


def _union(numbers: Sequence[Numbers], size: int) -> Numbers:
    """Return the distinct chunks, ascending."""
    named = np.zeros(size, np.bool_)
    for some in numbers:
        named[some] = True
    return np.flatnonzero(named).astype(np.int32)


def _scores(finding: RetrieverFinding, candidates: Numbers, generation: Index) -> Scores:
    """Return a score for every candidate, because a retriever's 101st chunk is nearly as good as its 100th."""
    if finding.scores is not None:
        return finding.scores[candidates]
    if finding.query is None or not len(candidates):
        return np.zeros(len(candidates), np.float32)
    scores, others = np.empty(len(candidates), np.float32), np.ones(len(candidates), np.bool_)
    own = np.searchsorted(candidates, finding.hits.numbers)
    scores[own], others[own] = finding.hits.scores, False
    scores[others] = generation.similarities(finding.query.vector, candidates[others])
    # From one byte a component a vector may be a little more than 1 like itself.
    return np.clip(scores, 0, 1)
