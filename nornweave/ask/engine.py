"""The query path, wired once: for the API, the command line and the evaluations, so that what is measured is served."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Self

from threadpoolctl import threadpool_limits

from nornweave.ask.agents.directory import RemoteAgents
from nornweave.ask.answer.fan_out import choose_agents, recall_everywhere
from nornweave.ask.answer.joined import JoinedAgents
from nornweave.ask.answer.pipeline import answer, answer_from
from nornweave.ask.answer.streamed import StreamedAnswer, to_streamed
from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.answer.text_renderer import render_answer
from nornweave.ask.answer.trace import Rankings, trace
from nornweave.ask.feedback.book import FeedbackDocument, feedback_of
from nornweave.ask.fuse.records import Answer, Recalled
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.question import NOTHING_HIDDEN, Question
from nornweave.ask.search.records import Filters, HiddenPlace, RecallResponse
from nornweave.ask.views import (
    ChunkDocument,
    Deposit,
    DepositDocument,
    DocumentDocument,
    DocumentsDocument,
    FormerDocument,
    FusionResult,
    LedgerDocument,
    answer_document,
    chunk_document,
    document_document,
    documents_document,
    former_document,
)
from nornweave.ask.views.evaluations import (
    ComparisonDocument,
    EvaluationsDocument,
    EvaluationsQuery,
    comparison_document,
    evaluations_document,
)
from nornweave.ask.views.ledger import ledger_document
from nornweave.ask.views.status import StatusDocument, status_document
from nornweave.config import DomainSettings, EmbeddingSettings, RerankingSettings, Settings
from nornweave.config.plans.active import plan_in_force, ranking_in_force
from nornweave.connect.inbox.deposits import deposit
from nornweave.connect.inbox.receipts import ReceiptBook
from nornweave.core.access.viewer import OPERATOR, Viewer
from nornweave.core.errors import NoGenerationError, SourceUnavailableError, StoreError
from nornweave.core.types import Domain, GenerationId, present
from nornweave.disagree.conflicts.origins import NO_ORIGINS
from nornweave.disagree.ledger.entries import Place, seen_ledger
from nornweave.improve.opening import history_of
from nornweave.index.inbox_life_cycle import DocumentsQuery, Shelf
from nornweave.index.ledger_file import LineBook, load_ledger, published
from nornweave.index.outcomes import read_outcomes
from nornweave.index.serving import Generations, ServedGeneration
from nornweave.index.wiring import INBOX, domain_folder, encoder_of, model_cache, store_of
from nornweave.models.encoders.batching import BatchedQueries
from nornweave.models.encoders.memo import EncoderLoad, QueryMemo
from nornweave.models.encoders.openvino import OpenVinoEncoder
from nornweave.models.rerankers import RerankerSlot
from nornweave.share.standing import StandingBook

log = logging.getLogger(__name__)

# How often the pointers are looked at: a publication answers within this many seconds.
REFRESH_S = 0.5
# Questions wait for domains and domains for retrieval sources: pools apart, or a full one would wait for itself. Each
# domain has threads of its own: one that hangs must not hold those that the others need.
DOMAIN_THREADS = 16
SOURCE_THREADS = 16
NO_CANDIDATES: Mapping[Domain, GenerationId] = MappingProxyType({})


class Engine:
    """Answers from everything that is published; a context manager, every method may be called from any thread."""

    def __init__(
        self,
        settings: Settings,
        domains: Sequence[Domain] | None = None,
        *,
        candidates: Mapping[Domain, GenerationId] = NO_CANDIDATES,
        watch: bool = True,
    ) -> None:
        """Store what to serve; nothing is loaded before ``start``.

        Args:
            settings: of the workspace.
            domains: which to serve; ``None`` serves all that have a source or an inbox.
            candidates: domains that answer from a generation which is built but not published, to measure it.
            watch: whether entering it as a context swaps to new generations as they are published.
        """
        self.on_answer: Callable[[Answer], None] | None = None
        self._settings = settings
        self._candidates = candidates
        self._watches = watch
        served = domains or settings.served_domains
        self._domains = {
            domain: ThreadPoolExecutor(DOMAIN_THREADS, thread_name_prefix=domain.value) for domain in served
        }
        self._synthesizer = Synthesizer(settings.fusion)
        self._follow_ranking()
        self._feedback = feedback_of(settings)
        self._lines = LineBook(settings)
        self._standings = StandingBook(settings)
        self._sources = ThreadPoolExecutor(SOURCE_THREADS, thread_name_prefix="source")
        self._rerankers: dict[tuple[str | None, str], RerankerSlot] = {}
        self._memos: dict[EmbeddingSettings, QueryMemo] = {}
        self._loading = threading.Lock()
        self._stopping = threading.Event()
        self._limits = ExitStack()
        # Who serves some domains alone, or measures, does not speak for agents elsewhere.
        joins = settings.agents is not None and domains is None and not candidates
        self.remote = RemoteAgents(settings, settings.agents, os.environ) if joins and settings.agents else None
        self._watching: threading.Thread | None = None
        self._watch_problems: dict[str, str] = {}
        self.agents: Mapping[Domain, Agent] = {domain: self._agent(domain) for domain in served}

    def __enter__(self) -> Self:
        try:
            self.start(watch=self._watches)
        except BaseException:  # Ctrl-C, while everything is being loaded
            self.close()
            raise
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
        self._limits.enter_context(threadpool_limits(1, user_api="blas"))
        # Not threads to be joined: to Python 3.11 one has ended when Ctrl-C comes while it is joined (bpo-45274), and a
        # process that ends while a thread is in compiled code is aborted.
        loading = [self._domains[domain].submit(self._load, agent) for domain, agent in self.agents.items()]
        for future in loading:
            future.add_done_callback(_log_failure)
        if watch:
            self._watching = threading.Thread(target=self._watch, name="watch-generations", daemon=True)
            self._watching.start()
        if wait:
            futures.wait(loading)

    def close(self) -> None:
        """Refuse new questions, let the running ones end, and what is being loaded."""
        self._stopping.set()
        for agent in self.agents.values():
            agent.close()
        if self._watching:
            self._watching.join()
        # Not `cancel_futures`: a thread that waits for a cancelled future is never woken. The agents are closed.
        for executor in self._domains.values():
            executor.shutdown(wait=True)
        self._sources.shutdown(wait=True)
        for reranker in self._rerankers.values():
            reranker.close()
        if self.remote:
            self.remote.close()
        self._feedback.close()
        self._limits.close()

    def answer(self, question: Question) -> Answer:
        """Answer a question; ``query`` and ``query_text`` return the same as JSON and as text.

        Raises:
            QueryError: the question asks for something that cannot be.
            StoreError: the engine is closed.
        """
        try:
            joined = self._joined(question.viewer)
            made = answer(
                question,
                self._own(joined),
                self._domains,
                self.fusion,
                self._synthesizer,
                self._lines.origins(),
                joined,
            )
        except RuntimeError as error:  # of the pools, once they are closed
            if not self._stopping.is_set():
                raise
            raise StoreError("is shutting down; ask again later") from error
        if self.on_answer:
            self.on_answer(made)
        return made

    def _joined(self, viewer: Viewer) -> JoinedAgents | None:
        """Return the agents on other machines that are asked for a viewer."""
        return JoinedAgents(self.remote.asked_for(viewer), self.remote.executor) if self.remote else None

    def _own(self, joined: JoinedAgents | None) -> Mapping[Domain, Agent]:
        """Return the agents here, without those that have nothing by design where another one answers."""
        elsewhere = {agent.domain for agent in joined.agents} if joined else set()
        return {
            domain: agent
            for domain, agent in self.agents.items()
            if domain not in elsewhere or agent.generation.name or self._settings.sources_of(domain)
        }

    def query(self, question: Question) -> FusionResult:
        """Answer a question as JSON; raises what ``answer`` raises."""
        return answer_document(self.answer(question))

    def query_text(self, question: Question) -> str:
        """Answer a question as text, a section a domain; raises what ``answer`` raises."""
        return render_answer(self.answer(question), self._settings.fusion.fusion_max_chars_per_source)

    def query_streamed(self, question: Question) -> StreamedAnswer:
        """Answer a question as JSON, its text apart; raises what ``answer`` raises."""
        if question.synthesize:
            self._synthesizer.prepare()
        answered = self.answer(replace(question, synthesize=False))
        return to_streamed(answered, self._synthesizer, self._settings.fusion.fusion_max_chars_per_source)

    def remember(self, question: Question, document: FusionResult) -> None:
        """Keep what an answer showed, so that it can be judged; never fails or waits."""
        self._feedback.shown(question, document)

    def feedback(self, query_id: str, chunk_id: str, useful: bool, viewer: Viewer) -> FeedbackDocument | None:
        """Store what a user says of an item of an answer that they were shown; it is on disk when this returns.

        Returns:
            What is stored; ``None`` when no such answer to this viewer is remembered.

        Raises:
            QueryError: the answer did not show the chunk.
            StoreError: it cannot be stored now.
        """
        return self._feedback.add(query_id, chunk_id, useful, asker=viewer.name)

    def evaluations(self, asked: EvaluationsQuery) -> EvaluationsDocument:
        """Return what was measured, newest first.

        Raises:
            StoreError: the history cannot be read.
        """
        return evaluations_document(history_of(self._settings), asked)

    def compare(self, domain: Domain, before: str, after: str, set_name: str | None = None) -> ComparisonDocument:
        """Compare two generations of a domain on the judged sets that both were measured with.

        Raises:
            StoreError: the history cannot be read.
        """
        return comparison_document(history_of(self._settings), domain, before, after, set_name)

    def fuse(self, question: Question, recalled: Recalled) -> FusionResult:
        """Fuse any agents' answers to a question; nothing is searched.

        Who wrote a line is told only to those who may see all of them: the answers can name any place.
        """
        origins = self._lines.origins() if self._may_know_lines(question.viewer) else NO_ORIGINS
        return answer_document(answer_from(question, recalled, self.fusion, self._synthesizer, origins))

    def encoder_load(self) -> EncoderLoad:
        """Return what the encoders of this process have done and have to do, together."""
        loads = [memo.load for memo in list(self._memos.values())]
        return EncoderLoad(*(sum(values) for values in zip(*loads, strict=True))) if loads else EncoderLoad(0, 0, 0)

    def chunk(self, chunk_id: str, viewer: Viewer) -> ChunkDocument | None:
        """Return the text behind a citation, from whichever served domain has it for this viewer."""
        for domain, agent in self.agents.items():
            with self._readable(domain), agent.generation.use(viewer) as generation:
                chunk = generation.chunk(chunk_id)
                if chunk:
                    return chunk_document(domain, chunk, generation.meta["generation"])
        return None

    def document(self, domain: Domain, source_id: str, path: str, viewer: Viewer) -> DocumentDocument | None:
        """Return a document as it was ingested; ``None`` when it is not served, or not to this viewer.

        Raises:
            StoreError: what was published cannot be read.
        """
        if domain not in self.agents:
            return None
        with self.agents[domain].generation.use(viewer) as generation:
            stored = generation.document(source_id, path)
            if stored is None:
                return None
            return document_document(domain, source_id, path, stored, generation.meta["generation"])

    def former_document(self, chunk_id: str, viewer: Viewer) -> FormerDocument | None:
        """Return the document that held a chunk which is not served any more; ``None`` when none is known.

        A viewer is told of a document that they could see then, and may see now.
        """
        for domain, agent in self.agents.items():
            with self._readable(domain):
                place = store_of(self._settings, domain).former_place(chunk_id)
                if place and agent.generation.may_see(viewer, place.source_id, place.path, place.rule):
                    return former_document(domain, place)
        return None

    @property
    def writes_answers(self) -> bool:
        """Tell whether a model was chosen that writes answers."""
        return self._settings.fusion.names_a_model

    def status(self) -> dict[str, StatusDocument]:
        """Return the status of every served domain.

        Raises:
            StoreError: a pointer to a published generation cannot be read.
        """
        return {domain.value: status_document(self._settings, domain) for domain in self.agents}

    def conflicts(self, viewer: Viewer) -> LedgerDocument:
        """Return the conflict ledger as the last publication left it: what both sides of which a viewer may see."""
        ledger = load_ledger(self._settings)
        if ledger is not None and not viewer.sees_everything:
            ledger = seen_ledger(ledger, partial(self._seen_places, viewer))
        return ledger_document(ledger, published(self._settings))

    def _may_know_lines(self, viewer: Viewer) -> bool:
        """Tell whether nothing is hidden from a viewer, as far as that is known without opening an index."""
        restricted = any(agent.generation.restricted_documents for agent in self.agents.values())
        return viewer.sees_everything or (self._settings.access is None and not restricted)

    def _seen_places(self, viewer: Viewer, domain: str, places: Collection[Place]) -> Collection[Place]:
        """Return the documents among some that a viewer may see; none where that is not known."""
        agent = self.agents.get(Domain(domain))
        if agent is None:
            return ()
        try:
            if agent.generation.sees_all(viewer):
                return places
            with agent.generation.use(viewer) as generation:
                return generation.seen_places(places)
        except StoreError as error:
            log.warning("%s: %s", domain, error)
            return ()

    def deposit(self, domain: Domain, documents: Sequence[Deposit], key: str | None = None) -> list[DepositDocument]:
        """Put documents into a domain's inbox; what is accepted is on disk when this returns.

        Args:
            domain: whose inbox.
            documents: in order.
            key: by which the caller may repeat itself; see ``inbox/receipts.py``.

        Raises:
            QueryError: the key came with other documents before.
            SourceUnavailableError: the inbox cannot be written.
        """
        self._check_takes_documents()
        put = partial(deposit, self._settings.inbox(domain), documents)
        book = ReceiptBook(self._settings.data_dir / "idempotency" / domain.value)
        receipts = put() if key is None else book.once(key, documents, put)
        return [
            {"source_path": receipt.source_path, "status": receipt.status.value, "reason": receipt.reason}
            for receipt in receipts
        ]

    def documents(self, domain: Domain, asked: DocumentsQuery) -> DocumentsDocument:
        """Return where the documents of a domain stand, a page of them.

        Raises:
            QueryError: the cursor is none.
            SourceUnavailableError: the inbox cannot be read.
            StoreError: the generation cannot be read.
        """
        with self._shelf(domain) as shelf:
            return documents_document(shelf.page(asked))

    def withdraw(self, domain: Domain, source_path: str) -> bool:
        """Take a document out of a domain's inbox; return whether anything is left for the next sync to remove.

        Raises:
            ForeignDocumentError: another source has it.
            SourceUnavailableError: the inbox cannot be written.
        """
        self._check_takes_documents()
        with self._shelf(domain) as shelf:
            return shelf.take_out(source_path)

    def _check_takes_documents(self) -> None:
        if self._settings.replica_of:
            raise SourceUnavailableError(
                f"this is a replica of {self._settings.replica_of}; hand documents in where it is published"
            )

    @contextmanager
    def _shelf(self, domain: Domain) -> Iterator[Shelf]:
        """Return what is known of a domain's documents; before the first generation that is the inbox alone."""
        with ExitStack() as stack:
            generation = None
            with suppress(NoGenerationError):
                generation = stack.enter_context(self.agents[domain].generation.use(OPERATOR))
            yield Shelf(
                generation=generation,
                outcomes=read_outcomes(domain_folder(self._settings, domain)),
                root=self._settings.inbox(domain),
                inbox=INBOX,
            )

    def recall(self, question: Question) -> tuple[RecallResponse, ...]:
        """Return what every domain that is asked answers, before fusion; domains without an answer are left out."""
        chosen = choose_agents(question, self.agents, self._settings.fusion.fusion_max_sources)
        responses, _ = recall_everywhere(question, chosen, self._domains)
        return tuple(responses.values())

    def rankings(
        self,
        text: str,
        *,
        domains: Sequence[Domain] | None,
        filters: Mapping[Domain, Filters],
        depth: int,
        hidden: Mapping[Domain, HiddenPlace] = NOTHING_HIDDEN,
    ) -> Rankings:
        """Return what every stage ranked over the domains asked, and the answer as it is served; see ``answer.trace``.

        Args:
            text: the query.
            domains: which are asked; ``None`` leaves it to the system.
            filters: by domain.
            depth: items wanted of each stage.
            hidden: by domain a part of a document that is searched as if it was not there.

        Raises:
            QueryError: the query or its filters are wrong.
            StoreError: what was published cannot be read.
        """
        question = Question(
            text=text,
            now=present(),
            domains=None if domains is None else tuple(domains),
            viewer=OPERATOR,
            top_k=depth,
            filters=filters,
            trace=True,
            hidden=hidden,
        )
        return trace(question, self.agents, self._domains, self.fusion)

    def domain_of(self, paths: Collection[str]) -> Mapping[str, Domain]:
        """Return the domain that holds each document, by its path in its source; unknown paths are left out."""
        wanted = set(paths)
        domains: dict[str, Domain] = {}
        for domain, agent in self.agents.items():
            try:
                domains |= dict.fromkeys(wanted.intersection(agent.paths(OPERATOR)), domain)
            except StoreError as error:
                log.warning("%s: %s", domain.value, error)
        return domains

    @contextmanager
    def _readable(self, domain: Domain) -> Iterator[None]:
        """Log an unreadable domain and continue with the next."""
        try:
            yield
        except StoreError as error:
            log.warning("%s: %s", domain.value, error)

    def _agent(self, domain: Domain) -> Agent:
        configured = self._settings.domains[domain]
        agent = Agent(
            domain,
            configured,
            ServedGeneration(self._files(domain), access=self._settings.restricted_sources(domain)),
            load_encoder=partial(self._memo, configured),
            reranker=self._reranker(configured.reranking),
            executor=self._sources,
            following=partial(self._standings.of, domain),
        )
        agent.follow(plan_in_force(self._settings, domain))
        return agent

    def _files(self, domain: Domain) -> Generations:
        files = store_of(self._settings, domain).files
        candidate = self._candidates.get(domain)
        return files.of_candidate(candidate) if candidate else files

    def _memo(self, configured: DomainSettings) -> QueryMemo:
        """Return the memo of an encoder, one for all domains that use it."""
        with self._loading:
            if configured.embedding not in self._memos:
                encoder = encoder_of(self._settings, configured)
                local = isinstance(encoder, OpenVinoEncoder)
                self._memos[configured.embedding] = QueryMemo(BatchedQueries(encoder) if local else encoder)
            return self._memos[configured.embedding]

    def _reranker(self, configured: RerankingSettings) -> RerankerSlot:
        """Return the slot of a cross-encoder, one for all domains that use it."""
        model, device = configured.model, configured.device
        if (model, device) not in self._rerankers:
            self._rerankers[model, device] = RerankerSlot(model, device=device, cache_dir=model_cache(self._settings))
        return self._rerankers[model, device]

    def _load(self, agent: Agent) -> None:
        agent.start()
        self._warn_of_groups(agent)

    def _warn_of_groups(self, agent: Agent) -> None:
        """Say that documents are hidden from everybody: they name groups, and nothing says who is in one."""
        count = agent.generation.restricted_documents
        if count and self._settings.access is None:
            log.warning(
                "%s: %d documents are for groups ('access'), and nothing says who is in one: only the command "
                "line shows them; configure 'access:' at the top of %s (docs/security.md)",
                agent.domain.value, count, self._settings.file.name,
            )  # fmt: skip

    def _follow_ranking(self) -> None:
        """Rank answers of several domains by the weights that are in force."""
        self.fusion = self._settings.fusion.with_ranking(ranking_in_force(self._settings).weights)

    def _watch(self) -> None:
        while not self._stopping.wait(REFRESH_S):
            self._feedback.tidy()
            for domain, agent in self.agents.items():
                with self._watching_on(domain.value):
                    if agent.refresh():
                        self._warn_of_groups(agent)
                    agent.follow(plan_in_force(self._settings, domain))
            with self._watching_on("ranking"):
                self._follow_ranking()

    @contextmanager
    def _watching_on(self, subject: str) -> Iterator[None]:
        """Log what goes wrong, once until it is over, and look again later: a thread that ends is never replaced."""
        try:
            yield
        except Exception as error:  # no file descriptors left, as a rule
            if self._watch_problems.get(subject) != str(error):
                log.exception("%s: what was published cannot be looked at; it is tried again", subject)
            self._watch_problems[subject] = str(error)
        else:
            self._watch_problems.pop(subject, None)


def _log_failure(loading: Future[None]) -> None:
    if error := loading.exception():
        log.error("a domain could not be loaded", exc_info=error)
