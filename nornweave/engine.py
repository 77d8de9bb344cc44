"""The query path, wired once: for the API, the command line and the evaluations, so that what is measured is served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Self

from threadpoolctl import threadpool_limits

from nornweave.answer import Answer, Question, answer, fuse_answers, fuse_responses
from nornweave.cross_encoder import RerankerSlot
from nornweave.documents import (
    ChunkDocument,
    Deposit,
    DepositDocument,
    DocumentDocument,
    FusionResult,
    LedgerDocument,
    chunk_document,
    document_document,
)
from nornweave.embedding.memo import QueryMemo
from nornweave.errors import StoreError
from nornweave.fusion.records import FuseRequest
from nornweave.gathering import asked_agents, merge_items, recall_everywhere
from nornweave.ingest.inbox import InboxDocument, deposit
from nornweave.ledger_book import ledger_document, load_ledger
from nornweave.recall.agent import Agent
from nornweave.recall.records import Citation, Filters, RecallResponse
from nornweave.settings import DomainSettings, EmbeddingSettings, RerankingSettings, Settings
from nornweave.store.serving import ServedGeneration
from nornweave.synthesis import Synthesizer
from nornweave.types import Domain
from nornweave.workspace import encoder_of, store_of

log = logging.getLogger(__name__)

# How often the pointers are looked at: a publication answers within this many seconds.
REFRESH_S = 1.0
# Questions wait for domains and domains for retrieval sources: pools apart, or a full one would wait for itself. Each
# domain has threads of its own: one that hangs must not hold those that the others need.
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
        served = domains or settings.served_domains
        self._domains = {one: ThreadPoolExecutor(DOMAIN_THREADS, thread_name_prefix=one.value) for one in served}
        self._synthesizer = Synthesizer(settings.fusion)
        self._sources = ThreadPoolExecutor(SOURCE_THREADS, thread_name_prefix="source")
        self._rerankers: dict[str | None, RerankerSlot] = {}
        self._memos: dict[EmbeddingSettings, QueryMemo] = {}
        self._loading = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.agents: Mapping[Domain, Agent] = {domain: self._agent(domain) for domain in served}

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
        for executor in self._domains.values():
            executor.shutdown(wait=True)
        self._sources.shutdown(wait=True)

    def answer(self, question: Question) -> Answer:
        """Answer a question; ``query`` and ``query_text`` write it down."""
        try:
            return answer(question, self.agents, self._domains, self._settings.fusion, self._synthesizer)
        except RuntimeError as error:  # of the pools, once they are closed
            if not self._stopping.is_set():
                raise
            raise StoreError("is shutting down; ask again later") from error

    def query(self, question: Question) -> FusionResult:
        """Answer a question; see ``answer.answer``.

        Raises:
            QueryError: the question asks for something that cannot be.
            StoreError: the engine is closed.
        """
        return self.answer(question).document()

    def query_text(self, question: Question) -> str:
        """Answer a question as text, a section a domain; raises what ``query`` raises."""
        return self.answer(question).text(self._settings.fusion.fusion_max_chars_per_source)

    def fuse(self, request: FuseRequest) -> FusionResult:
        """Fuse any agents' answers; nothing is searched."""
        return fuse_answers(request, self._settings.fusion, self._synthesizer).document()

    def chunk(self, chunk_id: str) -> ChunkDocument | None:
        """Return the text behind a citation, from whichever served domain has it."""
        for domain, agent in self.agents.items():
            with self._readable(domain), agent.generation.use() as generation:
                chunk = generation.chunk(chunk_id)
                if chunk:
                    return chunk_document(domain, chunk, generation.meta["generation"])
        return None

    def document(self, domain: Domain, source_id: str, path: str) -> DocumentDocument | None:
        """Return a document as it was ingested; ``None`` when it is not served.

        Raises:
            StoreError: what was published cannot be read.
        """
        if domain not in self.agents:
            return None
        with self.agents[domain].generation.use() as generation:
            stored = generation.document(source_id, path)
            if stored is None:
                return None
            return document_document(domain, source_id, path, stored, generation.meta["generation"])

    def conflicts(self) -> LedgerDocument:
        """Return the conflict ledger as the last publication left it."""
        return ledger_document(self._settings, load_ledger(self._settings))

    def deposit(self, domain: Domain, documents: Sequence[Deposit]) -> list[DepositDocument]:
        """Put documents into a domain's inbox; what is accepted is on disk when this returns.

        Raises:
            SourceUnavailableError: the inbox cannot be written.
        """
        handed_in = [
            InboxDocument(
                source_path=one.source_path,
                content=one.content,
                metadata=one.metadata,
                source_updated_at=one.source_updated_at,
            )
            for one in documents
        ]
        receipts = deposit(self._settings.inbox(domain), handed_in)
        return [{"source_path": one.source_path, "status": one.status.value, "reason": one.reason} for one in receipts]

    def recall(self, question: Question) -> tuple[RecallResponse, ...]:
        """Return what every domain that is asked answers, before fusion; who gives no answer is left out."""
        asked = asked_agents(question, self.agents, self._settings.fusion.fusion_max_sources)
        responses, _ = recall_everywhere(question, asked, self._domains)
        return tuple(responses.values())

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
        asked = asked_agents(question, self.agents, self._settings.fusion.fusion_max_sources)
        responses, gaps = recall_everywhere(question, asked, self._domains)
        if not responses:
            raise StoreError("; ".join(gap.reason for gap in gaps))
        items = merge_items([response.items for response in responses.values()], depth)
        merged = tuple(item.citation for item in items)
        reranked = {"reranked": merged} if any(item.rerank_score is not None for item in items) else {}
        fused = fuse_responses(question, responses, gaps, self._settings.fusion).fused
        return {
            **_merged_stages(responses.values(), depth),
            **reranked,
            "merged": merged,
            "fused": tuple(ranked.tagged.item.citation for ranked in fused.items),
        }

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

    @contextmanager
    def _readable(self, domain: Domain) -> Iterator[None]:
        """Let a domain that cannot be read be no reason not to look into the next."""
        try:
            yield
        except StoreError as error:
            log.warning("%s: %s", domain.value, error)

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
                (-one.score, response.domain_id, place, one.citation) for place, one in enumerate(found)
            )
    return {
        stage: tuple(citation for *_, citation in sorted(found, key=lambda one: one[:3])[:depth])
        for stage, found in placed.items()
    }
