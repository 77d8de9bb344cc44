"""Search one generation: run the four retrieval sources and combine their rankings.

The setting that a question describes is found, too: who does not know what it is called asks with other words than its
name. A chunk states many settings, and its vector is of all of them. Here each setting of the nearest chunks is
compared alone: its name, what it belongs to, and the words that describe it, by their meaning and by the words of the
question.
"""

from __future__ import annotations

import logging
import math
import re
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
from nornweave.ask.search.exact import (
    ASKS_FOR_VALUE,
    ASKS_VALUE,
    ASKS_WHERE,
    LEAST,
    MEANS_DEFAULT,
    exact_evidence,
    kinds_asked,
)
from nornweave.ask.search.late_interaction import LATE, late_interaction
from nornweave.ask.search.query import FLAG, Query, TermStatistics, statistics_of
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
from nornweave.core.text.analyzer import FUNCTION_TERMS, sequence
from nornweave.core.text.index_fields import is_aside, is_data, is_identifier, release_of
from nornweave.core.tracing import span
from nornweave.core.types import Domain, Fact
from nornweave.disagree.facts.statement import settings_in
from nornweave.index.index import Index
from nornweave.index.manifest import QueryMap
from nornweave.index.outcomes import NOTHING_VERIFIED, Verified
from nornweave.index.port import NO_HITS, Mask, Numbers, Scores, found
from nornweave.index.records import StoredChunk
from nornweave.models.encoders.port import EncodedQuery

log = logging.getLogger(__name__)

# Candidates of each retrieval source, whatever is asked for: combining and reranking need more than they return, and
# ten items must be the first ten of a hundred.
CANDIDATES = 200
ONE_SCALE = PlanSettings()
"""Its weights are what domains are compared by, whatever weights each has for itself."""

NEAR = 16
"""Chunks of each retriever whose settings are looked at."""
MOST = 12
"""Settings whose words are compared, those that mean most nearly what is asked; reading words takes the time."""
OTHER_UNIT = 0.85
"""Share for a time where something is counted, and for what says no time where one asks how long."""
WORDS_SHARE = 0.5
"""What the words of the question count that a setting is described with, beside its meaning."""
WORDS_POWER = 2.5
"""How fast what words alone tell falls with the share of the question that they are."""
TEXT_SAID = 0.5
"""The share of the question that words of a text setting say, unless a default is asked for. A number is of the kind
that is asked for; a text may be anything."""
BY_WORDS = 3
"""Chunks that full text search finds, of which one may hold all words of the question."""
HOLDING, HELD_LESS = 0.7, 0.2
"""Share of the question's words that a chunk holds that is about what is asked; a chunk that holds so much less than
such a one states the setting of another thing."""
CHANCE, CERTAIN = 0.2, 0.9
"""Both together: what any setting has, and what leaves no doubt."""
PARTS = 20
"""A file of values in more passages than these holds records, and configures nothing."""
_TIMED = re.compile(
    r"\bhow (?:long|often|soon|late|old|frequently)\b|\b(?:milli)?seconds?\b|\b(?:minute|hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\bhow (?:big|deep|far|few|high|large|many|much|small|wide)\b|\bwhat (?:port|size)\b", re.IGNORECASE
)
_ASKS = frozenset(sequence(" ".join((*ASKS_FOR_VALUE, "long many much often use used"))))


_MEASURED = frozenset(sequence("maximum minimum number amount size limit limits quota value per type"))
"""Terms that say which value of a thing is asked for."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """How well a setting of each chunk fits the question.

    Attributes:
        scores: one per chunk, in [0, 1].
        facts: chunk → the fact that fits best.
    """

    scores: Scores
    facts: Mapping[int, Fact]


def _terms_of(chunk: StoredChunk) -> frozenset[str]:
    return frozenset(sequence(f"{chunk.path} {chunk.title or ''} {chunk.section or ''} {chunk.content}"))


def tell(
    query: Query,
    encoded: EncodedQuery,
    statistics: TermStatistics,
    generation: Index,
    near: Sequence[Numbers],
    by_words: Numbers,
) -> Told | None:
    """Return how well each chunk's settings fit the setting whose value a question asks for.

    Meaning is compared if the generation has vectors of the descriptions of settings.

    Args:
        encoded: the query, encoded by the encoder of the generation.
        near: the chunks that each retriever found, best first.
        by_words: the best chunks of full text search.

    Returns:
        ``None`` if the question asks for no value, if it calls a thing by its name, or if no setting fits.
    """
    is_named = any(is_identifier(word.written) or word.whole in ASKS_WHERE for word in query.words)
    if is_named or not ASKS_VALUE.search(query.text) or FLAG.search(query.text):
        return None
    words = dict.fromkeys(sequence(MEANS_DEFAULT.sub("", query.text)))
    weights = {term: statistics.idf[term] for term in words if term in statistics.idf}
    weights = {term: weight for term, weight in weights.items() if term not in FUNCTION_TERMS | _ASKS}
    whole, kinds = math.fsum(weights.values()) or 1.0, kinds_asked(query.text)
    is_timed, is_counted = (bool(asks.search(query.text)) for asks in (_TIMED, _COUNTED))
    asks_default = bool(MEANS_DEFAULT.search(query.text)) or "default" in query.text.lower()
    numbers = dict.fromkeys(number for found in near for number in found[:NEAR].tolist())
    alike = generation.setting_similarities(encoded.vector, np.array([*numbers], np.int32))
    nearest = sorted((-like, number, place) for number, own in alike.items() for place, like in own.items())[:MOST]
    chosen = {(number, place): -like for like, number, place in nearest}
    read = np.unique(np.array([number for number, _ in chosen] or [*numbers], np.int32))
    told: dict[int, tuple[float, Fact]] = {}
    chunks = generation.chunks(np.union1d(read, by_words))
    things = weights.keys() - _MEASURED
    named = math.fsum(weights[term] for term in things) or 1.0

    def held_by(number: int) -> float:
        """Return the share of the things that a question names which a chunk holds."""
        return math.fsum(weights[term] for term in things & _terms_of(chunks[number])) / named

    most = max((held_by(number) for number in by_words.tolist() if number in chunks), default=0.0)
    for number in [number for number in read.tolist() if number in chunks]:  # others are hidden from who asks
        chunk = chunks[number]
        if most >= HOLDING and held_by(number) < most - HELD_LESS:
            continue
        is_records = is_data(chunk.path) and generation.named([key := f"path:{chunk.path.lower()}"])[key].size > PARTS
        if is_aside(chunk.path) or is_records or release_of(chunk.path, chunk.title, chunk.section, chunk.metadata):
            continue
        for place, said in settings_in(chunk.facts, chunk.content, chunk.char_range[0]):
            fact, like = chunk.facts[place], chosen.get((number, place))
            if fact.kind not in kinds or (chosen and like is None):
                continue
            held = math.fsum(weights[term] for term in weights.keys() & {*sequence(said)}) / whole
            is_meant = asks_default and fact.attribute == "default"
            if fact.kind == "string" and held < TEXT_SAID and not is_meant:
                continue
            is_time = fact.unit == "s" or _TIMED.search(said) is not None
            share = OTHER_UNIT if is_time != is_timed and (is_timed or is_counted) else 1.0
            if like is None:
                score = share * held**WORDS_POWER
            else:
                score = (share * (like + WORDS_SHARE * held) - CHANCE) / (CERTAIN - CHANCE)
            if score > max(LEAST, told.get(number, (0.0,))[0]):
                told[number] = min(score, 1.0), fact
    if not told:
        return None
    scores = np.zeros(generation.size, np.float32)
    scores[[*told]] = [score for score, _ in told.values()]
    return Told(scores, {number: fact for number, (_, fact) in told.items()})
