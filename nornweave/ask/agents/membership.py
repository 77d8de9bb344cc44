"""The other side of the registry: a server that offers its agent to another one, for as long as it runs.

Whatever goes wrong with the registry is logged and tried again; the server answers all the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from nornweave.ask.agents.registry import RemoteState
from nornweave.config.addresses import checked_server
from nornweave.core.errors import ConfigError
from nornweave.core.types import JsonValue

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
# At the end there is no time: the lease runs out by itself.
LEAVE_WITHIN_S = 1.0
HEARTBEAT_S = 10.0
JOINED, FOUND_GONE = 201, 404
TOKEN_HEADER = "nornweave-agent-token"  # noqa: S105 - the name of the header


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What is offered, and where.

    Attributes:
        registry: address of the server that is to ask.
        token: that lets agents register there.
        own_token: of this agent there, so that nobody else has its name; ``None`` takes the one that is made for it.
        url: where this server is for it.
        interval_s: between signs of life.
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
    """Return ``REGISTRY_URL``, ``None`` where there is none.

    Raises:
        ConfigError: it is no address.
    """
    stated = environment.get("REGISTRY_URL", "").strip()
    try:
        return checked_server(stated) if stated else None
    except ValueError as error:
        raise ConfigError(f"REGISTRY_URL: {error}") from error


def heartbeat_interval(environment: Mapping[str, str]) -> float:
    """Return ``HEARTBEAT_INTERVAL_S``, 10 unless set.

    Raises:
        ConfigError: it is no number of seconds from 0.1 to 3,600.
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
    """Registers, gives signs of life in a thread of its own, and leaves."""

    def __init__(self, offer: Offer, state: Callable[[], RemoteState]) -> None:
        """Store what is offered; ``state`` says how the agent is."""
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
        """Begin; returns at once."""
        self._thread.start()

    def drain(self) -> None:
        """Say that no more questions should come; returns when that is said, or cannot be."""
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
        """Return the status of the answer, 0 without one; a new problem is logged once."""
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
