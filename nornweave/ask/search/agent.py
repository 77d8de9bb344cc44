"""The agent of one domain: it answers from the published generation, and reports its abilities and health."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from operator import attrgetter

from nornweave.ask.search import agent_report
from nornweave.ask.search.exact import asks_for_newest
from nornweave.ask.search.exclusion import leaving_out
from nornweave.ask.search.filter_counts import FilterCounts, FilterCountsMemo, facets_of
from nornweave.ask.search.filters import read_filters
from nornweave.ask.search.freshness import Freshness
from nornweave.ask.search.history import of_present
from nornweave.ask.search.query import check_query, read_query
from nornweave.ask.search.query_encoder import QueryEncoder
from nornweave.ask.search.question import Question
from nornweave.ask.search.recall import rank_among, recall_from, search_expanded
from nornweave.ask.search.records import AgentState, DomainRank, Filters, RecallResponse
from nornweave.ask.search.search import SearchContext
from nornweave.carry.standing import Following
from nornweave.config import DomainSettings, PlanSettings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.tracing import retrieval_span
from nornweave.core.types import NO_METADATA, Domain, JsonValue, present
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.index import Index
from nornweave.index.outcomes import NOTHING_VERIFIED
from nornweave.index.port import Mask, Numbers
from nornweave.index.query_map import QueryMap
from nornweave.index.searching.conditions import Condition
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.queries import QueryMemo
from nornweave.models.rerankers import RerankerSlot

log = logging.getLogger(__name__)


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
        self.statistics = agent_report.Statistics()
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
        return AgentState.DEGRADED if agent_report.problems(self) else AgentState.READY

    @property
    def ingestion_problem(self) -> str | None:
        """Return why the agent accepts no documents: it is closing or has a problem; ``None`` if it accepts them.

        An agent without a published generation accepts documents.
        """
        if self._closing:
            return "it is shutting down"
        problems = agent_report.problems(self) if self._started else []
        return "; ".join(problem for problem in problems if problem != agent_report.UNPUBLISHED) or None

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
        other.statistics = agent_report.Statistics()
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
        return agent_report.describe(self, viewer)

    def health(self, viewer: Viewer) -> dict[str, JsonValue]:
        """Return the agent's health. Only operators get the statistics of all requests."""
        return agent_report.health(self, viewer)

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
