"""What the routes work with: one record per app, and how a request gets at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.errors import ProblemError
from api.limits import Admission
from api.ports import AgentPort, EnginePort
from nornweave.types import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What is served.

    Attributes:
        engine: of this process.
        admission: how many recalls run and wait.
        token: that clients send; ``None`` asks for none.
        alone: the one domain that is served, also at the root; ``None`` serves all.
    """

    engine: EnginePort
    admission: Admission
    token: str | None
    alone: Domain | None

    @property
    def agents(self) -> tuple[AgentPort, ...]:
        """Return the agents that are served."""
        return tuple(agent for domain, agent in self.engine.agents.items() if self.alone in {None, domain})

    def agent(self, domain: str) -> AgentPort:
        """Return the agent of a domain.

        Raises:
            ProblemError: 404, the domain is not served here.
        """
        served = {one.domain.value: one for one in self.agents}
        if domain not in served:
            raise ProblemError(404, f"no domain {domain!r} is served here; served: {', '.join(served) or 'none'}")
        return served[domain]


def _serving_of(request: Request) -> Serving:
    serving: Serving = request.app.state.serving
    return serving


Served = Annotated[Serving, Depends(_serving_of)]
