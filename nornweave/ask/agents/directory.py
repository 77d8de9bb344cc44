"""The remote agents that can be asked: those that are registered and allowed by the configuration."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from nornweave.ask.agents.agent import AgentCounts, RemoteAgent
from nornweave.ask.agents.registry import Registration, Registry
from nornweave.ask.agents.transport import Transport
from nornweave.config import Settings
from nornweave.config.access import AgentsSettings, AllowedAgent
from nornweave.config.base import is_allowed
from nornweave.config.workspace import INBOX_ID
from nornweave.core.access import Viewer
from nornweave.core.errors import ConfigError, ConflictingAgentError, StoreError
from nornweave.core.types import Domain

log = logging.getLogger(__name__)

FRESH_S = 0.25
THREADS_PER_AGENT = 16


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
