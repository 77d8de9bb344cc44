"""The service of an app, and what belongs to one request: its viewer's view of the service, and its trace id.

A caller names its trace in the header ``traceparent``: ``00-<trace, 32 digits>-<parent, 16>-<flags, 2>``, hexadecimal,
lower case (W3C Trace Context, https://www.w3.org/TR/trace-context/). Threads that work for a request run
in a copy of its context, so that their log lines have the id as well.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import anyio
from fastapi import Depends
from opentelemetry import trace
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access.door import Door, viewer_of
from api.errors import RETRY_SOON_S, ProblemError, unavailable
from api.event_streams import StreamSlots
from api.pages.question_form import JudgedQuestions
from api.server.limits import Admission
from api.syncs import Syncs
from nornweave.ask.search.question import Deadline, Question
from nornweave.ask.search.records import AgentState, FindQuery
from nornweave.ask.seen.agents import SeenAgent
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import QueryError
from nornweave.core.text.terminal import configure_logging
from nornweave.core.types import Domain, present

if TYPE_CHECKING:
    from nornweave.ask.engine import Engine
    from nornweave.ask.seen import SeenEngine
    from nornweave.ask.seen.answers import SeenAnswers
    from nornweave.ask.views.texts import FindDocument, UsesDocument

HEADER = b"traceparent"
# Later versions may append fields; of version 00 there are four.
_TRACEPARENT = re.compile(rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")

_trace_id: ContextVar[str] = ContextVar("trace_id", default="")


def current_trace_id() -> str:
    """Return the trace id of the current request, 32 hexadecimal digits; empty outside of requests."""
    return _trace_id.get()


def callers_trace_id(scope: Scope) -> str | None:
    """Return the trace id in ``traceparent``; ``None`` unless there is exactly one header and it is valid."""
    values = [value.strip() for name, value in scope["headers"] if name == HEADER]
    match = _TRACEPARENT.fullmatch(values[0]) if len(values) == 1 else None
    if match is None or (match[1] == b"00" and match[3]):
        return None
    return match[2].decode("ascii")


def _span_trace_id(scope: Scope) -> str | None:
    """Return the trace id of FastAPI's span; ``None`` if none is recorded. The query is removed from the span."""
    span = trace.get_current_span()
    if not span.is_recording():
        return None
    if scope.get("query_string"):
        span.set_attribute("url.query", "REDACTED")  # of a page's address it is what was asked
    return f"{span.get_span_context().trace_id:032x}"


def traceparent() -> str:
    """Return the value of the header ``traceparent``, which passes the current trace on to another process."""
    return f"00-{current_trace_id()}-{secrets.token_hex(8)}-01"


class Tracing:
    """Gives each request its trace id, for as long as it is being answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = _trace_id.set(_span_trace_id(scope) or callers_trace_id(scope) or secrets.token_hex(16))
        try:
            await self._app(scope, receive, send)
        finally:
            _trace_id.reset(token)


class _TraceSuffix(logging.Filter):
    """Gives each log record the text ``trace_id=…`` for the end of its line; an empty text outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        trace_id = current_trace_id()
        record.trace_id, record.trace = trace_id, f" trace_id={trace_id}" if trace_id else ""
        return True


def log_trace_ids(environment: Mapping[str, str]) -> None:
    """Send log records from ``LOG_LEVEL`` on to stderr, as ``LEVEL message trace_id=…``, and nowhere else."""
    configure_logging(environment, line="%(levelname)s %(message)s%(trace)s", added=_TraceSuffix())


T = TypeVar("T")

# A question waits for its domains, which compute in pools of the engine, 16 threads each. With 8 clients on 2 CPUs, 2,
# 4 and 8 at once answered as many a second; more of them leave room beside those that wait for a domain that hangs.
QUESTIONS = 16
# Large requests wait with all that they hold: not too many of them.
WAITING_TO_FUSE = 32
# Deposits wait for the disk, look-ups hardly at all.
WRITING, WAITING_TO_WRITE = 2, 16
LOOKING_UP = 4
# Searching lines reads every text: it must not take all CPUs.
FINDING = 2
RECEIPTS, WAITING_FOR_RECEIPTS = 1, 4
# Feedback waits for the disk, and in one file for each other.
JUDGING, WAITING_TO_JUDGE = 2, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The parts that requests of all viewers share.

    Attributes:
        alone: the only domain that is served, also at the root; ``None`` serves all.
        timeout_ms: the time for an answer to a question that names no time.
        syncs: starts syncs for people; ``None`` if nobody may start one.
        settings: the settings of the workspace; with ``None`` nobody can ask for a receipt of a deletion.
        dagster_url: the address of Dagster's UI; ``None`` if not known.
        public_url: the address of the pages for people; ``None`` takes the address of the request.
        admission: limits how many recalls run and wait.
        judged: questions of the judged sets.
        sources_file: names the sources and may be edited; ``None`` for a replica.
        questions: the limit for questions to all domains.
        fusions: the limit for fusions of given answers; a separate one, because large ones take seconds.
        writing: the limit for deposits.
        judging: the limit for feedback.
        streams: the limit for open event streams.
        finding: the limit for searches of lines.
        receipting: the limit for receipts, each of which locks its domain.
        lookups: the limit for look-ups of chunks, documents and the ledger.
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
        """Return how many pieces of work run now, also those whose client has gone."""
        gates = (
            self.admission, self.questions, self.fusions, self.writing, self.judging, self.finding, self.lookups,
            self.receipting,
        )  # fmt: skip
        return sum(gate.in_threads for gate in gates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Shared):
    """The service of an app, for all viewers. Routes get a ``Serving`` of it."""

    engine: Engine

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Return the domains that are served."""
        return tuple(domain for domain in self.engine.agents if self.alone in {None, domain})

    def seen_by(self, viewer: Viewer) -> Serving:
        """Return the service as one viewer may use it."""
        shared = {name: getattr(self, name) for name in _SHARED}
        return Serving(engine=self.engine.as_seen_by(viewer), viewer=viewer, **shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(Shared):
    """The service on behalf of one viewer.

    Attributes:
        engine: the engine, limited to what the viewer may see.
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
        """Return the domains that can be asked, with those of remote agents."""
        return self.engine.agents.askable() if self.alone is None else self.domains

    async def ask(self, question: Question, work: Callable[[SeenAnswers], T]) -> T:
        """Return the result of ``work``, which asks the domains of a question.

        The work begins when one of their agents has started and its turn has come. It ends by the question's deadline.

        Raises:
            ProblemError: 503, no agent takes requests, or too many questions are waiting.
        """
        asked = [agent for agent in self.agents if question.domains is None or agent.domain in question.domains]
        if asked or not self.askable:
            await wait_for_start(asked, question.deadline)
        return await self.questions.run(lambda: work(self.engine.answers), question.left_s)

    async def find(self, query: FindQuery, deadline: Deadline) -> FindDocument:
        """Return the lines that ``query`` finds, in turn. Errors are those of ``ask`` and of ``SeenTexts.find``."""
        await wait_for_start([agent for agent in self.agents if agent.domain in query.domains], deadline)
        return await self.finding.run(lambda: self.engine.texts.find(query, deadline.at), deadline.left_s)

    async def uses(self, name: str, source_id: str | None, deadline: Deadline) -> UsesDocument:
        """Return the uses of a name, in one source or in all. Errors are those of ``ask`` and of ``SeenTexts.uses``."""
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
    """Return a question without text for a request that has just arrived: ids, viewer, deadline.

    Args:
        timeout_ms: the time for the answer; ``None`` sets no limit.
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
    """Return the service of a request's app, for all viewers."""
    service: Service = request.app.state.serving
    return service


def serving_of(request: Request) -> Serving:
    """Return the service on behalf of the request's viewer."""
    return service_of(request).seen_by(viewer_of(request.scope))


Served = Annotated[Serving, Depends(serving_of)]


# Loading takes some seconds, with torch longer.
MAX_START_S = 30.0
POLL_START_S = 0.05
# Time that is left for the agents that have started when others have not.
RESERVE_S = 1.0

_CLOSED = frozenset({AgentState.STARTING, AgentState.DRAINING, AgentState.OFFLINE})


async def wait_for_start(agents: Sequence[SeenAgent], deadline: Deadline | None) -> None:
    """Wait while agents load. A client that asks at startup waits some seconds rather than being refused.

    Waiting ends early enough to leave time for the agents that have started. Without a deadline it ends after
    ``MAX_START_S``.

    Raises:
        ProblemError: 503, no agent takes requests.
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
