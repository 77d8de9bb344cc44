"""The query path, wired once: for the API, the command line and the evaluations, so that what is measured is served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self

from threadpoolctl import threadpool_limits

from nornweave.answer import Question, answer, asked_agents, recall_everywhere
from nornweave.cross_encoder import RerankerSlot
from nornweave.embedding.memo import QueryMemo
from nornweave.errors import StoreError
from nornweave.recall.agent import Agent
from nornweave.recall.records import Citation, Filters, RecallResponse
from nornweave.settings import DomainSettings, EmbeddingSettings, RerankingSettings, Settings
from nornweave.store.serving import ServedGeneration
from nornweave.types import Domain
from nornweave.workspace import encoder_of, store_of

log = logging.getLogger(__name__)

# How often the pointers are looked at: a publication answers within this many seconds.
REFRESH_S = 1.0
# Questions wait for domains and domains for retrieval sources: two pools, or a full one would wait for itself.
DOMAIN_THREADS = 16
SOURCE_THREADS = 16


class Engine:
    """Answers from everything that is published; a context manager, every method may be called from any thread."""

    def __init__(self, settings: Settings, domains: Sequence[Domain] | None = None) -> None:
        """Take note of what to serve; nothing is loaded before ``start``.

        Args:
            settings: of the workspace.
            domains: which to serve; ``None`` serves all that have a source or an inbox.
        """
        self._settings = settings
        self._questions = ThreadPoolExecutor(DOMAIN_THREADS, thread_name_prefix="domain")
        self._sources = ThreadPoolExecutor(SOURCE_THREADS, thread_name_prefix="source")
        self._rerankers: dict[str | None, RerankerSlot] = {}
        self._memos: dict[EmbeddingSettings, QueryMemo] = {}
        self._loading = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.agents: Mapping[Domain, Agent] = {
            domain: self._agent(domain) for domain in domains or settings.served_domains
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, *, wait: bool = True, watch: bool = True) -> None:
        """Load models and generations, all domains at once.

        Args:
            wait: return when everything is loaded; otherwise at once.
            watch: swap to new generations as they are published.
        """
        # A matrix product is bound by memory: more threads of one query only get in the way of the next.
        self._blas = threadpool_limits(1, user_api="blas")
        loading = [threading.Thread(target=agent.start, name=f"start-{domain}", daemon=True)
                   for domain, agent in self.agents.items()]  # fmt: skip
        for thread in loading:
            thread.start()
        if watch:
            self._threads = [threading.Thread(target=self._watch, name="watch-generations", daemon=True)]
            self._threads[0].start()
        if wait:
            for thread in loading:
                thread.join()

    def close(self) -> None:
        """Refuse new questions, let the running ones end."""
        self._stopping.set()
        for agent in self.agents.values():
            agent.close()
        for thread in self._threads:
            thread.join()
        # Not `cancel_futures`: who waits for a cancelled future is not told. The agents are closed, the queue ends.
        self._questions.shutdown(wait=True)
        self._sources.shutdown(wait=True)

    def query(self, question: Question) -> dict[str, Any]:
        """Answer a question; see ``answer.answer``.

        Raises:
            StoreError: the engine is closed.
        """
        try:
            return answer(question, self.agents, self._questions, max_sources=self._settings.max_sources)
        except RuntimeError as error:  # of the pools, once they are closed
            if not self._stopping.is_set():
                raise
            raise StoreError("is shutting down; ask again later") from error

    def rankings(
        self, text: str, *, domains: Sequence[Domain] | None, filters: Mapping[Domain, Filters], depth: int
    ) -> Mapping[str, tuple[Citation, ...]]:
        """Return what every stage found over the domains asked, best first, and the answer as it is served.

        Raises:
            QueryError: the query or its filters are wrong.
            StoreError: what was published cannot be read.
        """
        question = Question(
            text=text,
            domains=None if domains is None else tuple(domains),
            top_k=depth,
            filters=filters,
            timeout_ms=None,
            trace=True,
        )
        asked = asked_agents(question, self.agents, self._settings.max_sources)
        items, responses, gaps = recall_everywhere(question, asked, self._questions)
        if not responses:
            raise StoreError("; ".join(gap.reason for gap in gaps))
        answered = tuple(item.citation for item in items)
        reranked = {"reranked": answered} if any(item.rerank_score is not None for item in items) else {}
        return {**_merged_stages(responses.values(), depth), **reranked, "answer": answered}

    def domain_of(self, paths: Collection[str]) -> Mapping[str, Domain]:
        """Return the domain that holds each document, by its path in its source; unknown paths are left out."""
        wanted = set(paths)
        found: dict[str, Domain] = {}
        for domain, agent in self.agents.items():
            try:
                found |= dict.fromkeys(wanted.intersection(agent.paths()), domain)
            except StoreError as error:
                log.warning("%s: %s", domain.value, error)
        return found

    def _agent(self, domain: Domain) -> Agent:
        configured = self._settings.domains[domain]
        return Agent(
            domain,
            configured,
            ServedGeneration(store_of(self._settings, domain).files),
            load_encoder=partial(self._memo, configured),
            reranker=self._reranker(configured.reranking),
            executor=self._sources,
        )

    def _memo(self, configured: DomainSettings) -> QueryMemo:
        """Return the memo of an encoder, one for all domains that use it."""
        with self._loading:
            if configured.embedding not in self._memos:
                self._memos[configured.embedding] = QueryMemo(encoder_of(self._settings, configured))
            return self._memos[configured.embedding]

    def _reranker(self, configured: RerankingSettings) -> RerankerSlot:
        """Return the slot of a cross-encoder, one for all domains that use it."""
        if configured.model not in self._rerankers:
            cache_dir = self._settings.data_dir / "models"
            self._rerankers[configured.model] = RerankerSlot(configured.model, cache_dir=cache_dir)
        return self._rerankers[configured.model]

    def _watch(self) -> None:
        while not self._stopping.wait(REFRESH_S):
            for agent in self.agents.values():
                agent.refresh()


def _merged_stages(responses: Iterable[RecallResponse], depth: int) -> dict[str, tuple[Citation, ...]]:
    placed: dict[str, list[tuple[float, str, int, Citation]]] = {}
    for response in responses:
        for stage, found in response.stages.items():
            placed.setdefault(stage, []).extend(
                (-one.score, response.domain_id.value, place, one.citation) for place, one in enumerate(found)
            )
    return {
        stage: tuple(citation for *_, citation in sorted(found, key=lambda one: one[:3])[:depth])
        for stage, found in placed.items()
    }
