"""The remote agents that can be asked: those that are registered and allowed by the configuration.

An agent on another machine is asked in the same way as a local one: over HTTP with pooled connections, in one thread
whose event loop ends every request at its deadline. If an agent accepts and sends nothing, or a byte a second without
end, the request is cancelled: no thread of a question waits longer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from nornweave.ask.agents.exchange import GROUPS_HEADER, groups_text, read_answer, recall_body, recall_headers
from nornweave.ask.agents.registry import ASKED_STATES, Capabilities, Registration, Registry
from nornweave.ask.search.filters import read_filters
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Filters, RecallResponse
from nornweave.config import Settings
from nornweave.config.access import AgentsSettings, AllowedAgent
from nornweave.config.base import is_allowed, origin_of
from nornweave.config.domain import FilterSettings
from nornweave.config.workspace import INBOX_ID
from nornweave.core.access import Viewer
from nornweave.core.errors import AgentError, ConfigError, ConflictingAgentError, StoreError
from nornweave.core.types import NO_METADATA, Domain
from nornweave.index.searching.conditions import Condition

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

FRESH_S = 0.25
THREADS_PER_AGENT = 16

# How much earlier than this server's own deadline an agent is asked to answer: for the way back.
WAY_BACK_MS = 20

T = TypeVar("T")

MAX_ANSWER_BYTES = 8 << 20
MOST_CONNECTIONS = 128
IDLE_CONNECTIONS, IDLE_S = 32, 30.0


class RemoteAgents:
    """Agents on other machines. Every method may be called from any thread."""

    def __init__(self, settings: Settings, allowed: AgentsSettings, environment: Mapping[str, str]) -> None:
        """Read the configuration.

        Raises:
            ConfigError: the variable of a token is not set.
        """
        self.registry = Registry(settings.data_dir, allowed.lease_s)
        self._settings = settings
        self._allowed = allowed
        self._tokens = {entry.url: _token(entry, environment) for entry in allowed.allow}
        self._transport = Transport()
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._agents: dict[str, RemoteAgent] = {}
        self._executors: dict[str, ThreadPoolExecutor] = {}
        self._problem = ""

    @property
    def has_token(self) -> bool:
        """Tell whether agents register with a token of their own."""
        return self._allowed.registration_token_env is not None

    def allowed(self, url: str) -> AllowedAgent | None:
        """Return the configuration's entry that allows a normalised address; ``None`` if there is none."""
        return next((entry for entry in self._allowed.allow if is_allowed(url, entry.url)), None)

    def check_allowed(self, url: str) -> None:
        """Refuse an address that no entry allows.

        Raises:
            ConflictingAgentError: no entry allows it.
        """
        if self.allowed(url) is None:
            raise ConflictingAgentError(f"{url!r} is not allowed: no entry of 'agents.allow' matches it")

    def check_name(self, agent_id: str) -> None:
        """Refuse the name of a local source, domain or agent, because the remote items could be taken for local ones.

        Raises:
            ConflictingAgentError: the name is taken.
        """
        settings = self._settings
        here = [domain for domain in Domain if settings.sources_of(domain) or settings.inbox(domain).is_dir()]
        agents = {settings.domains[domain].agent_id for domain in here}
        if agent_id in {INBOX_ID, *Domain, *agents, *(source.id for source in settings.sources)}:
            raise ConflictingAgentError(f"{agent_id!r} names a source, a domain or an agent here; take another")

    def asked_for(self, viewer: Viewer) -> tuple[RemoteAgent, ...]:
        """Return the agents whose items a viewer may see, by domain and name."""
        return tuple(agent for agent in self._current() if agent.is_for(viewer))

    def listed_for(self, viewer: Viewer) -> tuple[Registration, ...]:
        """Return the registrations of agents whose items a viewer may see; for operators, of all agents."""
        return tuple(agent.registration for agent in self._current() if viewer.operates or agent.is_for(viewer))

    def agents(self) -> tuple[RemoteAgent, ...]:
        """Return all agents, by domain and name, for operators."""
        return self._current()

    def executor(self, agent_id: str) -> ThreadPoolExecutor:
        """Return the agent's own threads, so that an agent that hangs blocks no other."""
        with self._lock:
            if agent_id not in self._executors:
                self._executors[agent_id] = ThreadPoolExecutor(THREADS_PER_AGENT, thread_name_prefix=f"to-{agent_id}")
            return self._executors[agent_id]

    def changed(self) -> None:
        """Read the registry again at the next question."""
        self._read_at = float("-inf")

    def close(self) -> None:
        """End running requests."""
        self._transport.close()
        for executor in self._executors.values():
            executor.shutdown(wait=True)

    def _current(self) -> tuple[RemoteAgent, ...]:
        """Return the registered agents.

        The registry is read at most once in ``FRESH_S``. If it cannot be read, the last known agents are returned.
        """
        with self._lock:
            if time.monotonic() - self._read_at >= FRESH_S:
                self._read_at = time.monotonic()
                try:
                    self._follow(self.registry.registrations())
                    self._problem = ""
                except StoreError as error:
                    if self._problem != str(error):
                        log.error("%s", error)
                    self._problem = str(error)
            return tuple(self._agents.values())

    def _follow(self, registrations: tuple[Registration, ...]) -> None:
        agents: dict[str, RemoteAgent] = {}
        # An earlier version kept several addresses of a name: the one that was heard of last answers.
        for one in sorted(registrations, key=lambda each: each.seen_at):
            if entry := self.allowed(one.url):
                known = self._agents.get(one.agent_id)
                agents[one.agent_id] = RemoteAgent(
                    registration=one,
                    allowed=entry,
                    token=self._tokens[entry.url],
                    filters=self._settings.domains[one.domain].filters,
                    transport=self._transport,
                    has_access=self._settings.access is not None,
                    wait_s=self._allowed.wait_s,
                    counts=known.counts if known else AgentCounts(),
                )
        self._agents = {each.agent_id: each for each in sorted(agents.values(), key=lambda x: (x.domain, x.agent_id))}


def _token(entry: AllowedAgent, environment: Mapping[str, str]) -> str | None:
    if entry.token_env is None:
        return None
    token = environment.get(entry.token_env, "").strip()
    if not token:
        raise ConfigError(f"agents.allow: {entry.url}: the environment variable {entry.token_env} is not set")
    return token


@dataclass(slots=True)
class AgentCounts:
    """How many requests were sent to an agent, and how many of them failed."""

    requests: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAgent:
    """An agent on another machine: its registration, the entry that allows it, and the token to send.

    Attributes:
        filters: the declared filters of its domain.
        has_access: whether viewers have different rights.
        wait_s: how long a question waits for it.
    """

    registration: Registration
    allowed: AllowedAgent
    token: str | None
    filters: Sequence[FilterSettings]
    transport: Transport
    has_access: bool
    wait_s: float
    counts: AgentCounts

    @property
    def agent_id(self) -> str:
        """Return the agent's name."""
        return self.registration.agent_id

    @property
    def domain(self) -> Domain:
        """Return the domain for which the agent answers."""
        return self.registration.domain

    def is_for(self, viewer: Viewer) -> bool:
        """Tell whether the agent's items may be shown to a viewer."""
        allowed = self.allowed
        if viewer.sees_everything or allowed.public or allowed.checks_groups:
            return True
        return bool(viewer.groups.intersection(allowed.groups)) if allowed.groups else not self.has_access

    def conditions(self, filters: Filters) -> tuple[Condition, ...]:
        """Return the conditions for filters of this domain; raises ``QueryError`` for an unknown or wrong filter."""
        return read_filters(self.filters, filters, f"filters.{self.domain.value}")

    def recall(self, question: Question) -> RecallResponse:
        """Return the agent's answer. Wait until the question's deadline or the agent's own, whichever is earlier.

        Raises:
            AgentError: the agent gives no answer, or gives one that cannot be used.
        """
        if question.as_of is not None:
            raise AgentError("agents on other machines answer from what they have now, not as of an earlier time")
        if not self.is_for(question.viewer):
            raise AgentError("is not registered")
        now = time.time()
        if (state := self.registration.state_at(now)) not in ASKED_STATES:
            raise AgentError(f"is {state.value}; it was heard of {now - self.registration.seen_at:.0f} s ago")
        wanted = set(question.filters.get(self.domain, NO_METADATA))
        if missing := wanted - set(Capabilities.read(self.registration.capabilities).filters):
            raise AgentError(f"does not take the filter {min(missing)!r}, so it was not asked")
        deadline = question.deadline
        late, left_s = f"no answer in time: it was given {self.wait_s:.3g} s", self.wait_s
        if deadline and deadline.left_s <= left_s:
            late, left_s = f"timeout after {deadline.timeout_ms}ms", deadline.left_s
        started = time.monotonic()
        response = self.transport.run(self._in_time(question, left_s, late), left_s + 1)
        return replace(response, latency_ms=round((time.monotonic() - started) * 1000, 2))

    async def _in_time(self, question: Question, left_s: float, late: str) -> RecallResponse:
        self.counts.requests += 1
        try:
            async with asyncio.timeout(left_s):
                return await self._exchange(question, left_s)
        except RefusedError:  # which says nothing of how the agent is
            raise
        except AgentError:
            self.counts.failures += 1
            raise
        except TimeoutError:
            self.counts.failures += 1
            raise AgentError(late) from None

    async def _exchange(self, question: Question, left_s: float) -> RecallResponse:
        url, allowed = self.registration.url, self.allowed
        groups = _groups_for(question.viewer, allowed)
        capabilities = Capabilities.read(self.registration.capabilities)
        body = recall_body(question, self.domain, capabilities, max(1, int(left_s * 1000) - WAY_BACK_MS))
        content, headers = await self.transport.post(
            f"{url}/recall", body, recall_headers(question, self.token, groups)
        )
        if allowed.checks_groups and groups is not None and GROUPS_HEADER not in headers:
            raise AgentError("did not say that it heeded the viewer's groups; nothing of its answer is shown")
        read: Callable[[], RecallResponse] = lambda: read_answer(  # noqa: E731 - a name for the type
            content,
            agent_id=self.agent_id,
            domain=self.domain,
            top_k=question.top_k,
            now=question.now,
            origins=(origin_of(url), *allowed.links),
        )
        return await asyncio.to_thread(read)


def _groups_for(viewer: Viewer, allowed: AllowedAgent) -> str | None:
    """Return the groups to send to an agent; empty if the agent checks no groups.

    ``None`` means that no groups are sent, because the viewer sees everything.
    """
    if viewer.sees_everything:
        return None
    return groups_text(viewer) if allowed.checks_groups else ""


class RefusedError(AgentError):
    """The agent refuses the question. This says nothing about the agent's health."""


class Transport:
    """Sends questions in one thread, which the first question starts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: httpx.AsyncClient | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run a coroutine in the event loop and return its result; wait at most ``timeout_s`` seconds.

        Raises:
            AgentError: there was no result in time, or the transport is closed.
        """
        try:
            loop = self._start_loop()
        except AgentError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise AgentError("no answer in time") from None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, httpx.Headers]:
        """Post JSON; return the answer's body, at most ``MAX_ANSWER_BYTES``, and its headers.

        Raises:
            AgentError: the agent cannot be reached, or its answer is not a 200 with plain bytes.
        """
        import httpx

        client = self._client or self._opened_client()
        try:
            async with client.stream("POST", url, content=body, headers=dict(headers)) as answer:
                _check(answer)
                received = bytearray()
                async for piece in answer.aiter_raw():
                    received += piece
                    if len(received) > MAX_ANSWER_BYTES:
                        raise AgentError(f"answered with more than {MAX_ANSWER_BYTES:,} bytes")
                return bytes(received), answer.headers
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise AgentError(f"cannot be reached ({type(error).__name__})") from error

    def close(self) -> None:
        """End running requests and the thread."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop and thread:
            asyncio.run_coroutine_threadsafe(self._end(), loop)
            thread.join(5)

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise AgentError("the server is shutting down")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=[self._loop], name="agents", daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._client:
            await self._client.aclose()
        asyncio.get_running_loop().stop()

    def _opened_client(self) -> httpx.AsyncClient:
        import httpx

        self._client = httpx.AsyncClient(
            timeout=None,  # noqa: S113 - every request is cancelled at its deadline
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(
                max_connections=MOST_CONNECTIONS, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_S
            ),
            # What is compressed could be large without being long.
            headers={"accept-encoding": "identity", "accept": "application/json"},
        )
        return self._client


def _check(answer: httpx.Response) -> None:
    status = answer.status_code
    if answer.is_redirect:
        raise AgentError(f"answered with a redirect ({status}), which is not followed")
    if status in {401, 403}:
        raise AgentError(f"did not accept this server's token ({status}); see 'token_env' of 'agents.allow'")
    if status in {400, 404, 413, 422}:
        raise RefusedError(f"does not take the question ({status})")
    if status != 200:
        raise AgentError(f"answered with status {status}")
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise AgentError("answered with compressed bytes, which were not asked for")
