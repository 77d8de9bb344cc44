"""Who has joined and may: the registry against the allow-list, as agents that can be asked."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from nornweave.ask.agents.agent import AgentAddress, RemoteAgent
from nornweave.ask.agents.registry import Registration, Registry
from nornweave.ask.agents.replicas import BreakerState
from nornweave.ask.agents.transport import Transport
from nornweave.config import Settings
from nornweave.config.access import AgentsSettings, AllowedAgent
from nornweave.config.addresses import is_allowed
from nornweave.config.workspace import INBOX_ID
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import ConfigError, ConflictingAgentError, StoreError
from nornweave.core.types import Domain

log = logging.getLogger(__name__)

FRESH_S = 0.25
THREADS_PER_AGENT = 16


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """One address as it is listed: what the registry has, and what this process knows of it.

    Attributes:
        breaker: whether it is asked.
        p95_ms: of the agent's last answers, wherever they came from; ``None`` before there are enough.
    """

    registration: Registration
    breaker: BreakerState
    p95_ms: float | None


class RemoteAgents:
    """Agents on other machines; every method may be called from any thread."""

    def __init__(self, settings: Settings, allowed: AgentsSettings, environment: Mapping[str, str]) -> None:
        """Read what is configured.

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
        """Tell whether agents have a token of their own to register with."""
        return self._allowed.registration_token_env is not None

    def allowed(self, url: str) -> AllowedAgent | None:
        """Return the entry that allows an address in its normal form."""
        return next((entry for entry in self._allowed.allow if is_allowed(url, entry.url)), None)

    def check_allowed(self, url: str) -> None:
        """Refuse an address that no entry allows.

        Raises:
            ConflictingAgentError: none does.
        """
        if self.allowed(url) is None:
            raise ConflictingAgentError(f"{url!r} is not allowed: no entry of 'agents.allow' matches it")

    def check_name(self, agent_id: str) -> None:
        """Refuse what a source, a domain or an agent here is called: its items would be taken for theirs.

        Raises:
            ConflictingAgentError: something is.
        """
        settings = self._settings
        here = [domain for domain in Domain if settings.sources_of(domain) or settings.inbox(domain).is_dir()]
        agents = {settings.domains[domain].agent_id for domain in here}
        if agent_id in {INBOX_ID, *Domain, *agents, *(source.id for source in settings.sources)}:
            raise ConflictingAgentError(f"{agent_id!r} names a source, a domain or an agent here; take another")

    def asked_for(self, viewer: Viewer) -> tuple[RemoteAgent, ...]:
        """Return the agents whose items may be shown to a viewer, by domain and name."""
        return tuple(agent for agent in self._current() if agent.is_for(viewer))

    def listed_for(self, viewer: Viewer) -> tuple[ListedAgent, ...]:
        """Return all addresses of the agents that are asked for a viewer."""
        return tuple(
            ListedAgent(
                address.registration,
                agent.breaker_state(address.registration.url),
                None if agent.p95_s is None else round(agent.p95_s * 1000, 1),
            )
            for agent in self._current()
            if viewer.operates or agent.is_for(viewer)
            for address in agent.addresses
        )

    def agents(self) -> tuple[RemoteAgent, ...]:
        """Return all agents, by domain and name, for who operates the service."""
        return self._current()

    def executor(self, agent_id: str) -> ThreadPoolExecutor:
        """Return the threads of an agent: one that hangs holds its own."""
        with self._lock:
            if agent_id not in self._executors:
                self._executors[agent_id] = ThreadPoolExecutor(THREADS_PER_AGENT, thread_name_prefix=f"to-{agent_id}")
            return self._executors[agent_id]

    def changed(self) -> None:
        """Read the registry again with the next question."""
        self._read_at = float("-inf")

    def close(self) -> None:
        """End what is being asked."""
        self._transport.close()
        for executor in self._executors.values():
            executor.shutdown(wait=True)

    def _current(self) -> tuple[RemoteAgent, ...]:
        """Return the agents, of a registry that was read a moment ago; the last known ones if it cannot be read."""
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
        addresses: dict[str, list[AgentAddress]] = {}
        for one in registrations:
            entry = self.allowed(one.url)
            if entry:
                address = AgentAddress(registration=one, allowed=entry, token=self._tokens[entry.url])
                addresses.setdefault(one.agent_id, []).append(address)
        agents: dict[str, RemoteAgent] = {}
        for agent_id, found in addresses.items():
            domain = max(found, key=lambda address: address.registration.seen_at).registration.domain
            known = self._agents.get(agent_id)
            agent = known if known and known.domain is domain else self._agent(agent_id, found[0])
            agent.follow([address for address in found if address.registration.domain is domain])
            agents[agent_id] = agent
        self._agents = agents

    def _agent(self, agent_id: str, address: AgentAddress) -> RemoteAgent:
        domain = address.registration.domain
        return RemoteAgent(
            agent_id,
            domain,
            self._settings.domains[domain].filters,
            self._transport,
            has_access=self._settings.access is not None,
            wait_s=self._allowed.wait_s,
        )


def _token(entry: AllowedAgent, environment: Mapping[str, str]) -> str | None:
    if entry.token_env is None:
        return None
    token = environment.get(entry.token_env, "").strip()
    if not token:
        raise ConfigError(f"agents.allow: {entry.url}: the environment variable {entry.token_env} is not set")
    return token
