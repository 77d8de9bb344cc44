"""The query path, wired once for the API, the command line and the evaluations, so that they all answer alike."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Self

from threadpoolctl import threadpool_limits

from nornweave.ask.agents.directory import RemoteAgents
from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.feedback import feedback_of
from nornweave.ask.query_path import DOMAIN_THREADS, QueryPath
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.freshness import freshness_of
from nornweave.ask.search.lanes import AgentKey, Lanes
from nornweave.ask.seen import SeenEngine
from nornweave.ask.seen.agents import SeenAgents
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.seen.changes import SeenChanges
from nornweave.ask.seen.operators import SeenDocuments, SeenQuality
from nornweave.ask.seen.texts import SeenLedger, SeenTexts
from nornweave.carry.ledger_file import LedgerReader
from nornweave.carry.publication import StandingBook
from nornweave.carry.wiring import encoder_of, store_of
from nornweave.config import DomainSettings, EmbeddingSettings, RerankingSettings, Settings
from nornweave.config.workspace import FusionSettings
from nornweave.core.access import Viewer
from nornweave.core.types import Domain, GenerationId
from nornweave.index.generations.serving import ServedGeneration
from nornweave.models.encoders.bert import BertEncoder
from nornweave.models.encoders.port import EncoderLoad, QueryMemo
from nornweave.models.rerankers import RerankerSlot

log = logging.getLogger(__name__)

SOURCE_THREADS = 16
# That many questions are searched for at a time: eight clients get a third more answers than with a thread for each.
SHARED_THREADS = 2
# How often the pointers are looked at: a publication answers within this many seconds.
REFRESH_S = 0.5
Steps = Callable[[], Iterable[tuple[str, Callable[[], None]]]]
"""Returns what is looked at in one round: name and work."""
NO_CANDIDATES: Mapping[Domain, GenerationId] = MappingProxyType({})


class Engine:
    """Serves the published generations. It is a context manager; every method may be called from any thread.

    It loads the domains' generations, follows new ones and closes them. To ask a question, use ``as_seen_by``.
    """

    agent_type: type[Agent] = Agent

    def __init__(
        self,
        settings: Settings,
        domains: Sequence[Domain] | None = None,
        *,
        candidates: Mapping[Domain, GenerationId] = NO_CANDIDATES,
        watch: bool = True,
    ) -> None:
        """Store the settings. Nothing is loaded before ``start``.

        Args:
            domains: the domains to serve; ``None`` serves all that have a source or an inbox.
            candidates: domains that answer from an unpublished generation, to measure it.
            watch: whether the engine, used as a context, follows new generations.
        """
        self._settings = settings
        self._candidates = candidates
        self._watches = watch
        self._standings = StandingBook(settings)
        self._sources = ThreadPoolExecutor(SOURCE_THREADS, thread_name_prefix="source")
        self._limits = ExitStack()
        self._watch = Watch(self._steps)
        self.models = QueryModels(settings)
        # A process that serves only some domains, or measures, does not ask agents of other machines.
        joins = settings.agents is not None and domains is None and not candidates
        remote = RemoteAgents(settings, settings.agents, os.environ) if joins and settings.agents else None
        served = domains or settings.served_domains
        pools = {domain: ThreadPoolExecutor(DOMAIN_THREADS, thread_name_prefix=domain.value) for domain in served}
        shared = partial(ThreadPoolExecutor, SHARED_THREADS, thread_name_prefix="domains")
        self.path = QueryPath(
            settings=settings,
            agents={domain: self._agent(domain) for domain in served},
            pools=pools,
            lanes=Lanes(self._threads, shared, settings.agents.budget_s if settings.agents else math.inf),
            remote=remote,
            feedback=feedback_of(settings),
            fusion=settings.fusion,
            synthesizer=Synthesizer(settings.fusion),
            notes=LedgerReader(settings),
        )

    def __enter__(self) -> Self:
        try:
            self.start(watch=self._watches)
        except BaseException:  # Ctrl-C, while everything is being loaded
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def agents(self) -> Mapping[Domain, Agent]:
        """The agents of the served domains, in the order of ``Domain``."""
        return self.path.agents

    @property
    def fusion(self) -> FusionSettings:
        """The present settings of fusion."""
        return self.path.fusion

    def as_seen_by(self, viewer: Viewer) -> SeenEngine:
        """Return the engine limited to what a viewer may see and do."""
        settings, agents = self._settings, self.path.agents
        answers = SeenAnswers(self.path, viewer)
        return SeenEngine(
            viewer=viewer,
            agents=SeenAgents(agents, self.path.remote, viewer),
            answers=answers,
            texts=SeenTexts(settings, agents, viewer),
            documents=SeenDocuments(settings, agents, viewer),
            quality=SeenQuality(settings, viewer),
            ledger=SeenLedger(settings, agents, viewer),
            changes=SeenChanges(settings, agents, answers, viewer),
        )

    def start(self, *, wait: bool = True, watch: bool = True) -> None:
        """Load models and generations, all domains at once."""
        # A matrix product is bound by memory: more threads of one query only get in the way of the next.
        self._limits.enter_context(threadpool_limits(1, user_api="blas"))
        # Not threads to be joined: to Python 3.11 one has ended when Ctrl-C comes while it is joined (bpo-45274), and a
        # process that ends while a thread is in compiled code is aborted.
        loading = [self.path.pools[domain].submit(self._load, agent) for domain, agent in self.agents.items()]
        for future in loading:
            future.add_done_callback(_log_failure)
        if watch:
            self._watch.start()
        if wait:
            futures.wait(loading)

    def close(self) -> None:
        """Refuse new questions, let the running ones end, and stop loading."""
        self.path.is_closing.set()
        for agent in self.agents.values():
            agent.close()
        self._watch.close()
        # Not `cancel_futures`: a thread that waits for a cancelled future is never woken. The agents are closed.
        for pool in self.path.pools.values():
            pool.shutdown(wait=True)
        self.path.lanes.close()
        self._sources.shutdown(wait=True)
        self.models.close()
        if self.path.remote:
            self.path.remote.close()
        self.path.feedback.close()
        self._limits.close()

    def _agent(self, domain: Domain) -> Agent:
        configured = self._settings.domains[domain]
        files, candidate = store_of(self._settings, domain).files, self._candidates.get(domain)
        return self.agent_type(
            domain,
            configured,
            ServedGeneration(
                files.of_candidate(candidate) if candidate else files, access=self._settings.restricted_sources(domain)
            ),
            load_encoder=partial(self.models.encoder, configured),
            reranker=self.models.reranker(configured.reranking),
            executor=self._sources,
            following=partial(self._standings.of, domain),
            freshness=freshness_of(self._settings, domain, asks_git=self._watches),
        )

    def _threads(self, place: AgentKey) -> ThreadPoolExecutor:
        """Return the threads of a local or remote agent. Each agent has its own: one that hangs blocks no other."""
        if isinstance(place, Domain):
            return self.path.pools[place]
        if self.path.remote is None:
            raise KeyError(place)
        return self.path.remote.executor(place[1])

    def _load(self, agent: Agent) -> None:
        agent.start()
        self._warn_of_groups(agent)

    def _warn_of_groups(self, agent: Agent) -> None:
        """Warn about documents that are hidden from everybody, because no configuration gives their groups members."""
        count = agent.generation.restricted_documents
        if count and self._settings.access is None:
            log.warning(
                "%s: %d documents are for groups ('access'), and nothing says who is in one: only the command "
                "line shows them; configure 'access:' at the top of %s (docs/security.md)",
                agent.domain.value, count, self._settings.file.name,
            )  # fmt: skip

    def _steps(self) -> Iterable[tuple[str, Callable[[], None]]]:
        """Return the steps of one round of the watching thread, each with its name for the log."""
        yield "feedback", self.path.feedback.tidy
        for domain, agent in self.agents.items():
            yield domain.value, partial(self._follow, agent)

    def _follow(self, agent: Agent) -> None:
        """Let an agent answer from the generation that is published now."""
        if agent.refresh():
            self._warn_of_groups(agent)


def _log_failure(loading: Future[None]) -> None:
    if error := loading.exception():
        log.error("a domain could not be loaded", exc_info=error)


class Watch:
    """Runs steps in rounds in a thread. A failure is logged once until it is over, and never ends the thread."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._stopping = threading.Event()
        self._problems: dict[str, str] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="watch-generations", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after the current step."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(REFRESH_S):
            for name, step in self._steps():
                self._try(name, step)

    def _try(self, name: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # no file descriptors left, as a rule
            if self._problems.get(name) != str(error):
                log.exception("%s: what was published cannot be looked at; it is tried again", name)
            self._problems[name] = str(error)
        else:
            self._problems.pop(name, None)


class QueryModels:
    """Encoders and rerankers of questions. Each is loaded once and shared by all domains that use it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rerankers: dict[tuple[str | None, str], RerankerSlot] = {}
        self._memos: dict[EmbeddingSettings, QueryMemo] = {}
        self._loading = threading.Lock()

    def encoder(self, configured: DomainSettings) -> QueryMemo:
        """Return the encoder of a domain, with its cache of encoded texts.

        Raises:
            EncoderError: the encoder cannot be loaded.
        """
        with self._loading:
            if configured.embedding not in self._memos:
                encoder = encoder_of(self._settings, configured)
                self._memos[configured.embedding] = QueryMemo(encoder, together=isinstance(encoder, BertEncoder))
            return self._memos[configured.embedding]

    def reranker(self, configured: RerankingSettings) -> RerankerSlot:
        """Return the slot of a domain's cross-encoder, which may still be loading."""
        model, device = configured.model, configured.device
        if (model, device) not in self._rerankers:
            self._rerankers[model, device] = RerankerSlot(model, device=device)
        return self._rerankers[model, device]

    def encoder_load(self) -> EncoderLoad:
        """Return the numbers of encoded, remembered and waiting queries of all encoders together."""
        loads = [memo.load for memo in list(self._memos.values())]
        return EncoderLoad(*(sum(values) for values in zip(*loads, strict=True))) if loads else EncoderLoad(0, 0, 0)

    def close(self) -> None:
        """Close the rerankers."""
        for reranker in self._rerankers.values():
            reranker.close()
