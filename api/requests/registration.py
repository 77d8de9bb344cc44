"""What agents on other machines say of themselves, and how they are listed."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from api.schemas import AgentDocument
from nornweave.ask.agents.directory import ListedAgent
from nornweave.ask.agents.registry import Capabilities, RemoteState
from nornweave.config.addresses import checked_server
from nornweave.core.access.viewer import Viewer
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain

AgentId = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$"),
    Field(description="names the agent in answers and coverage gaps; several addresses of one agent share it"),
]
Server = Annotated[
    str,
    StringConstraints(max_length=2_000),
    AfterValidator(checked_server),
    Field(description="where it is: recalls are posted to `<url>/recall`; `agents.allow` must name it"),
]
StateName = Annotated[
    RemoteState,
    BeforeValidator(lambda name: RemoteState(name) if isinstance(name, str) else name),
    Field(description="READY and DEGRADED are asked, the others are not"),
]


class RegistrationBody(BaseModel):
    """An agent that joins, or one that has been restarted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    agent_id: AgentId
    domain_id: Annotated[Domain, BeforeValidator(lambda name: Domain(name) if isinstance(name, str) else name)]
    url: Server
    capabilities: Capabilities = Capabilities()
    state: StateName = RemoteState.READY


class HeartbeatBody(BaseModel):
    """A sign of life."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    state: StateName | None = None
    url: Annotated[Server | None, Field(description="of the address that is alive; null: of all addresses")] = None


class LeaseDocument(TypedDict):
    """How long an agent is known without a sign of life, and how often to give one."""

    agent_id: str
    url: str | None
    state: Literal["STARTING", "READY", "DEGRADED", "DRAINING", "STOPPED"] | None
    lease_s: float
    token: Annotated[str | None, Field(description="made for a new agent that brought none; not shown again")]
    heartbeat_interval_s: float


class RemovedDocument(TypedDict):
    """At how many addresses an agent was taken out of the registry."""

    agent_id: str
    removed: int


def listed_document(listed: ListedAgent, viewer: Viewer) -> AgentDocument:
    """Return an address of an agent as it is listed; where it is, to who operates the service."""
    found, now = listed.registration, time.time()
    document: AgentDocument = {
        "agent_id": found.agent_id,
        "domain_id": found.domain,
        "name": found.agent_id,
        "description": Capabilities.read(found.capabilities).description,
        "state": found.state_at(now),
        "generation": None,
        "remote": True,
        "registered_at": _moment(found.registered_at),
        "seen_at": _moment(found.seen_at),
        "lease_expires_at": _moment(found.expires_at),
        "lease_expired": found.expires_at <= now,
        "p95_ms": listed.p95_ms,
        "breaker": listed.breaker,
    }
    if viewer.operates:
        document["url"] = found.url
    return document


def _moment(seconds: float) -> str:
    return utc_text(datetime.fromtimestamp(seconds, UTC), "seconds")
