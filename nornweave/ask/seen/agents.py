"""The agents of the domains on behalf of one viewer, local and remote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nornweave.ask.agents.directory import RemoteAgents
from nornweave.ask.agents.registry import Registration
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import AgentState, RecallResponse
from nornweave.core.access import Viewer
from nornweave.core.errors import EncoderError, NotPermittedError
from nornweave.core.types import Domain, JsonValue
from nornweave.index.port import Vectors


def check_own(question: Question, viewer: Viewer) -> None:
    """Refuse a question that was made for another viewer, which is a bug.

    Raises:
        PermissionError: the question is another viewer's.
    """
    if question.viewer != viewer:
        raise PermissionError("a question is asked on behalf of somebody else")


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """One domain's agent."""

    _agent: Agent
    _viewer: Viewer

    @property
    def domain(self) -> Domain:
        """The agent's domain."""
        return self._agent.domain

    @property
    def agent_id(self) -> str:
        """The agent's name in responses and coverage gaps."""
        return self._agent.agent_id

    @property
    def state(self) -> AgentState:
        """The agent's state."""
        return self._agent.state

    @property
    def ingestion_problem(self) -> str | None:
        """Why the agent accepts no documents now; ``None`` if it accepts documents."""
        return self._agent.ingestion_problem

    @property
    def encoder_version(self) -> str | None:
        """The encoder's version; ``None`` if it cannot be loaded. Vectors of different versions do not compare."""
        memo = self._agent.encoder()
        return memo.encoder.version if memo else None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a vector of length 1 for each text, as for a question; raises ``EncoderError`` if no model answers."""
        memo = self._agent.encoder()
        if memo is None:
            raise EncoderError(self._agent.encoding.problem or "no encoder")
        return np.stack([each.result().vector for each in [memo.begin(text) for text in texts]])

    def recall(self, question: Question) -> RecallResponse:
        """Answer a question from this domain alone; raises as ``Agent.recall`` does."""
        check_own(question, self._viewer)
        return self._agent.recall(question)

    def describe(self) -> Mapping[str, JsonValue]:
        """Return names, filters, plan and generation, with the sizes of the visible part."""
        return self._agent.describe(self._viewer)

    def facets(self) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Return filter → its most frequent values, each with the number of visible chunks that have it."""
        return self._agent.facets(self._viewer)

    def health(self) -> Mapping[str, JsonValue]:
        """Return state, generation, checks and notices."""
        return self._agent.health(self._viewer)


@dataclass(frozen=True, slots=True)
class SeenAgents:
    """All agents that can be asked."""

    _agents: Mapping[Domain, Agent]
    _remote: RemoteAgents | None
    _viewer: Viewer

    def here(self) -> dict[Domain, SeenAgent]:
        """Return the local agents by domain, in the order of ``Domain``."""
        return {domain: SeenAgent(agent, self._viewer) for domain, agent in self._agents.items()}

    def joined(self) -> tuple[Registration, ...]:
        """Return the remote agents that the viewer may know."""
        return self._remote.listed_for(self._viewer) if self._remote else ()

    def askable(self) -> tuple[Domain, ...]:
        """Return the domains that can be asked, local or remote, in the order of ``Domain``."""
        joined = {agent.domain for agent in self._remote.asked_for(self._viewer)} if self._remote else ()
        return tuple(domain for domain in Domain if domain in self._agents or domain in joined)

    def registry(self) -> RemoteAgents | None:
        """Return the registry of remote agents; ``None`` if none can register.

        Raises:
            NotPermittedError: agents register with a token of their own, and the viewer has none.
        """
        if not self._viewer.registers:
            self._viewer.check_operates()
            if self._remote and self._remote.has_token and not self._viewer.sees_everything:
                raise NotPermittedError("agents register with the token of 'agents.registration_token_env'")
        return self._remote
