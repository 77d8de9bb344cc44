"""``/agents``: the registry, and each agent's recall, description and health; also at the root for an agent alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from api.openapi import PROBLEMS
from api.routes.registration import listed_document
from api.schemas import AgentDocument, RecallBody, RegistryDocument, json_response
from api.state import Served, Serving, arrive, wait_for_start
from nornweave.ask.agents.exchange import GROUPS_HEADER
from nornweave.ask.search.question import Question
from nornweave.ask.seen.agents import SeenAgent
from nornweave.ask.views.items import RecallDocument, recall_document
from nornweave.core.errors import QueryError
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
