"""``/agents/{domain}/ingest``: documents handed in over HTTP, on disk before the answer; also ``/ingest`` of one alone.

Text comes as JSON, files as ``multipart/form-data``: two routes of one path, chosen by the content type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from api.ingestion import check_takes_documents
from api.openapi import PROBLEMS, problem_responses
from api.requests import multipart
from api.requests.ingest import IngestBody, IngestDocument
from api.routes.agents import DomainName
from api.schemas import json_response
from api.state import Served, Serving
from nornweave.ask.seen.agents import SeenAgent
from nornweave.ask.views.texts import Deposit

router = APIRouter(tags=["inbox"], responses={**PROBLEMS, **problem_responses(403)})
alone = APIRouter(tags=["agent"], responses={**PROBLEMS, **problem_responses(403)})

FILES: dict[str, Any] = {"requestBody": {"content": {multipart.MEDIA_TYPE: {"schema": multipart.SCHEMA}}}}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names this request for a day: repeated with the same body it gets the same answer. "
        "1 to 255 printable ASCII characters.",
    ),
]


class MultipartRoute(APIRoute):
    """A route for bodies of files; any other body is another route's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path, as far as the content type is the one."""
        if scope["type"] == "http" and multipart.is_multipart(Headers(scope=scope).get("content-type", "")):
            return super().matches(scope)
        return Match.NONE, {}


files = APIRouter(route_class=MultipartRoute, include_in_schema=False)
files_alone = APIRouter(route_class=MultipartRoute, include_in_schema=False)


@files.post("/agents/{domain}/ingest")
async def upload(domain: DomainName, request: Request, serving: Served, key: Key = None) -> Response:
    """Hand files in."""
    return await _upload(serving, serving.agent(domain), request, key)


@files_alone.post("/ingest")
async def upload_alone(request: Request, serving: Served, key: Key = None) -> Response:
    """Hand files in to the agent that is served alone."""
    return await _upload(serving, serving.agents[0], request, key)


@router.post("/agents/{domain}/ingest", response_model=IngestDocument, status_code=202, openapi_extra=FILES)
async def ingest(domain: DomainName, body: IngestBody, serving: Served, key: Key = None) -> Response:
    """Hand documents in. The next sync of the domain indexes them; handing one in again replaces it.

    What is `ACCEPTED` is durable. What is `REJECTED` says why, `duplicate` what is there already; the others are kept.
    Text comes as JSON, files of other formats as `multipart/form-data`.
    """
    return await _ingest(serving, serving.agent(domain), [document.deposit() for document in body.documents], key)


@alone.post("/ingest", response_model=IngestDocument, status_code=202, openapi_extra=FILES)
async def ingest_alone(body: IngestBody, serving: Served, key: Key = None) -> Response:
    """Hand documents in to the agent that is served alone."""
    return await _ingest(serving, serving.agents[0], [document.deposit() for document in body.documents], key)


async def _upload(serving: Serving, agent: SeenAgent, request: Request, key: str | None) -> Response:
    serving.viewer.check_operates()
    check_takes_documents(agent)
    return await _ingest(serving, agent, await multipart.read_files(request), key)


async def _ingest(serving: Serving, agent: SeenAgent, documents: Sequence[Deposit], key: str | None) -> Response:
    serving.viewer.check_operates()
    check_takes_documents(agent)
    domain = agent.domain

    def deposited() -> Response:
        return json_response({"documents": serving.engine.documents.deposit(domain, documents, key)}, 202)

    return await serving.writing.run(deposited)
