"""What the routes work with: one record per app, and how a request gets at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from api.errors import ProblemError
from api.event_streams import StreamSlots
from api.limits import Admission
from api.ports import AgentPort, EnginePort
from api.starting import wait_for_start
from api.syncs import Syncs
from nornweave.retrieval.question import Question
from nornweave.types import Domain

T = TypeVar("T")

# A question waits for its domains, which compute in pools of the engine, 16 threads each. With 8 clients on 2 CPUs, 2,
# 4 and 8 at once answered as many a second; more of them leave room beside those that wait for a domain that hangs.
QUESTIONS = 16
# Large requests wait with all that they hold: not too many of them.
WAITING_TO_FUSE = 32
# What is handed in waits for the disk, what is looked up hardly at all.
WRITING, WAITING_TO_WRITE = 2, 16
LOOKING_UP = 4
# Feedback waits for the disk, and in one file for each other.
JUDGING, WAITING_TO_JUDGE = 2, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What is served.

    Attributes:
        engine: of this process.
        token: that clients send; ``None`` asks for none.
        alone: the one domain that is served, also at the root; ``None`` serves all.
        timeout_ms: of questions that set none.
        syncs: that people start; ``None``: nobody can.
        dagster_url: where Dagster's UI is; ``None``: nobody said.
        public_url: at which people open the pages; ``None``: where the caller called.
        admission: how many recalls run and wait.
        questions: how many questions to all domains do.
        fusions: how many fusions of given answers do; apart, for large ones take seconds.
        writing: how many deposits do.
        judging: how many pieces of feedback do.
        streams: how many event streams are open.
        lookups: how many look-ups of chunks, documents and the ledger do.
    """

    engine: EnginePort
    token: str | None
    alone: Domain | None
    timeout_ms: int
    public_url: str | None = None
    syncs: Syncs | None = None
    dagster_url: str | None = None
    admission: Admission = field(default_factory=Admission)
    questions: Admission = field(default_factory=lambda: Admission(QUESTIONS))
    fusions: Admission = field(default_factory=lambda: Admission(waiting=WAITING_TO_FUSE))
    writing: Admission = field(default_factory=lambda: Admission(WRITING, WAITING_TO_WRITE))
    judging: Admission = field(default_factory=lambda: Admission(JUDGING, WAITING_TO_JUDGE))
    lookups: Admission = field(default_factory=lambda: Admission(LOOKING_UP))
    streams: StreamSlots = field(default_factory=StreamSlots)

    @property
    def in_threads(self) -> int:
        """Return how much runs right now, including what no client waits for any more."""
        gates = (self.admission, self.questions, self.fusions, self.writing, self.judging, self.lookups)
        return sum(gate.in_threads for gate in gates)

    @property
    def agents(self) -> tuple[AgentPort, ...]:
        """Return the agents that are served."""
        return tuple(agent for domain, agent in self.engine.agents.items() if self.alone in {None, domain})

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Return the domains that are served."""
        return tuple(agent.domain for agent in self.agents)

    async def ask(self, question: Question, work: Callable[[EnginePort], T]) -> T:
        """Do what asks the domains of a question, in its turn and by its deadline, once one of them has started.

        Raises:
            ProblemError: 503, none of them takes requests or too much else is going on.
        """
        asked = [agent for agent in self.agents if question.domains is None or agent.domain in question.domains]
        await wait_for_start(asked, question.deadline)
        left_s = question.deadline.left_s if question.deadline else None
        return await self.questions.run(lambda: work(self.engine), left_s)

    def agent(self, domain: str) -> AgentPort:
        """Return the agent of a domain.

        Raises:
            ProblemError: 404, the domain is not served here.
        """
        served = {agent.domain.value: agent for agent in self.agents}
        if domain not in served:
            raise ProblemError(404, f"no domain {domain!r} is served here; served: {', '.join(served) or 'none'}")
        return served[domain]


def _serving_of(request: Request) -> Serving:
    serving: Serving = request.app.state.serving
    return serving


Served = Annotated[Serving, Depends(_serving_of)]
