"""``/agents``: the registry, and each agent's recall, description and health; also at the root for an agent alone.

``/agents/register``: agents of other machines register, send heartbeats, and deregister.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from typing_extensions import TypedDict

from api.errors import ProblemError
from api.openapi import PROBLEMS, problem_responses
from api.requests import Body
from api.schemas import AgentDocument, RecallBody, RegistryDocument, json_response
from api.state import Served, Serving, arrive, wait_for_start
from nornweave.ask.agents.directory import RemoteAgents
from nornweave.ask.agents.exchange import GROUPS_HEADER
from nornweave.ask.agents.registry import Capabilities, Registrant, Registration, RemoteState
from nornweave.ask.search.question import Question
from nornweave.ask.seen.agents import SeenAgent
from nornweave.ask.views.items import RecallDocument, recall_document
from nornweave.config.base import checked_server
from nornweave.core.access import Viewer
from nornweave.core.errors import ConflictingAgentError, QueryError
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain

router = APIRouter(tags=["agents"], responses=PROBLEMS)
alone = APIRouter(tags=["agent"], responses=PROBLEMS)

DomainName = Annotated[
    str,
    Path(
        description="A served domain.",
        examples=["code"],
        json_schema_extra={"enum": [domain.value for domain in Domain]},
    ),
]

AgentId = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$"),
    Field(description="names the agent in answers and coverage gaps; it is at one address"),
]
Server = Annotated[
    str,
    StringConstraints(max_length=2_000),
    AfterValidator(checked_server),
    Field(
        description="where it is: recalls are posted to `<url>/recall`; `agents.allow` must name it",
        json_schema_extra={"pattern": r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"},
    ),
]
StateName = Annotated[
    RemoteState,
    BeforeValidator(lambda name: RemoteState(name) if isinstance(name, str) else name),
    Field(description="READY and DEGRADED are asked, the others are not"),
]


@router.get("/agents", response_model=RegistryDocument)
def list_agents(serving: Served) -> Response:
    """List the agents with their state: local agents first, then those registered by other machines."""
    joined = serving.engine.agents.joined() if serving.alone is None else ()
    here = [_listed(agent) for agent in serving.agents]
    return json_response({"agents": here + [listed_document(one, serving.viewer) for one in joined]})


@router.post("/agents/{domain}/recall", response_model=RecallDocument)
async def recall(domain: DomainName, body: RecallBody, serving: Served, request: Request) -> Response:
    """Ask one agent."""
    return _confirm_groups(await _recall(serving.agent(domain), body, serving), request)


@router.get("/agents/{domain}/describe", response_model=dict[str, Any])
def describe(domain: DomainName, serving: Served) -> Response:
    """Describe an agent: names, chunking, embedding, filters, plan, generation, sizes."""
    return json_response(serving.agent(domain).describe())


@router.get("/agents/{domain}/health", response_model=dict[str, Any])
def health(domain: DomainName, serving: Served) -> Response:
    """Return an agent's health: state, generation, checks, statistics, notices. The status is 200 in every state."""
    return json_response(serving.agent(domain).health())


@alone.post("/recall", response_model=RecallDocument)
async def recall_alone(body: RecallBody, serving: Served, request: Request) -> Response:
    """Ask the agent that is served alone."""
    return _confirm_groups(await _recall(serving.agents[0], body, serving), request)


@alone.get("/describe", response_model=dict[str, Any])
def describe_alone(serving: Served) -> Response:
    """Describe the agent that is served alone."""
    return json_response(serving.agents[0].describe())


async def _recall(agent: SeenAgent, body: RecallBody, serving: Serving) -> Response:
    arrived = arrive(body.timeout_ms, serving.viewer)
    await wait_for_start([agent], arrived.deadline)
    question = body.question(agent.domain, arrived)
    return await serving.admission.run(lambda: _answer(agent, question), arrived.left_s)


def _answer(agent: SeenAgent, question: Question) -> Response:
    """Recall and record the answer, both in the worker thread, so that the event loop stays free."""
    try:
        return json_response(recall_document(agent.recall(question)))
    except QueryError as error:
        raise QueryError(_body_field(error.field, agent.domain), error.problem) from error


def _confirm_groups(response: Response, request: Request) -> Response:
    """Add the header that confirms to another server that its user's groups were respected (``on_behalf``)."""
    if GROUPS_HEADER in request.headers:
        response.headers[GROUPS_HEADER] = "heeded"
    return response


def _body_field(field: str, domain: Domain) -> str:
    """Return the name of a field as the body of a recall has it: ``filters.code.language → filters.language``."""
    if field in {"query", "text"}:
        return "query_text"
    prefix = f"filters.{domain.value}"
    return f"filters{field.removeprefix(prefix)}" if field.startswith(prefix) else field


def _listed(agent: SeenAgent) -> AgentDocument:
    described: Mapping[str, Any] = agent.describe()
    return {
        "agent_id": agent.agent_id,
        "domain_id": agent.domain,
        "name": described.get("name", ""),
        "description": described.get("description", ""),
        "state": agent.state,
        "generation": described.get("generation"),
        "remote": False,
    }


class RegistrationBody(Body):
    """An agent that joins, or one that has been restarted."""

    agent_id: AgentId
    domain_id: Annotated[Domain, BeforeValidator(lambda name: Domain(name) if isinstance(name, str) else name)]
    url: Server
    capabilities: Capabilities = Capabilities()
    state: StateName = RemoteState.READY


class HeartbeatBody(Body):
    """A heartbeat."""

    state: StateName | None = None
    url: Annotated[Server | None, Field(description="where the agent is; anywhere else changes nothing")] = None


class LeaseDocument(TypedDict):
    """How long an agent stays registered without a heartbeat, and how often to send one."""

    agent_id: str
    url: str | None
    state: Literal["STARTING", "READY", "DEGRADED", "DRAINING", "STOPPED"] | None
    lease_s: float
    token: Annotated[str | None, Field(description="made for a new agent that brought none; not shown again")]
    heartbeat_interval_s: float


class RemovedDocument(TypedDict):
    """How many agents were taken out of the registry: one, or none."""

    agent_id: str
    removed: int


def listed_document(found: Registration, viewer: Viewer) -> AgentDocument:
    """Return an agent for the list. Only operators see its address."""
    now = time.time()
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
    }
    if viewer.operates:
        document["url"] = found.url
    return document


def _moment(seconds: float) -> str:
    return utc_text(datetime.fromtimestamp(seconds, UTC), "seconds")


registrations = APIRouter(tags=["agents"], responses=problem_responses(401, 403, 404, 421, 422, 500, 503))
# Of those that read a body.
_BODY = problem_responses(400, 413, 415)

# Two signs of life may be lost.
BEATS_PER_LEASE = 3

AgentToken = Annotated[
    str | None,
    Header(
        alias="NornWeave-Agent-Token",
        min_length=16,
        max_length=200,
        description="The agent's own token: proves that the name is its own.",
    ),
]
AgentName = Annotated[str, Path(max_length=64, description="As it registered.", examples=["pg-docs"])]


@registrations.post(
    "/agents/register",
    response_model=LeaseDocument,
    responses={
        201: {"model": LeaseDocument, "description": "It was not known at this address"},
        **_BODY,
        **problem_responses(409),
    },
)
async def register(body: RegistrationBody, serving: Served, token: AgentToken = None) -> Response:
    """Register an agent of another machine, at an address that `agents.allow` names.

    It is asked like local agents while it sends heartbeats. Registering again renews the lease.
    The first registration of a name makes it the agent's own: with the token that it sends in `NornWeave-Agent-Token`,
    or with the one in the answer. Without that token nobody but an operator registers, renews or removes the name.
    """
    remote = _registry(serving)
    capabilities = body.capabilities.model_dump(mode="json")

    def join() -> tuple[bool, str | None]:
        remote.check_name(body.agent_id)
        remote.check_allowed(body.url)
        by = _registrant(serving, token)
        return remote.registry.register(body.agent_id, body.domain_id, body.url, capabilities, body.state, by)

    try:
        is_new, made = await serving.writing.run(join)
    except ConflictingAgentError as error:
        raise ProblemError(409, str(error), kind="agent-refused") from error
    remote.changed()
    lease = _lease(remote, body.agent_id, body.url, body.state)
    return json_response({**lease, "token": made}, 201 if is_new else 200)


@registrations.post("/agents/{agent_id}/heartbeat", response_model=LeaseDocument, responses=_BODY)
async def heartbeat(agent_id: AgentName, body: HeartbeatBody, serving: Served, token: AgentToken = None) -> Response:
    """Renew an agent's lease. A 404 asks the agent to register again."""
    remote, by = _registry(serving), _registrant(serving, token)
    known = await serving.writing.run(lambda: remote.registry.beat(agent_id, body.url, body.state, by))
    if not known:
        raise ProblemError(404, f"no agent {agent_id!r} is registered there; register again", kind="agent-unknown")
    remote.changed()
    return json_response(_lease(remote, agent_id, body.url, body.state))


@registrations.delete("/agents/{agent_id}", response_model=RemovedDocument)
async def deregister(
    agent_id: AgentName,
    serving: Served,
    url: Annotated[str | None, Query(max_length=2_000, description="Only if it is at this address.")] = None,
    token: AgentToken = None,
) -> Response:
    """Remove an agent from the registry. A repetition changes nothing."""
    remote = _registry(serving)
    try:
        address = None if url is None else checked_server(url)
    except ValueError as error:
        raise ProblemError(422, f"url: {error}") from error
    by = _registrant(serving, token)
    removed = await serving.writing.run(lambda: remote.registry.remove(agent_id, address, by))
    remote.changed()
    return json_response({"agent_id": agent_id, "removed": removed})


def _registry(serving: Serving) -> RemoteAgents:
    """Return the registry of remote agents.

    Raises:
        NotPermittedError: the caller may not register agents.
        ProblemError: 404, no agents can register here.
    """
    remote = serving.engine.agents.registry()
    if remote is None:
        raise ProblemError(404, "no agents can join here; 'agents.allow' of the configuration names where they may be")
    return remote


def _registrant(serving: Serving, token: str | None) -> Registrant:
    return Registrant(token or None, operates=serving.viewer.operates)


def _lease(remote: RemoteAgents, agent_id: str, url: str | None, state: RemoteState | None) -> LeaseDocument:
    lease_s = remote.registry.lease_s
    return {
        "agent_id": agent_id,
        "url": url,
        "state": state.value if state else None,
        "lease_s": lease_s,
        "token": None,
        "heartbeat_interval_s": round(lease_s / BEATS_PER_LEASE, 3),
    }
