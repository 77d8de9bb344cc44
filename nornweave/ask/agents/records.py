"""Who has joined: an agent, at one address or several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from nornweave.core.types import NO_METADATA, Domain, JsonValue

MAX_FILTERS = 100


class RemoteState(StrEnum):
    """What an agent says of itself; ``STOPPED`` is also one that has been silent for longer than its lease."""

    STARTING = "STARTING"
    READY = "READY"
    DEGRADED = "DEGRADED"
    DRAINING = "DRAINING"
    STOPPED = "STOPPED"


ASKED_STATES = frozenset({RemoteState.READY, RemoteState.DEGRADED})

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class Capabilities(BaseModel):
    """What an agent can do beyond ``query_text`` and ``top_k``; what is not known here is passed over."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    filters: Annotated[list[Key], Field(max_length=MAX_FILTERS, description="the filters that it takes")] = []
    accepts: Annotated[
        list[Key],
        Field(
            max_length=MAX_FILTERS,
            description="fields of a recall that it takes beside `query_text`, `top_k` and `filters`: "
            "`timeout_ms`, `expand`, `rerank`, `explain`, `now`",
        ),
    ] = []
    description: Annotated[str, StringConstraints(max_length=1_000)] = ""

    @classmethod
    def read(cls, stored: Mapping[str, JsonValue]) -> Self:
        """Return what was stored."""
        return cls.model_validate(dict(stored))


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One address of an agent, as the registry has it.

    Attributes:
        url: of the server; it answers at ``<url>/recall``.
        state: as it said last.
        registered_at, seen_at, expires_at: seconds since 1970.
    """

    agent_id: str
    domain: Domain
    url: str
    capabilities: Mapping[str, JsonValue] = field(default_factory=lambda: NO_METADATA)
    state: RemoteState
    registered_at: float
    seen_at: float
    expires_at: float

    def state_at(self, now: float) -> RemoteState:
        """Return its state, which is ``STOPPED`` once its lease has run out."""
        return self.state if now < self.expires_at else RemoteState.STOPPED
