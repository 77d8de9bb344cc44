"""``nornweave serve``: the API on a port, until SIGINT or SIGTERM.

``workers.py`` opens the socket and supervises several processes, ``process.py`` serves on it. With
``serve --agent D`` and ``REGISTRY_URL`` the agent registers at another server while it is served.
"""

from __future__ import annotations

import hmac
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
from prometheus_client.multiprocess import mark_process_dead

from api.access.door import check_listening, service_token
from api.server.workers import Start, default_port, listen, starting, supervise, url_of
from nornweave.ask.agents.registry import RemoteState
from nornweave.config import Settings
from nornweave.config.base import checked_server
from nornweave.core.errors import ConfigError
from nornweave.core.supervisor import LOOPBACK, signals_received
from nornweave.core.types import Domain, JsonValue

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
# At the end there is no time: the lease runs out by itself.
LEAVE_WITHIN_S = 1.0
HEARTBEAT_S = 10.0
JOINED, FOUND_GONE = 201, 404
TOKEN_HEADER = "nornweave-agent-token"  # noqa: S105 - the name of the header


def serve(
    settings: Settings,
    host: str = LOOPBACK,
    port: int | None = None,
    agent: Domain | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    announce: Callable[[str], None] | None = None,
    workers: int | None = None,
    is_outdated: Callable[[], bool] = lambda: False,
) -> int:
    """Serve the API until SIGINT or SIGTERM, then finish the requests in flight, for at most a few seconds.

    Args:
        port: 0 takes a free one. The default is ``FUSION_PORT``, or ``AGENT_PORT`` for an agent alone.
        agent: serve this domain alone, also at the root.
        announce: called with the URL once connections are accepted; by default it writes the URL to stderr.
        workers: how many processes serve, which this one supervises; ``None`` serves in this process.
        is_outdated: returns true if the file has new settings; then workers are replaced one after the other.

    Returns:
        The exit code: 0 after a signal, 1 when a request did not end in time.

    Raises:
        ConfigError: listening on ``host`` needs a token; the port is not valid; the domain has no source.
        PortInUseError: something else listens there.
    """
    environment = os.environ if environment is None else environment
    check_listening(host, service_token(environment), settings)
    if agent and agent not in settings.served_domains:
        served = ", ".join(domain.value for domain in settings.served_domains)
        raise ConfigError(f"{settings.file}: domain {agent.value!r} has no source; domains with one: {served}")
    with listen(host, default_port(agent, environment) if port is None else port) as listener, ExitStack() as stack:
        member = membership(settings, agent, url_of(listener), environment)
        if member:
            stack.callback(member.leave)

        def announced() -> None:
            if member:
                member.start()
            (announce or _say)(url_of(listener))

        if workers is None:
            from api.server.process import serve_on  # the supervisor of other processes does not load the app

            if member:
                stack.callback(member.drain)
            return serve_on(listener, settings, host, agent, environment=environment, announce=announced)
        start = partial(starting, settings.file, host, listener, agent)
        drain = member.drain if member else lambda: None
        return _supervise(start, workers, announced, drain, is_outdated)


def _supervise(
    start: Callable[[Path], Start],
    workers: int,
    announced: Callable[[], None],
    drain: Callable[[], None],
    is_outdated: Callable[[], bool],
) -> int:
    """Supervise processes that share a folder for their metrics. Return the exit code of ``supervise``."""
    with signals_received() as received, tempfile.TemporaryDirectory(prefix="nornweave-metrics-") as metrics:
        forget = partial(mark_process_dead, path=metrics)
        running = start(Path(metrics))
        return supervise(running, workers, announced, received, forget=forget, drain=drain, is_outdated=is_outdated)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The agent that is offered, and the registry.

    Attributes:
        registry: the address of the server that will ask the agent.
        token: the token with which any agent registers at the registry.
        own_token: the token that protects this agent's name at the registry; with ``None`` the registry makes one.
        url: the address of this server as the registry reaches it.
        interval_s: the seconds between two heartbeats.
    """

    registry: str
    token: str | None
    own_token: str | None
    agent_id: str
    domain_id: str
    url: str
    capabilities: Mapping[str, JsonValue]
    interval_s: float = HEARTBEAT_S


def registry_address(environment: Mapping[str, str]) -> str | None:
    """Return the address in ``REGISTRY_URL``; ``None`` if the variable is not set.

    Raises:
        ConfigError: the value is not an address.
    """
    stated = environment.get("REGISTRY_URL", "").strip()
    try:
        return checked_server(stated) if stated else None
    except ValueError as error:
        raise ConfigError(f"REGISTRY_URL: {error}") from error


def heartbeat_interval(environment: Mapping[str, str]) -> float:
    """Return the seconds in ``HEARTBEAT_INTERVAL_S``; 10 if the variable is not set.

    Raises:
        ConfigError: the value is not a number of seconds from 0.1 to 3,600.
    """
    stated = environment.get("HEARTBEAT_INTERVAL_S", "").strip() or f"{HEARTBEAT_S}"
    try:
        seconds = float(stated)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3_600:
        raise ConfigError(f"HEARTBEAT_INTERVAL_S: {stated!r}; expected seconds, 0.1 to 3600")
    return seconds


class Membership:
    """Registers an agent, sends heartbeats in a thread of its own, and deregisters it."""

    def __init__(self, offer: Offer, state: Callable[[], RemoteState]) -> None:
        """Store the offer. ``state`` returns the agent's current state."""
        self._offer = offer
        self._state = state
        self._is_known = False
        self._problem = ""
        self._stopping = threading.Event()
        headers = {"authorization": f"Bearer {offer.token}"} if offer.token else {}
        if offer.own_token:
            headers[TOKEN_HEADER] = offer.own_token
        self._client = httpx.Client(
            base_url=offer.registry, headers=headers, timeout=TIMEOUT_S, follow_redirects=False, trust_env=False
        )
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def drain(self) -> None:
        """Ask the registry to send no more questions. Wait until this is sent, or sending has failed."""
        self._stopping.set()
        if self._thread.ident is None:  # nothing was served
            return
        self._thread.join(LEAVE_WITHIN_S)
        self._client.timeout = httpx.Timeout(LEAVE_WITHIN_S)
        if self._is_known:
            self._send("POST", f"{self._path}/heartbeat", {"state": RemoteState.DRAINING.value, "url": self._offer.url})

    def leave(self) -> None:
        """Take the agent out of the registry."""
        if self._is_known:
            self._send("DELETE", f"{self._path}?url={quote(self._offer.url, safe='')}", None)
        self._client.close()

    @property
    def _path(self) -> str:
        return f"/agents/{quote(self._offer.agent_id, safe='')}"

    def _run(self) -> None:
        while True:
            state = self._state()
            if self._is_known:
                status = self._send("POST", f"{self._path}/heartbeat", {"state": state.value, "url": self._offer.url})
                self._is_known = status != FOUND_GONE
            if not self._is_known:
                self._register(state)
            if self._stopping.wait(self._offer.interval_s):
                return

    def _register(self, state: RemoteState) -> None:
        offer = self._offer
        body: dict[str, JsonValue] = {
            "agent_id": offer.agent_id,
            "domain_id": offer.domain_id,
            "url": offer.url,
            "capabilities": dict(offer.capabilities),
            "state": state.value,
        }
        self._is_known = self._send("POST", "/agents/register", body) in {200, 201}
        if self._is_known:
            log.info("%s is registered at %s as %s", offer.agent_id, offer.registry, offer.url)

    def _send(self, method: str, path: str, body: Mapping[str, JsonValue] | None) -> int:
        """Send a request. Return the status of the answer; 0 if there is no answer. A new problem is logged once."""
        problem, status = "", 0
        try:
            response = self._client.request(method, path, json=body)
            status = response.status_code
            if status == JOINED and (made := response.json().get("token")):
                self._client.headers[TOKEN_HEADER] = made
            if status >= 300 and status != FOUND_GONE:
                problem = f"status {status}: {response.text[:300]}"
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError, ValueError, AttributeError) as error:
            problem = f"{type(error).__name__}"
        if problem and problem != self._problem:
            log.warning("the registry %s does not take %s: %s", self._offer.registry, self._offer.agent_id, problem)
        self._problem = problem
        return status


LOOKED_AT_WITHIN_S = 2.0
ACCEPTED = ["timeout_ms", "expand", "rerank", "explain", "now"]


def membership(settings: Settings, agent: Domain | None, url: str, environment: Mapping[str, str]) -> Membership | None:
    """Return the ``Membership`` of an agent that is served alone; ``None`` if no registry is configured.

    Args:
        url: the agent's address on this machine; ``AGENT_URL`` replaces it if the registry needs another address.
        environment: holds ``REGISTRY_URL`` and the token for it.

    Raises:
        ConfigError: an address or the interval is wrong; or all domains are served.
    """
    registry = registry_address(environment)
    if registry is None:
        return None
    if agent is None:
        raise ConfigError("REGISTRY_URL: only an agent that is served alone registers; add --agent, or unset it")
    configured = settings.domains[agent]
    stated = environment.get("AGENT_URL", "").strip()
    if not stated and urlsplit(url).hostname in {"0.0.0.0", "::"}:  # noqa: S104 - to be refused
        raise ConfigError(f"AGENT_URL: not set, and {url} is no address to be reached at; say which one is")
    try:
        own = checked_server(stated or url)
    except ValueError as error:
        raise ConfigError(f"AGENT_URL: {error}") from error
    offer = Offer(
        registry=registry,
        token=environment.get("NORNWEAVE_REGISTRATION_TOKEN", "").strip() or service_token(environment),
        own_token=_own_token(configured.agent_id, environment),
        agent_id=configured.agent_id,
        domain_id=agent.value,
        url=own,
        capabilities={
            "filters": [each.key for each in configured.filters],
            "accepts": list(ACCEPTED),
            "description": configured.description[:1_000],
        },
        interval_s=heartbeat_interval(environment),
    )
    return Membership(offer, lambda: state_of(url, agent, service_token(environment)))


def _own_token(agent_id: str, environment: Mapping[str, str]) -> str | None:
    """Return the token by which the registry knows the agent again; ``None`` if there is no secret to derive it from.

    It is the same after a restart, and for replicas with the same service token.
    """
    stated = environment.get("NORNWEAVE_AGENT_TOKEN", "").strip()
    secret = service_token(environment)
    return stated or (hmac.digest(secret.encode(), agent_id.encode(), "sha256").hex() if secret else None)


def state_of(url: str, agent: Domain, token: str | None) -> RemoteState:
    """Return the agent's state, which the serving processes tell; ``STARTING`` if they do not answer."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with suppress(httpx.HTTPError, ValueError, KeyError, TypeError):
        address = f"{url.rstrip('/')}/agents/{agent.value}/health"
        answer = httpx.get(address, headers=headers, timeout=LOOKED_AT_WITHIN_S, trust_env=False)
        if answer.status_code in {401, 403}:  # this process has no token for the agent, but the agent answers
            return RemoteState.READY
        return RemoteState(str(answer.json()["state"]).replace("OFFLINE", "STOPPED"))
    return RemoteState.STARTING
