"""The query path, wired once: for the API, the command line and the evaluations, so that what is measured is served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self

from nornweave.answer import Question, answer, asked_agents, recall_everywhere
from nornweave.cross_encoder import RerankerSlot
from nornweave.embedding.memo import QueryMemo
from nornweave.errors import StoreError
from nornweave.recall.agent import Agent
from nornweave.recall.records import Citation, Filters, RecallRequest
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
        self._questions.shutdown(wait=True, cancel_futures=True)
        self._sources.shutdown(wait=True, cancel_futures=True)

    def query(self, question: Question) -> dict[str, Any]:
        """Answer a question; see ``answer.answer``."""
        return answer(question, self.agents, self._questions)

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
        )
        asked = asked_agents(question, self.agents)
        ranked: dict[str, list[tuple[float, str, Citation]]] = {}
        for domain, agent in asked.items():
            request = RecallRequest(text=text, top_k=depth, filters=filters.get(domain, {}))
            for stage, hits in agent.rankings(request).items():
                ranked.setdefault(stage, []).extend(
                    (-score, f"{domain.value} {place:06d}", citation) for place, (score, citation) in enumerate(hits)
                )
        stages = {
            stage: tuple(citation for _, _, citation in sorted(hits, key=lambda hit: hit[:2])[:depth])
            for stage, hits in ranked.items()
        }
        items, _, _ = recall_everywhere(question, asked, self._questions)
        return {**stages, "answer": tuple(item.citation for item in items)}

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
