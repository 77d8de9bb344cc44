"""``serve --agent D`` with ``REGISTRY_URL``: the agent offers itself to another server while it is served."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import httpx

from api.access.service_token import service_token
from nornweave.ask.agents.membership import Membership, Offer, heartbeat_interval, registry_address
from nornweave.ask.agents.registry import RemoteState
from nornweave.config import DomainSettings, Settings
from nornweave.config.addresses import checked_server
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain, JsonValue

LOOKED_AT_WITHIN_S = 2.0
ACCEPTED = ["timeout_ms", "expand", "rerank", "explain", "now"]


def membership(settings: Settings, agent: Domain | None, url: str, environment: Mapping[str, str]) -> Membership | None:
    """Return what registers an agent that is served alone; ``None`` where no registry is named.

    Args:
        url: at which this machine serves it; ``AGENT_URL`` is another one by which the registry reaches it.
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
        capabilities=_capabilities(configured),
        interval_s=heartbeat_interval(environment),
    )
    return Membership(offer, lambda: state_of(url, agent, service_token(environment)))


def _capabilities(domain: DomainSettings) -> dict[str, JsonValue]:
    """Return what a registry tells those who ask about the agent."""
    filters = [each.key for each in domain.filters]
    return {"filters": filters, "accepts": list(ACCEPTED), "description": domain.description[:1_000]}


def _own_token(agent_id: str, environment: Mapping[str, str]) -> str | None:
    """Return what proves that an agent is itself: after a restart, and for its replicas with the same service token."""
    stated = environment.get("NORNWEAVE_AGENT_TOKEN", "").strip()
    secret = service_token(environment)
    return stated or (hmac.digest(secret.encode(), agent_id.encode(), "sha256").hex() if secret else None)


def state_of(url: str, agent: Domain, token: str | None) -> RemoteState:
    """Ask the serving processes how the agent is; one that does not answer is starting."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with suppress(httpx.HTTPError, ValueError, KeyError, TypeError):
        address = f"{url.rstrip('/')}/agents/{agent.value}/health"
        answer = httpx.get(address, headers=headers, timeout=LOOKED_AT_WITHIN_S, trust_env=False)
        if answer.status_code in {401, 403}:  # no token of its own: access decides who asks, and it does answer
            return RemoteState.READY
        return RemoteState(str(answer.json()["state"]).replace("OFFLINE", "STOPPED"))
    return RemoteState.STARTING
