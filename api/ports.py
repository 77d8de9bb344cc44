"""What the API asks of the engine: ``nornweave.engine`` is the one that is served; tests bring their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nornweave.recall.records import AgentState, RecallRequest, RecallResponse
from nornweave.types import Domain, JsonValue


class AgentPort(Protocol):
    """One domain's memory agent; its methods block and may be called from several threads."""

    @property
    def domain(self) -> Domain:
        """The domain."""

    @property
    def agent_id(self) -> str:
        """The name that responses and coverage gaps carry."""

    @property
    def state(self) -> AgentState:
        """Where it stands in its lifecycle."""

    def recall(self, request: RecallRequest) -> RecallResponse:
        """Answer one request.

        Raises:
            QueryError: the request asks for something that cannot be.
            NoGenerationError: nothing is published yet.
            StoreError: the generation cannot be read.
        """

    def describe(self) -> Mapping[str, JsonValue]:
        """Return what it is: names, chunking, embedding, filters, plan, generation, sizes."""

    def health(self) -> Mapping[str, JsonValue]:
        """Return how it is: state, generation, checks, statistics, notices."""


class EnginePort(Protocol):
    """All agents of one process."""

    @property
    def agents(self) -> Mapping[Domain, AgentPort]:
        """The served domains, in the order of the enumeration."""

    def start(self, *, wait: bool = True) -> None:
        """Load models and generations, in the background unless ``wait``."""

    def close(self) -> None:
        """Finish what is in flight and refuse the rest."""
