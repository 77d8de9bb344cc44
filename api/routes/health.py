"""What a process says of itself: ``/health``, ``/ready``, and ``/docs``, the API's description as a page.

The page and its scripts are public software and open; what they show, ``/openapi.json``, asks for the token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from api.access.door import VIEWER
from api.errors import RETRY_SOON_S, ProblemError, problem_response
from api.metrics import CONTENT_TYPE
from api.openapi import OPEN_OPERATION, problem_responses
from api.pages import rendering
from api.pages.rendering import WEB, policy
from api.schemas import DomainReadiness, LivenessDocument, ReadinessDocument, json_response
from api.state import Served, service_of, serving_of
from nornweave.ask.search.records import AgentState
from nornweave.ask.seen.agents import SeenAgent
from nornweave.core.access import ANYONE
from nornweave.core.types import JsonValue

EXPOSITION: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "One sample a line."}
}

MaxLag = Annotated[
    float | None,
    Query(ge=0, description="not ready while what answers may have been outdated for longer, in seconds"),
]

router = APIRouter(tags=["health"], responses=problem_responses(421, 500))


@router.get("/health", response_model=LivenessDocument, openapi_extra=OPEN_OPERATION)
async def health(request: Request) -> Response:
    """Say that the process answers. With a token, an agent served alone also reports its health."""
    service = service_of(request)
    if service.alone is None or VIEWER not in request.scope:
        return json_response({"status": "ok"})
    return json_response({"status": "ok", **await run_in_threadpool(serving_of(request).agents[0].health)})


@router.get(
    "/ready", response_model=ReadinessDocument, openapi_extra=OPEN_OPERATION, responses=problem_responses(422, 503)
)
def ready(request: Request, max_lag_s: MaxLag = None) -> Response:
    """Tell whether every served domain has a published generation loaded. The reasons need a token."""
    agents = service_of(request).seen_by(request.scope.get(VIEWER, ANYONE)).agents
    domains = {agent.domain.value: _readiness(agent, max_lag_s) for agent in agents}
    missing = [f"{domain}: {one['reason']}" for domain, one in domains.items() if not one["ready"]]
    is_told = VIEWER in request.scope
    details = {"domains": domains} if is_told else {}
    if domains and not missing:
        return json_response({"ready": True, **details})
    return problem_response(
        503,
        ("; ".join(missing) or "no domain is served") if is_told else "the reasons are for who shows a token",
        kind="not-ready",
        headers={"Retry-After": str(RETRY_SOON_S)},
        extensions={"ready": False, **details},
    )


@router.get("/metrics", response_class=Response, responses={**EXPOSITION, **problem_responses(401, 403, 503)})
async def metrics(request: Request, serving: Served) -> Response:
    """Return requests, stages, retrievers, gaps, and the state of index and quality, in Prometheus' text format."""
    serving.viewer.check_operates()
    exposition = await serving.lookups.run(request.app.state.metrics.exposition)
    return Response(exposition, media_type=CONTENT_TYPE)


def _readiness(agent: SeenAgent, max_lag_s: float | None) -> DomainReadiness:
    health = agent.health()
    state, generation = agent.state, _text(health, "generation")
    answers = state in {AgentState.READY, AgentState.DEGRADED} and generation is not None
    age_s, behind_s, replica = health.get("age_s"), health.get("behind_s"), health.get("replica")
    unreached = replica.get("checked_s") if isinstance(replica, Mapping) else None
    lag_s = math.inf if replica and unreached is None else behind_s
    lags = max_lag_s is not None and isinstance(lag_s, float) and lag_s > max_lag_s
    readiness: DomainReadiness = {
        "ready": answers and not lags,
        "state": state,
        "generation": generation,
        "published": _text(health, "published"),
        "indexed_at": _text(health, "indexed_at"),
        "age_s": age_s if isinstance(age_s, float) else None,
        "behind_s": behind_s if isinstance(behind_s, float) else 0.0,
        "reason": _reason(state, health)
        or (f"behind for {lag_s:.0f} s" if lags else None if answers else f"the agent is {state.value}"),
    }
    if replica:
        readiness["store_unreached_s"] = unreached if isinstance(unreached, float) else None
    return readiness


def _text(health: Mapping[str, JsonValue], name: str) -> str | None:
    value = health.get(name)
    return None if value is None else str(value)


def _reason(state: AgentState, health: Mapping[str, JsonValue]) -> str:
    """Return the agent's notices as one text; empty while the agent loads, because nothing is wrong yet."""
    notices = health.get("notices")
    if state is AgentState.STARTING or not isinstance(notices, list):
        return ""
    return "; ".join(str(one) for one in notices)


PAGE = "/docs"
# Swagger UI 5 sets no inline scripts; its icons are `data:` pictures.
HEADERS = {**rendering.HEADERS, "Content-Security-Policy": policy("'none'"), "Cache-Control": "no-cache"}


def _swagger_folder() -> Path:
    """Return the folder with Swagger UI's files in the package ``fastapi-offline``."""
    found = find_spec("fastapi_offline")
    if found is None or found.origin is None:
        raise FileNotFoundError("the package fastapi-offline is not installed")
    return Path(found.origin).parent / "static"


FILES = {
    f"{PAGE}/docs.js": (WEB / "docs.js", "text/javascript"),
    f"{PAGE}/docs.css": (WEB / "docs.css", "text/css"),
    f"{PAGE}/swagger-ui-bundle.js": (_swagger_folder() / "swagger-ui-bundle.js", "text/javascript"),
    f"{PAGE}/swagger-ui.css": (_swagger_folder() / "swagger-ui.css", "text/css"),
    f"{PAGE}/favicon.png": (_swagger_folder() / "favicon.png", "image/png"),
}
OPEN_PATHS = frozenset({PAGE, *FILES})

documentation_router = APIRouter(include_in_schema=False)


@documentation_router.get(PAGE)
def page() -> Response:
    """Show the API's description."""
    return FileResponse(WEB / "docs.html", media_type="text/html", headers=HEADERS)


@documentation_router.get(PAGE + "/{name}")
def part(name: str) -> Response:
    """Return a file of the page. A name that is not one of its files gets a 404."""
    if f"{PAGE}/{name}" not in FILES:
        raise ProblemError(404, f"no such path: {PAGE}/{name}")
    path, media_type = FILES[f"{PAGE}/{name}"]
    return FileResponse(path, media_type=media_type, headers=HEADERS)
