"""Search one generation: run the four retrieval sources and combine their rankings."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial

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
from nornweave.config import PlanSettings, SourceWeights
from nornweave.core.errors import NornWeaveError
from nornweave.core.tracing import span
from nornweave.core.types import Domain
from nornweave.index.index import Index
from nornweave.index.port import Mask, Numbers, Scores
from nornweave.index.searching.ranked_chunks import NO_HITS, found
from nornweave.index.verified import NOTHING_VERIFIED, Verified
from nornweave.models.encoders.tokens import EncodedQuery

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
        encode: begins to encode a text with the generation's own encoder; the error may be a ``NornWeaveError``.
        executor: where quoted phrases are looked for, in the file; what is in memory is searched by the caller.
        within: which chunks may be found; ``None`` are all.
        deadline: ``time.monotonic()`` after which sources that have not answered are left out.
        verified: what the sources confirmed of the generation.
    """

    domain: Domain
    generation: Index
    plan: PlanSettings
    encode: Callable[[str], Future[EncodedQuery]]
    executor: Executor
    within: Mask | None = None
    deadline: float | None = None
    verified: Verified = NOTHING_VERIFIED

    @property
    def left_s(self) -> float | None:
        """Return the seconds until the deadline, below 0 after it; ``None`` without one."""
        return None if self.deadline is None else self.deadline - time.monotonic()


@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """The combined result of the retrieval sources.

    Attributes:
        findings: of the sources that answered.
        states: of all four.
        weights: what each source counts for, together 1.
        statistics: of the query's terms in the domain.
    """

    ranking: Ranking
    findings: Mapping[str, RetrieverFinding]
    states: Mapping[str, SourceState]
    reasons: Mapping[str, str]
    weights: Mapping[str, float]
    statistics: TermStatistics


@dataclass(frozen=True, slots=True)
class ExpandedOutcome:
    """The ranking of a question, with what led to it.

    Attributes:
        ranking: of all wordings together.
        outcomes: of each wording, the question itself first.
    """

    ranking: Ranking
    outcomes: tuple[SearchOutcome, ...]
    variants: tuple[str, ...]


def search(query: Query, context: SearchContext) -> SearchOutcome:
    """Run the four retrieval sources and combine their results.

    Returns:
        Every chunk that any source found; a source that failed or was late adds nothing and is named.
    """
    encoded = context.encode(query.text)  # elsewhere, while the words are looked for here
    statistics = statistics_of(query, context.generation)
    weighted = term_weights(query, statistics, context.plan)
    outcomes = {name: _outcome(name, task, context) for name, task in _word_tasks(query, weighted, context).items()}
    quoting = _quoting(query, outcomes[RetrievalSource.FULLTEXT][2])
    evidence = exact_evidence(query, statistics, context.generation, quoting, context.within)
    outcomes[RetrievalSource.DENSE] = _outcome(RetrievalSource.DENSE, partial(_dense, encoded, context), context)
    outcomes = {name: outcomes[name] for name in RetrievalSource}
    findings = {name.value: finding for name, (_, _, finding) in outcomes.items() if finding is not None}
    weights, common = (source_weights(plan.weights) for plan in (context.plan, ONE_SCALE))
    return SearchOutcome(
        ranking=_combine(findings, evidence, statistics, context, weights, common),
        findings=findings,
        states={name.value: state for name, (state, _, _) in outcomes.items()},
        reasons={name.value: reason for name, (_, reason, _) in outcomes.items() if reason},
        weights=weights,
        statistics=statistics,
    )


def _word_tasks(
    query: Query, weights: Mapping[str, float], context: SearchContext
) -> dict[RetrievalSource, Callable[[], RetrieverFinding]]:
    generation, plan, within = context.generation, context.plan, context.within
    fulltext = partial(search_fulltext, query, weights, generation, CANDIDATES, within)

    def with_phrases() -> RetrieverFinding:
        """Read texts for quoted phrases in a thread that may be late."""
        return context.executor.submit(copy_context().run, fulltext).result(context.left_s)

    return {
        RetrievalSource.SPARSE: partial(search_sparse, weights, generation, plan, CANDIDATES, within),
        RetrievalSource.FULLTEXT: with_phrases if query.phrases else fulltext,
        RetrievalSource.STRUCTURED: partial(search_structured, query, generation, CANDIDATES, within),
    }


def _dense(encoded: Future[EncodedQuery], context: SearchContext) -> RetrieverFinding:
    return search_dense(encoded.result(context.left_s), context.generation, CANDIDATES, context.within)


def _outcome(
    name: RetrievalSource, task: Callable[[], RetrieverFinding], context: SearchContext
) -> tuple[SourceState, str, RetrieverFinding | None]:
    """Run a retrieval source, unless the deadline has passed; return how it went, why it failed, what it found."""
    late: tuple[SourceState, str, None] = ("timeout", f"{name}: no answer before the deadline", None)
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
        return "failed", f"{name}: {error or type(error).__name__}", None
    return ("ok" if len(finding.hits) else "empty"), "", finding


def _combine(
    findings: Mapping[str, RetrieverFinding],
    evidence: ExactEvidence,
    statistics: TermStatistics,
    context: SearchContext,
    weights: Mapping[str, float],
    common: Mapping[str, float],
) -> Ranking:
    generation = context.generation
    if not findings:  # all failed or were late: what is known would only look like an answer
        return convex_combination(NO_HITS.numbers, [], weights)
    candidates = _union([*(finding.hits.numbers for finding in findings.values()), _proven(evidence)], generation.size)
    legs = [
        Leg(name, _scores(finding, candidates, generation), finding.hits.numbers) for name, finding in findings.items()
    ]
    if context.plan.combine == "rrf":
        return reciprocal_rank_fusion(candidates, legs, weights, evidence)
    ranking = convex_combination(candidates, legs, weights, evidence)
    dense = findings.get(RetrievalSource.DENSE)
    late = None
    if context.plan.late_interaction and dense and dense.query:
        late = late_interaction(dense.query, statistics.idf, ranking, candidates, generation)
    if late is not None:
        own = {**weights, LATE: context.plan.late_interaction}
        ranking = convex_combination(candidates, [*legs, late], own, evidence)
    elif weights == common:
        return ranking
    return on_one_scale(ranking, candidates, legs, common, evidence)


def _quoting(query: Query, fulltext: RetrieverFinding | None) -> Numbers:
    """Return the chunks that hold a quoted phrase, to which full text gives its highest score."""
    if fulltext is None or not query.phrases:
        return NO_HITS.numbers
    holding: Numbers = fulltext.hits.numbers[fulltext.hits.scores == 1]
    return holding


def _proven(evidence: ExactEvidence) -> Numbers:
    """Return the chunks with the most exact evidence; there may be none."""
    return NO_HITS.numbers if evidence.scores is None else found(evidence.scores, CANDIDATES).numbers


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
    if finding.query is None or not len(candidates):
        return np.zeros(len(candidates), np.float32)
    # From one byte a component a vector may be a little more than 1 like itself.
    return np.clip(generation.similarities(finding.query.vector, candidates), 0, 1)
