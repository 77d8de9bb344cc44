"""What the routes work with: one service per app, and what of it a request gets on behalf of its viewer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import anyio
from fastapi import Depends, Request

from api.access.door import Door, viewer_of
from api.errors import RETRY_SOON_S, ProblemError, unavailable
from api.event_streams import StreamSlots
from api.pages.judged import JudgedQuestions
from api.server.limits import Admission
from api.syncs import Syncs
from api.tracing import current_trace_id
from nornweave.ask.search.question import Deadline, Question
from nornweave.ask.search.records import AgentState, FindQuery
from nornweave.ask.seen.agents import SeenAgent
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import QueryError
from nornweave.core.types import Domain, present

if TYPE_CHECKING:
    from nornweave.ask.engine import Engine
    from nornweave.ask.seen import SeenEngine
    from nornweave.ask.seen.agents import SeenAgent
    from nornweave.ask.seen.answers import SeenAnswers
    from nornweave.ask.views.texts import FindDocument
    from nornweave.ask.views.uses import UsesDocument

T = TypeVar("T")

# A question waits for its domains, which compute in pools of the engine, 16 threads each. With 8 clients on 2 CPUs, 2,
# 4 and 8 at once answered as many a second; more of them leave room beside those that wait for a domain that hangs.
QUESTIONS = 16
# Large requests wait with all that they hold: not too many of them.
WAITING_TO_FUSE = 32
# What is handed in waits for the disk, what is looked up hardly at all.
WRITING, WAITING_TO_WRITE = 2, 16
LOOKING_UP = 4
# Searching lines reads every text: it must not take all CPUs.
FINDING = 2
RECEIPTS, WAITING_FOR_RECEIPTS = 1, 4
# Feedback waits for the disk, and in one file for each other.
JUDGING, WAITING_TO_JUDGE = 2, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What requests of all viewers share.

    Attributes:
        alone: the one domain that is served, also at the root; ``None`` serves all.
        timeout_ms: of questions that set none.
        syncs: that people start; ``None``: nobody can.
        settings: of the workspace; ``None``: nobody can ask for a receipt of a deletion.
        dagster_url: where Dagster's UI is; ``None``: nobody said.
        public_url: at which people open the pages; ``None``: where the caller called.
        admission: how many recalls run and wait.
        judged: questions of the judged sets.
        sources_file: names the sources and may be edited; ``None`` for a replica.
        questions: how many questions to all domains do.
        fusions: how many fusions of given answers do; apart, for large ones take seconds.
        writing: how many deposits do.
        judging: how many pieces of feedback do.
        streams: how many event streams are open.
        finding: how many searches of lines do.
        receipting: how many receipts are made: each holds its domain.
        lookups: how many look-ups of chunks, documents and the ledger do.
    """

    door: Door
    alone: Domain | None
    timeout_ms: int
    public_url: str | None = None
    syncs: Syncs | None = None
    settings: Settings | None = None
    dagster_url: str | None = None
    judged: JudgedQuestions | None = None
    sources_file: Path | None = None
    admission: Admission = field(default_factory=Admission)
    questions: Admission = field(default_factory=lambda: Admission(QUESTIONS))
    fusions: Admission = field(default_factory=lambda: Admission(waiting=WAITING_TO_FUSE))
    writing: Admission = field(default_factory=lambda: Admission(WRITING, WAITING_TO_WRITE))
    judging: Admission = field(default_factory=lambda: Admission(JUDGING, WAITING_TO_JUDGE))
    finding: Admission = field(default_factory=lambda: Admission(FINDING))
    lookups: Admission = field(default_factory=lambda: Admission(LOOKING_UP))
    receipting: Admission = field(default_factory=lambda: Admission(RECEIPTS, WAITING_FOR_RECEIPTS))
    streams: StreamSlots = field(default_factory=StreamSlots)

    @property
    def in_threads(self) -> int:
        """Return how much runs right now, including what no client waits for any more."""
        gates = (
            self.admission, self.questions, self.fusions, self.writing, self.judging, self.finding, self.lookups,
            self.receipting,
        )  # fmt: skip
        return sum(gate.in_threads for gate in gates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Shared):
    """What is served by an app, to whoever it may be; routes get a ``Serving`` of it."""

    engine: Engine

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Return the domains that are served."""
        return tuple(domain for domain in self.engine.agents if self.alone in {None, domain})

    def seen_by(self, viewer: Viewer) -> Serving:
        """Return what is served on behalf of a viewer."""
        shared = {name: getattr(self, name) for name in _SHARED}
        return Serving(engine=self.engine.as_seen_by(viewer), viewer=viewer, **shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(Shared):
    """What is served on behalf of one viewer.

    Attributes:
        engine: as the viewer may see it.
    """

    engine: SeenEngine
    viewer: Viewer

    @property
    def agents(self) -> tuple[SeenAgent, ...]:
        """Return the agents that are served."""
        return tuple(agent for domain, agent in self.engine.agents.here().items() if self.alone in {None, domain})

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Return the domains that are served."""
        return tuple(agent.domain for agent in self.agents)

    @property
    def askable(self) -> tuple[Domain, ...]:
        """Return the domains that can be asked, those of agents on other machines included."""
        return self.engine.agents.askable() if self.alone is None else self.domains

    async def ask(self, question: Question, work: Callable[[SeenAnswers], T]) -> T:
        """Do what asks the domains of a question, in its turn and by its deadline, once one of them has started.

        Raises:
            ProblemError: 503, none of them takes requests or too much else is going on.
        """
        asked = [agent for agent in self.agents if question.domains is None or agent.domain in question.domains]
        if asked or not self.askable:
            await wait_for_start(asked, question.deadline)
        return await self.questions.run(lambda: work(self.engine.answers), question.left_s)

    async def find(self, query: FindQuery, deadline: Deadline) -> FindDocument:
        """Find lines in what is served, in their turn; raises as ``SeenTexts.find``."""
        await wait_for_start([agent for agent in self.agents if agent.domain in query.domains], deadline)
        return await self.finding.run(lambda: self.engine.texts.find(query, deadline.at), deadline.left_s)

    async def uses(self, name: str, source_id: str | None, deadline: Deadline) -> UsesDocument:
        """Find what uses a name, in its turn; raises as ``SeenTexts.uses``."""
        if Domain.CODE not in self.domains:
            raise QueryError("name", "the code domain is not served here")
        await wait_for_start([agent for agent in self.agents if agent.domain is Domain.CODE], deadline)
        return await self.finding.run(lambda: self.engine.texts.uses(name, deadline.at, source_id), deadline.left_s)

    def agent(self, domain: str) -> SeenAgent:
        """Return the agent of a domain.

        Raises:
            ProblemError: 404, the domain is not served here.
        """
        served = {agent.domain.value: agent for agent in self.agents}
        if domain not in served:
            raise ProblemError(404, f"no domain {domain!r} is served here; served: {', '.join(served) or 'none'}")
        return served[domain]


_SHARED = tuple(one.name for one in fields(Shared))


def arrive(timeout_ms: int | None, viewer: Viewer) -> Question:
    """Return the question of a request that has just come, before it has words: its ids, whose it is, its deadline.

    Args:
        timeout_ms: within which it has to be answered; ``None`` sets no limit.
    """
    return Question(
        text="",
        now=present(),
        viewer=viewer,
        query_id=str(uuid.uuid4()),
        trace_id=current_trace_id(),
        deadline=None if timeout_ms is None else Deadline(timeout_ms),
    )


def service_of(request: Request) -> Service:
    """Return what the app of a request serves, before it is known to whom."""
    service: Service = request.app.state.serving
    return service


def serving_of(request: Request) -> Serving:
    """Return what is served on behalf of the viewer of a request."""
    return service_of(request).seen_by(viewer_of(request.scope))


Served = Annotated[Serving, Depends(serving_of)]


# Loading takes some seconds, with torch longer.
MAX_START_S = 30.0
POLL_START_S = 0.05
# What is left for those that have started when others have not.
RESERVE_S = 1.0

_CLOSED = frozenset({AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE})


async def wait_for_start(agents: Sequence[SeenAgent], deadline: Deadline | None) -> None:
    """Wait while agents load: whoever asks the moment the port opens would rather wait some seconds than be refused.

    Agents that have started do not wait for the others until no time is left for them.

    Raises:
        ProblemError: 503, none of them takes requests.
    """
    arrived = deadline.started if deadline else time.monotonic()
    end = arrived + MAX_START_S
    if deadline:
        end = min(end, deadline.at)
    soon = max(end - RESERVE_S, (arrived + end) / 2)
    while _starting(agents) and (now := time.monotonic()) < (soon if _open(agents) else end):
        await anyio.sleep(min(POLL_START_S, max(0.0, end - now)))
    if not _open(agents):
        states = ", ".join(f"{agent.agent_id} is {agent.state.value}" for agent in agents)
        kind = f"agent-{agents[0].state.value.lower()}" if agents else "no-agent"
        raise unavailable(kind, states or "no domain is served", RETRY_SOON_S)


def _starting(agents: Sequence[SeenAgent]) -> bool:
    return any(agent.state is AgentState.STARTING for agent in agents)


def _open(agents: Sequence[SeenAgent]) -> bool:
    return any(agent.state not in _CLOSED for agent in agents)
