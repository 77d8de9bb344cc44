"""The agent of one domain: it answers from the published generation, and reports its abilities and health.

Reports have its content, counts of the frequent values of its filters, notes on metadata that could not be read, and
statistics of its requests. The encoder of its questions is loaded once, and refused if it does not fit the index.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from statistics import quantiles

from nornweave.ask.search.exact import asks_for_newest
from nornweave.ask.search.filters import has_few_values, read_filters
from nornweave.ask.search.freshness import Freshness
from nornweave.ask.search.history import of_present
from nornweave.ask.search.query import check_query, read_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.recall import leaving_out, rank_among, recall_from, search_expanded
from nornweave.ask.search.records import AgentState, DomainRank, Filters, RecallResponse
from nornweave.ask.search.search import SearchContext
from nornweave.carry.publication import Following
from nornweave.config import DomainSettings, FilterSettings, PlanSettings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.errors import EncoderError, QueryError, StoreError
from nornweave.core.tracing import retrieval_span
from nornweave.core.types import NO_METADATA, Domain, JsonValue, present
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.index import Index
from nornweave.index.manifest import QueryMap
from nornweave.index.outcomes import NOTHING_VERIFIED
from nornweave.index.port import Mask, Numbers
from nornweave.index.searching.conditions import Condition
from nornweave.index.searching.counting import UnreadValues, Value, ValueCounts
from nornweave.index.searching.visibility import MOST_VISIBILITIES
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.port import EncodedQuery, QueryMemo, same_space
from nornweave.models.rerankers import RerankerSlot

log = logging.getLogger(__name__)

UNPUBLISHED = "nothing is published yet; run `nornweave sync`"
# Enough for a stable 95th percentile, recent enough to show a change.
_LATENCIES = 1000

# Of a filter, as many frequent values as a reader looks through; on the page, which shows all filters, fewer.
FREQUENT_VALUES, FACET_VALUES = 20, 8
UNREAD_EXAMPLES = 5

# While an encoder is being loaded, questions wait in threads of their own, or they would hold all that the other
# retrievers and domains run on.
THREADS = 8


class Agent:
    """Answers questions from one domain. Every method may be called from any thread."""

    def __init__(
        self,
        domain: Domain,
        settings: DomainSettings,
        generation: ServedGeneration,
        *,
        load_encoder: Callable[[], QueryMemo],
        reranker: RerankerSlot,
        executor: Executor,
        following: Callable[[], Following | None] = lambda: None,
        freshness: Freshness | None = None,
    ) -> None:
        """Store the parts. Nothing is loaded before ``start``."""
        self.domain = domain
        self.settings = settings
        self.generation = generation
        self.encoding = QueryEncoder(load_encoder, settings.agent_id)
        self.reranker = reranker
        self.following = following
        self.freshness = freshness
        self.query_map_of: Callable[[Index], QueryMap | None] = attrgetter("query_map")
        self.statistics = Statistics()
        self._executor = executor
        self._started = False
        self._closing = False
        self._counts = FilterCountsMemo()

    @property
    def agent_id(self) -> str:
        """Return the agent's name."""
        return self.settings.agent_id

    @property
    def state(self) -> AgentState:
        """Return the agent's state. A ``DEGRADED`` agent answers, but with a problem."""
        if self._closing:
            return AgentState.DRAINING if self.generation.is_used else AgentState.OFFLINE
        if not self._started:
            return AgentState.STARTING
        return AgentState.DEGRADED if problems(self) else AgentState.READY

    @property
    def ingestion_problem(self) -> str | None:
        """Return why the agent accepts no documents: it is closing or has a problem; ``None`` if it accepts them.

        An agent without a published generation accepts documents.
        """
        if self._closing:
            return "it is shutting down"
        found = problems(self) if self._started else []
        return "; ".join(problem for problem in found if problem != UNPUBLISHED) or None

    def start(self) -> None:
        """Load the encoder and the published generation. A failure to load is recorded as a problem and not raised."""
        try:
            self.encoder()
            if self.settings.plan.rerank and not self._closing:
                self.reranker.start()
            with self.generation.use(OPERATOR) as generation:
                # The first search of a process reads pages and compiles kernels, 30 ms that no user should wait for.
                question = Question(text=self.settings.name, now=present(), viewer=OPERATOR)
                self._recall(question, (), generation)
        except StoreError as error:
            log.info("%s: %s", self.agent_id, error)
        finally:  # whatever went wrong, a question tries again
            self._started = True

    def refresh(self) -> bool:
        """Swap to the published generation if it is new; return whether it was."""
        if self._closing:
            return False
        is_new = self.generation.refresh()
        if self.freshness:
            self.freshness.keep(self.generation.name)
        if not is_new:
            return False
        log.info("%s answers from %s now", self.agent_id, self.generation.name)
        return True

    def close(self) -> None:
        """Refuse new questions, and let the running ones end."""
        self._closing = True
        self.generation.close()

    def encoder(self) -> QueryMemo | None:
        """Return the domain's encoder, loaded once; ``None`` when it cannot be loaded."""
        return self.encoding.load()

    def recall(self, question: Question) -> RecallResponse:
        """Answer from the published generation, with this domain's part of the question's filters.

        Returns:
            At most ``top_k`` items, best first, ties by chunk number, and the state of each retriever.

        Raises:
            QueryError: the query, ``top_k`` or a filter is wrong.
            NoGenerationError: nothing is published yet.
            StoreError: no generation can be read, or the agent is shutting down.
        """
        started = time.monotonic()
        try:
            check_query(question.text, question.top_k)
            question = question.focused()
            conditions = self.conditions(question.filters.get(self.domain, NO_METADATA))
            with (
                retrieval_span(self.domain.value, question.text, question.top_k),
                self.generation.using(question.viewer, question.as_of) as (generation, notice),
            ):
                response = self._recall(question, conditions, self._visible(question, generation), notice)
        except (QueryError, StoreError):
            self.statistics.failed()
            raise
        response = replace(response, latency_ms=round((time.monotonic() - started) * 1000, 2))
        self.statistics.answered(response.latency_ms, response.total_searched)
        return response

    def conditions(self, filters: Filters) -> tuple[Condition, ...]:
        """Return the conditions for filters of this domain; raises ``QueryError`` for an unknown or wrong filter."""
        return read_filters(self.settings.filters, filters, f"filters.{self.domain.value}")

    def altered(
        self,
        *,
        plan: PlanSettings | None = None,
        encoder: Encoder | None = None,
        query_map_of: Callable[[Index], QueryMap | None] | None = None,
    ) -> Agent:
        """Return a copy with another plan, encoder or map, if given. Do not close it: it shares the generation."""
        other = copy.copy(self)
        other.statistics = Statistics()
        if plan:
            other.settings = self.settings.model_copy(update={"plan": plan})
        if encoder:
            other.encoding = QueryEncoder(lambda: QueryMemo(encoder), self.agent_id)
        if query_map_of:
            other.query_map_of = query_map_of
        return other

    def paths(self, viewer: Viewer) -> Collection[str]:
        """Return the source-relative paths of the documents that a viewer can find; raises ``StoreError``."""
        with self.generation.use(viewer) as generation:
            return generation.paths()

    def filter_counts(self, viewer: Viewer) -> Mapping[str, FilterCounts]:
        """Return counts of the filters' values in a viewer's documents, cached by generation; empty if unreadable."""
        try:
            with self.generation.use(viewer) as generation:
                return self._counts.of(generation, self.settings.filters)
        except StoreError as error:
            log.info("%s: %s", self.agent_id, error)
            return {}

    def facets(self, viewer: Viewer) -> dict[str, list[tuple[str, int]]]:
        """Return filter → its most frequent values, each with the number of chunks that a viewer may see."""
        return facets_of(self.filter_counts(viewer))

    def describe(self, viewer: Viewer) -> dict[str, JsonValue]:
        """Return the agent's description: filters, and sizes as far as a viewer may see the domain."""
        return describe(self, viewer)

    def health(self, viewer: Viewer) -> dict[str, JsonValue]:
        """Return the agent's health. Only operators get the statistics of all requests."""
        return health(self, viewer)

    def _visible(self, question: Question, generation: Index) -> Index:
        """Return the index that the question's view of this domain makes, or the generation if there is no view."""
        view = question.views.get(self.domain)
        if view is None:
            return generation
        memo = self.encoder()
        return view(generation, memo.encoder if memo else None)

    def rank_of(self, question: Question, numbers_in: Callable[[Index], Numbers]) -> DomainRank | None:
        """Return the best rank of some chunks, or ``None`` if no retriever found any of them; raises as ``recall``.

        Args:
            numbers_in: returns the numbers of these chunks in a generation.
        """
        conditions = self.conditions(question.filters.get(self.domain, NO_METADATA))
        with self.generation.using(question.viewer, question.as_of) as (generation, _):
            question, within, _ = leaving_out(question, generation)
            searched = search_expanded(question, self._context(question, conditions, generation, within))
            return rank_among(searched, numbers_in(generation), question.top_k)

    def _recall(
        self, question: Question, conditions: tuple[Condition, ...], generation: Index, notice: str | None = None
    ) -> RecallResponse:
        question, within, left_out = leaving_out(question, generation)
        context = self._context(question, conditions, generation, within)
        response = replace(recall_from(question, context, self.settings, self.reranker), left_out=left_out)
        if self.freshness:
            sees_all = not generation.part
            response = self.freshness.add_freshness(response, context.verified, question.viewer, sees_all=sees_all)
        return replace(response, notices=(notice, *response.notices)) if notice else response

    def _context(
        self, question: Question, conditions: tuple[Condition, ...], generation: Index, within: Mask | None
    ) -> SearchContext:
        if conditions:
            met = generation.within(conditions)
            within = met if within is None else within & met
        return SearchContext(
            domain=self.domain,
            generation=generation
            if asks_for_newest(read_query(question.text))
            else of_present(question.text, conditions, generation),
            plan=self.settings.plan,
            encode=lambda text: self.encoding.encode(text, generation.meta),
            executor=self._executor,
            within=within,
            deadline=question.deadline.at if question.deadline else None,
            verified=self.freshness.begin(generation.meta["generation"]) if self.freshness else NOTHING_VERIFIED,
            query_map=self.query_map_of(generation) if self.settings.plan.query_map else None,
        )


class Statistics:
    """Counts requests. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._failures = 0
        self._searched = 0
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)

    def answered(self, latency_ms: float, searched: int) -> None:
        """Count an answer."""
        with self._lock:
            self._requests += 1
            self._searched += searched
            self._latencies.append(latency_ms)

    def failed(self) -> None:
        """Count a request without an answer."""
        with self._lock:
            self._requests += 1
            self._failures += 1

    def as_json(self) -> dict[str, JsonValue]:
        """Return totals, and percentiles of the last 1,000 latencies in milliseconds."""
        with self._lock:
            latencies = sorted(self._latencies)
            totals: dict[str, JsonValue] = {
                "requests": self._requests,
                "failures": self._failures,
                "total_searched": self._searched,
            }
        if len(latencies) < 2:
            return {**totals, "latency_ms": {"p50": latencies[0], "p95": latencies[0]} if latencies else None}
        cuts = quantiles(latencies, n=20, method="inclusive")
        return {**totals, "latency_ms": {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2)}}


def problems(agent: Agent) -> list[str]:
    """Return the agent's problems as sentences; empty if there are none."""
    following = agent.following()
    found = (
        _generation_problem(agent),
        agent.encoding.problem,
        agent.encoding.mismatch(agent.generation.meta),
        *(following.problems if following else ()),
    )
    return [problem for problem in found if problem]


def _generation_problem(agent: Agent) -> str | None:
    return agent.generation.problem or (None if agent.generation.name else UNPUBLISHED)


def describe(agent: Agent, viewer: Viewer) -> dict[str, JsonValue]:
    """Return an agent's description: filters, and sizes as far as a viewer may see the domain."""
    settings = agent.settings
    return {
        "agent_id": agent.agent_id,
        "domain_id": agent.domain.value,
        "name": settings.name,
        "description": settings.description,
        "chunking": settings.chunking.model_dump(mode="json"),
        "embedding": settings.embedding.model_dump(mode="json"),
        "reranking": {"model": settings.reranking.model, "state": str(agent.reranker.state)},
        "filters": described_filters(settings.filters, agent.filter_counts(viewer)),
        "plan": settings.plan.model_dump(mode="json"),
        **_index_facts(agent, viewer),
    }


def _index_facts(agent: Agent, viewer: Viewer) -> Mapping[str, JsonValue]:
    try:
        with agent.generation.use(viewer) as generation:
            return {
                "generation": generation.meta["generation"],
                "indexed_at": generation.built_at,
                "documents": generation.document_count,
                "chunks": generation.chunk_count,
            }
    except StoreError as error:
        return {"generation": None, "indexed_at": None, "documents": 0, "chunks": 0, "reason": str(error)}


def health(agent: Agent, viewer: Viewer) -> dict[str, JsonValue]:
    """Return an agent's health. Only operators get the statistics of all requests."""
    encoder = agent.encoding
    checks: dict[str, JsonValue] = {
        "generation": _generation_problem(agent) or "ok",
        "encoder": encoder.problem or ("ok" if encoder.is_loaded else "not loaded yet"),
        "reranker": str(agent.reranker.state),
    }
    return {
        "agent_id": agent.agent_id,
        "domain_id": agent.domain.value,
        "state": agent.state.value,
        "generation": agent.generation.name,
        "published": agent.generation.published,
        **_freshness(agent),
        "checks": checks,
        "statistics": agent.statistics.as_json() if viewer.operates else {},
        "notices": problems(agent),
    }


def _freshness(agent: Agent) -> dict[str, JsonValue]:
    """Return the age of the served generation, and for how long a newer one has been published."""
    following = agent.following()
    built_at = agent.generation.meta.get("built_at")
    age_s = (datetime.now(UTC) - datetime.fromisoformat(built_at)).total_seconds() if built_at else None
    return {
        "indexed_at": built_at.replace("+00:00", "Z") if built_at else None,
        "age_s": None if age_s is None else round(max(0.0, age_s), 1),
        "behind_s": round(max(agent.generation.behind_s, following.behind_s if following else 0.0), 1),
        **({"replica": following.as_json()} if following else {}),
    }


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """The counts of one filter's values."""

    values: ValueCounts
    unread: UnreadValues


class FilterCountsMemo:
    """Counts of a domain's filters, cached for each visible part of a generation."""

    def __init__(self) -> None:
        self._generation = ""
        self._by_part: dict[bytes, Mapping[str, FilterCounts]] = {}

    def of(self, generation: Index, filters: Sequence[FilterSettings]) -> Mapping[str, FilterCounts]:
        """Return filter → the counts of its values in a generation."""
        by_part = self._by_part
        if self._generation != generation.meta["generation"]:
            by_part = self._by_part = {}
            self._generation = generation.meta["generation"]
        if generation.part not in by_part:
            if len(by_part) >= MOST_VISIBILITIES:
                by_part.clear()
            by_part[generation.part] = count_filters(generation, filters)
        return by_part[generation.part]


def count_filters(generation: Index, filters: Sequence[FilterSettings]) -> dict[str, FilterCounts]:
    """Count the values of every countable filter, by key.

    Raises:
        StoreError: the generation cannot be read.
    """
    return {
        each.key: FilterCounts(
            generation.value_counts(each.column, each.type, FREQUENT_VALUES),
            generation.unread_values(each.column, UNREAD_EXAMPLES) if each.is_declared else UnreadValues(),
        )
        for each in filters
        if each.is_declared or has_few_values(each)
    }


def facets_of(counts: Mapping[str, FilterCounts]) -> dict[str, list[tuple[str, int]]]:
    """Return filter → its most frequent values, each with its number of chunks, for filters with few values."""
    return {
        key: [(spelled(each.value), each.chunks) for each in counted.values.frequent[:FACET_VALUES]]
        for key, counted in counts.items()
        if counted.values.frequent
    }


def described_filters(filters: Sequence[FilterSettings], counts: Mapping[str, FilterCounts]) -> list[JsonValue]:
    """Return the filters for ``describe``, with counts of documents and chunks for each value."""
    return [
        {
            "key": each.key,
            "type": each.type,
            **({"from": list(each.origins)} if each.is_declared else {}),
            **(_describe_counts(counts[each.key]) if each.key in counts else {}),
        }
        for each in filters
    ]


def spelled(value: Value) -> str:
    """Return a value as text for an address or the command line."""
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else str(value)


def _describe_counts(counted: FilterCounts) -> dict[str, JsonValue]:
    values, unread = counted.values, counted.unread
    described: dict[str, JsonValue] = {
        "documents": values.documents,
        "distinct_values": values.distinct,
        "values": [
            {"value": each.value, "documents": each.documents, "chunks": each.chunks} for each in values.frequent
        ],
    }
    if values.least is not None:
        described |= {"min": values.least, "max": values.most}
    if unread.documents:
        examples = [{"source_path": each.path, "value": each.said, "reason": each.problem} for each in unread.examples]
        described["unread"] = {"documents": unread.documents, "examples": examples}
    return described


class QueryEncoder:
    """Encodes questions. Every method may be called from any thread."""

    def __init__(self, load: Callable[[], QueryMemo], agent_id: str) -> None:
        """Store the function that loads the encoder. The agent's name is for the log."""
        self._load = load
        self._agent_id = agent_id
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=f"dense-{agent_id}")
        self._lock = threading.Lock()
        self._memo: QueryMemo | None = None
        self.problem: str | None = None

    @property
    def is_loaded(self) -> bool:
        """Tell whether the encoder was loaded."""
        return self._memo is not None

    def load(self) -> QueryMemo | None:
        """Return the encoder; ``None`` if it cannot be loaded. Then ``problem`` says why."""
        with self._lock:
            if self._memo is None and self.problem is None:
                try:
                    self._memo = self._load()
                except EncoderError as error:
                    self.problem = str(error)
                    log.warning("%s answers without dense retrieval: %s", self._agent_id, error)
            return self._memo

    def encode(self, text: str, meta: Mapping[str, str]) -> Future[EncodedQuery]:
        """Start to encode a text for a generation with this metadata; return a future, which callers may share.

        The future's error is an ``EncoderError``: the encoder cannot be loaded, is not the generation's, or fails.
        """
        if self._memo and not self.mismatch(meta):
            return self._memo.begin(text)
        return self._threads.submit(self._encode, text, meta)

    def _encode(self, text: str, meta: Mapping[str, str]) -> EncodedQuery:
        memo = self.load()
        if memo is None:
            raise EncoderError(self.problem or "no encoder")
        if mismatch := self.mismatch(meta):
            raise EncoderError(mismatch)
        return memo.encode(text)

    def mismatch(self, meta: Mapping[str, str]) -> str | None:
        """Return why the encoder does not fit a generation; ``None`` if it fits."""
        if not meta or self._memo is None or same_space(meta.get("encoder"), self._memo.encoder.version):
            return None
        built_with, named = meta.get("encoder"), self._memo.encoder.version
        return f"the generation was built with encoder {built_with}, the configuration names {named}; sync to rebuild"
