"""One domain's memory: it answers from the published generation, says what it can do and how it is."""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import UTC, datetime

from nornweave.ask.search.expand import stated_category
from nornweave.ask.search.expanded_search import ask, stages_of
from nornweave.ask.search.filter_counts import FilterCounts, count_filters, described_filters, spelled
from nornweave.ask.search.filters import read_filters
from nornweave.ask.search.masked_document import without
from nornweave.ask.search.query import check_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import AgentState, Filters, RecallResponse
from nornweave.ask.search.selection import choose
from nornweave.ask.search.statistics import Statistics
from nornweave.config import DomainSettings, PlanSettings
from nornweave.config.tuned_plans import PlanInForce
from nornweave.core.access.viewer import OPERATOR, Viewer
from nornweave.core.errors import EncoderError, QueryError, StoreError
from nornweave.core.text import analyzer
from nornweave.core.tracing import retrieval_span
from nornweave.core.types import NO_METADATA, Domain, JsonValue, present
from nornweave.index.conditions import Condition
from nornweave.index.declared import DeclaredFilters
from nornweave.index.index import Index
from nornweave.index.port import Vectors
from nornweave.index.serving import ServedGeneration
from nornweave.index.visibility import MOST_VISIBILITIES
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.memo import QueryMemo
from nornweave.models.encoders.port import same_space
from nornweave.models.rerankers import Reranker, RerankerSlot
from nornweave.share.following import Following

log = logging.getLogger(__name__)

# Encoders may hang (a remote one, a busy machine). Theirs are threads of their own, or late queries would hold all that
# the other sources and domains run on.
DENSE_THREADS = 8
# `rerank: on` waits this long for a model that is still being loaded.
_MODEL_WAIT_S = 60.0
# Of a filter, as many frequent values as a reader looks through.
FACET_VALUES = 8
_UNPUBLISHED = "nothing is published yet; run `nornweave sync`"


class Agent:
    """Recalls from one domain; every method may be called from any thread."""

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
    ) -> None:
        """Store the parts; nothing is loaded before ``start``.

        Args:
            domain: whose memory it is.
            settings: of the domain.
            generation: where it reads.
            load_encoder: returns the domain's encoder; called once.
            reranker: the domain's cross-encoder, if any.
            executor: where retrieval sources run, except dense retrieval.
            following: where a replica is with the domain; ``None`` of one that is no replica.
        """
        self.domain = domain
        self.settings = settings
        self.generation = generation
        self._load_encoder = load_encoder
        self._reranker = reranker
        self._executor = executor
        self._following = following
        self._dense = ThreadPoolExecutor(DENSE_THREADS, thread_name_prefix=f"dense-{domain.value}")
        self._lock = threading.Lock()
        self._encoder: QueryMemo | None = None
        self._encoder_problem: str | None = None
        self._started = False
        self._closing = False
        self._plan = PlanInForce(settings.plan)
        self._left: dict[str, Vectors] = {}
        self._counts: tuple[str, dict[bytes, Mapping[str, FilterCounts]]] = ("", {})
        self.statistics = Statistics()

    @property
    def plan_name(self) -> str:
        """Return what it answers with: ``configured``, or the name of a tuned plan."""
        return self._plan.name

    @property
    def agent_id(self) -> str:
        """Name the agent."""
        return self.settings.agent_id

    @property
    def state(self) -> AgentState:
        """Say where in its life it is: ``DEGRADED`` answers, though not as it should."""
        if self._closing:
            return AgentState.DRAINING if self.generation.is_used else AgentState.OFFLINE
        if not self._started:
            return AgentState.STARTING
        return AgentState.DEGRADED if self._problems() else AgentState.READY

    @property
    def ingestion_problem(self) -> str | None:
        """Say why it takes no documents: it is closing, or DEGRADED by more than that nothing is published yet."""
        if self._closing:
            return "it is shutting down"
        problems = self._problems() if self._started else []
        return "; ".join(problem for problem in problems if problem != _UNPUBLISHED) or None

    def start(self) -> None:
        """Load the encoder and the published generation; what cannot be loaded is a problem, not an error."""
        try:
            self.encoder()
            if self.settings.plan.rerank and not self._closing:
                self._reranker.start()
            with self.generation.use(OPERATOR) as generation:
                # The first search of a process reads pages and compiles kernels, 30 ms that no user should wait for.
                question = Question(text=self.settings.name, now=present(), viewer=OPERATOR)
                self._recall(question, (), generation, time.monotonic())
        except StoreError as error:
            log.info("%s: %s", self.agent_id, error)
        finally:  # whatever went wrong, a question tries again
            self._started = True

    def refresh(self) -> bool:
        """Swap to the published generation if it is a new one; tell whether it is."""
        if self._closing or not self.generation.refresh():
            return False
        log.info("%s answers from %s now", self.agent_id, self.generation.name)
        return True

    def close(self) -> None:
        """Refuse new questions, let the running ones end."""
        self._closing = True
        self.generation.close()

    def encoder(self) -> QueryMemo | None:
        """Return the domain's encoder, loaded once; ``None`` when it cannot be loaded."""
        with self._lock:
            if self._encoder is None and self._encoder_problem is None:
                try:
                    self._encoder = self._load_encoder()
                except EncoderError as error:
                    self._encoder_problem = str(error)
                    log.warning("%s answers without dense retrieval: %s", self.agent_id, error)
            return self._encoder

    def recall(self, question: Question) -> RecallResponse:
        """Answer from the published generation; of what is asked by domain, this one's part counts.

        Returns:
            At most ``top_k`` items, best first, ties by chunk number; which retrieval sources answered.

        Raises:
            QueryError: the query, ``top_k`` or a filter is wrong.
            NoGenerationError: nothing is published yet.
            StoreError: no generation can be read, or the agent is shutting down.
        """
        started = time.monotonic()
        try:
            check_query(question.text, question.top_k)
            conditions = self.conditions(question.filters.get(self.domain, NO_METADATA))
            with (
                retrieval_span(self.domain.value, question.text, question.top_k),
                self.generation.use(question.viewer) as generation,
            ):
                response = self._recall(question, conditions, self._visible(question, generation), started)
        except (QueryError, StoreError):
            self.statistics.failed()
            raise
        self.statistics.answered(response.latency_ms, response.total_searched)
        return response

    def follow(self, plan: PlanInForce) -> None:
        """Answer by this plan from now on."""
        if plan != self._plan:
            log.info("%s answers by plan %s now", self.agent_id, plan.name)
            if plan.problem:
                log.warning("%s: %s", self.agent_id, plan.problem)
            self._plan, self.settings = plan, self.settings.model_copy(update={"plan": plan.plan})

    def with_plan(self, plan: PlanSettings) -> Agent:
        """Return an agent that answers by another plan, out of the same generation, with the same models and threads.

        Only the original is to be closed.
        """
        other = copy.copy(self)
        other.settings = self.settings.model_copy(update={"plan": plan})
        other.statistics = Statistics()
        return other

    def with_encoder(self, encoder: Encoder) -> Agent:
        """Return an agent like this one that encodes queries differently, for controls; see ``with_plan``."""
        other = copy.copy(self)
        other._encoder = QueryMemo(encoder)
        other.statistics = Statistics()
        return other

    def paths(self, viewer: Viewer) -> Collection[str]:
        """Return the source-relative paths of the documents that a viewer can find.

        Raises:
            StoreError: no generation can be read.
        """
        with self.generation.use(viewer) as generation:
            return generation.paths()

    def describe(self, viewer: Viewer) -> dict[str, JsonValue]:
        """Say what the agent knows, as far as a viewer may see it, and which filters it takes."""
        settings = self.settings
        described: dict[str, JsonValue] = {
            "agent_id": self.agent_id,
            "domain_id": self.domain.value,
            "name": settings.name,
            "description": settings.description,
            "chunking": settings.chunking.model_dump(mode="json"),
            "embedding": settings.embedding.model_dump(mode="json"),
            "reranking": {"model": settings.reranking.model, "state": str(self._reranker.state)},
            "filters": described_filters(settings.filters, self.filter_counts(viewer)),
            "plan": settings.plan.model_dump(mode="json"),
            "plan_name": self.plan_name,
        }
        try:
            with self.generation.use(viewer) as generation:
                facts: dict[str, JsonValue] = {
                    "generation": generation.meta["generation"],
                    "indexed_at": generation.built_at,
                    "documents": generation.document_count,
                    "chunks": generation.chunk_count,
                }
        except StoreError as error:
            facts = {"generation": None, "indexed_at": None, "documents": 0, "chunks": 0, "reason": str(error)}
        return {**described, **facts}

    def facets(self, viewer: Viewer) -> dict[str, list[tuple[str, int]]]:
        """Return the most frequent values of each filter that takes one of a few, with how many chunks have them.

        Only the chunks that a viewer may see are counted.
        """
        return {
            key: [(spelled(each.value), each.chunks) for each in counted.values.frequent[:FACET_VALUES]]
            for key, counted in self.filter_counts(viewer).items()
            if counted.values.frequent
        }

    def filter_counts(self, viewer: Viewer) -> Mapping[str, FilterCounts]:
        """Count what the filters find of what a viewer may see, once a generation; nothing where none can be read."""
        try:
            with self.generation.use(viewer) as generation:
                return self._counted(generation)
        except StoreError as error:
            log.info("%s: %s", self.agent_id, error)
            return {}

    def _counted(self, generation: Index) -> Mapping[str, FilterCounts]:
        """Count values, once for each part of a generation that somebody may see."""
        name, by_part = self._counts
        if name != generation.meta["generation"]:
            name, by_part = self._counts = (generation.meta["generation"], {})
        if generation.part not in by_part:
            if len(by_part) >= MOST_VISIBILITIES:
                by_part.clear()
            by_part[generation.part] = count_filters(generation, self.settings.filters)
        return by_part[generation.part]

    def health(self, viewer: Viewer) -> dict[str, JsonValue]:
        """Say how the agent is; what all others have asked of it only to who operates the service."""
        checks: dict[str, JsonValue] = {
            "generation": self._generation_problem() or "ok",
            "encoder": self._encoder_problem or ("ok" if self._encoder else "not loaded yet"),
            "reranker": str(self._reranker.state),
        }
        return {
            "agent_id": self.agent_id,
            "domain_id": self.domain.value,
            "state": self.state.value,
            "generation": self.generation.name,
            "published": self.generation.published,
            **self._freshness(),
            "checks": checks,
            "statistics": self.statistics.as_json() if viewer.operates else {},
            "notices": self._problems(),
        }

    def _freshness(self) -> dict[str, JsonValue]:
        """Say how old what answers is, and for how long something newer has been published that does not answer."""
        following = self._following()
        built_at = self.generation.meta.get("built_at")
        age_s = (datetime.now(UTC) - datetime.fromisoformat(built_at)).total_seconds() if built_at else None
        return {
            "indexed_at": built_at.replace("+00:00", "Z") if built_at else None,
            "age_s": None if age_s is None else round(max(0.0, age_s), 1),
            "behind_s": round(max(self.generation.behind_s, following.behind_s if following else 0.0), 1),
            **({"replica": following.as_json()} if following else {}),
        }

    def _generation_problem(self) -> str | None:
        if self.generation.problem:
            return self.generation.problem
        return None if self.generation.name else _UNPUBLISHED

    def _problems(self) -> list[str]:
        mismatch = self._mismatch(self.generation.meta)
        following = self._following()
        problems = (
            self._generation_problem(),
            self._encoder_problem,
            mismatch,
            self._plan.problem,
            *(following.problems if following else ()),
        )
        return [problem for problem in problems if problem]

    def _mismatch(self, meta: Mapping[str, str]) -> str | None:
        """Say why the encoder cannot search a generation, if so."""
        if not meta or self._encoder is None or same_space(meta.get("encoder"), self._encoder.encoder.version):
            return None
        built_with, named = meta.get("encoder"), self._encoder.encoder.version
        return f"the generation was built with encoder {built_with}, the configuration names {named}; sync to rebuild"

    def _visible(self, question: Question, generation: Index) -> Index:
        """Return the generation, without what the question wants hidden."""
        hidden = question.hidden.get(self.domain)
        if hidden is None:
            return generation
        memo = self.encoder()
        return without(generation, *hidden, memo.encoder if memo else None, remembered=self._left)

    def _recall(
        self, question: Question, conditions: tuple[Condition, ...], generation: Index, started: float
    ) -> RecallResponse:
        deadline = question.deadline.at if question.deadline else None
        within = generation.within(conditions) if conditions else None
        asked = ask(
            question,
            generation,
            self.settings.plan,
            encode=lambda text: self._encode(text, generation),
            executor=self._executor,
            dense_executor=self._dense,
            within=within,
            deadline=deadline,
            category=stated_category(question.filters.get(self.domain, NO_METADATA)),
        )
        reranker, notices = self._model(question, deadline)
        items, problems = choose(question, asked, generation, self.domain, self.settings, reranker, deadline)
        first = asked.found[0]
        return RecallResponse(
            agent_id=self.agent_id,
            domain_id=self.domain,
            generation=generation.meta["generation"],
            indexed_at=generation.built_at,
            items=items,
            retrieval=first.states,
            total_searched=generation.chunk_count if within is None else int(within.sum()),
            latency_ms=round((time.monotonic() - started) * 1000, 2),
            notices=(*self._notices(generation), *first.reasons.values(), *notices, *problems),
            expansions=asked.variants,
            stages=stages_of(question, asked, generation, self.domain) if question.trace else {},
            calibrated=self.settings.plan.combine == "convex",
            encoder=generation.meta.get("encoder"),
        )

    def conditions(self, filters: Filters) -> tuple[Condition, ...]:
        """Read filters of this domain.

        Raises:
            QueryError: a filter is not declared, or its value is wrong.
        """
        return read_filters(self.settings.filters, filters, f"filters.{self.domain.value}")

    def _notices(self, generation: Index) -> list[str]:
        notices = [self.generation.problem] if self.generation.problem else []
        built_with = generation.meta.get("analyzer")
        if built_with != analyzer.VERSION:
            notices.append(f"built with analyzer {built_with}, queries are read by {analyzer.VERSION}; sync to rebuild")
        declared = DeclaredFilters(tuple(each for each in self.settings.filters if each.is_declared))
        if not declared.is_read_by(generation.meta.get("filters", "")):
            notices.append(
                "filters were declared anew since the index was built; they find nothing before the next sync"
            )
        return notices

    def _encode(self, text: str, generation: Index) -> Vectors:
        memo = self.encoder()
        if memo is None:
            raise EncoderError(self._encoder_problem or "no encoder")
        if mismatch := self._mismatch(generation.meta):
            raise EncoderError(mismatch)
        return memo.encode(text)

    def _model(self, question: Question, deadline: float | None) -> tuple[Reranker | None, list[str]]:
        """Return the cross-encoder if this question uses one, or what to say where it cannot."""
        if question.rerank == "off" or (question.rerank == "auto" and not self.settings.plan.rerank):
            return None, []
        reranker = self._reranker.reranker
        if reranker is None and question.rerank == "on":
            remaining = _MODEL_WAIT_S if deadline is None else max(0.0, deadline - time.monotonic())
            reranker = self._reranker.wait(min(remaining, _MODEL_WAIT_S))
        return reranker, [] if reranker else [f"not reranked by a model: {self._reranker.state}"]
