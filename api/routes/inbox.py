"""``/agents/{domain}/ingest``: documents handed in over HTTP. They are on disk before the response.

Text comes as JSON, files as ``multipart/form-data``: two routes of one path, chosen by the content type.
``/agents/{domain}/documents``: the state of each document after the last sync, and removal of those handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import Field, StringConstraints
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from api.errors import ProblemError, unavailable
from api.openapi import PROBLEMS, problem_responses
from api.requests import Parameters
from api.requests.ingest import MEDIA_TYPE, SCHEMA, IngestBody, IngestDocument, is_multipart, read_files
from api.routes.agents import DomainName
from api.schemas import json_response
from api.state import Served, Serving
from nornweave.ask.search.agent import Agent
from nornweave.ask.seen.agents import SeenAgent
from nornweave.ask.views.texts import Deposit, DocumentsDocument, WithdrawnDocument
from nornweave.core.files.paths import unsafe_path
from nornweave.core.text.checked_values import Name, UrlCount
from nornweave.index.inbox_life_cycle import DocumentsQuery, DocumentStatus, ForeignDocumentError

MAX_DOCUMENTS, USUAL_DOCUMENTS = 1_000, 100
MAX_CURSOR_CHARACTERS = 16_384


class DocumentsParameters(Parameters):
    """The documents to list."""

    status: Annotated[DocumentStatus | None, Field(description="Those that stand so after the last sync.")] = None
    source: Annotated[Name | None, Field(description="Those of this source; `inbox` are those handed in.")] = None
    limit: Annotated[UrlCount, Field(ge=1, le=MAX_DOCUMENTS, strict=True, description="At most this many.")] = (
        USUAL_DOCUMENTS
    )
    cursor: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_CURSOR_CHARACTERS)] | None,
        Field(description="`next` of the page before, to get what comes after it; everything else must be the same."),
    ] = None

    def asked(self) -> DocumentsQuery:
        """Return these parameters as the inbox's query."""
        return DocumentsQuery(limit=self.limit, cursor=self.cursor, status=self.status, source=self.source)


router = APIRouter(tags=["inbox"], responses=problem_responses(401, 403, 404, 421, 422, 500, 503))
alone = APIRouter(tags=["agent"], responses={**PROBLEMS, **problem_responses(403)})

FILES: dict[str, Any] = {"requestBody": {"content": {MEDIA_TYPE: {"schema": SCHEMA}}}}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names this request for a day: repeated with the same body it gets the same answer. "
        "1 to 255 printable ASCII characters.",
    ),
]


class MultipartRoute(APIRoute):
    """A route for multipart bodies. Other bodies go to the next route."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path if the content type is ``multipart/form-data``."""
        if scope["type"] == "http" and is_multipart(Headers(scope=scope).get("content-type", "")):
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


@router.post(
    "/agents/{domain}/ingest",
    response_model=IngestDocument,
    status_code=202,
    openapi_extra=FILES,
    responses=problem_responses(400, 413, 415),
)
async def ingest(domain: DomainName, body: IngestBody, serving: Served, key: Key = None) -> Response:
    """Hand documents in. The next sync of the domain indexes them; handing one in again replaces it.

    `ACCEPTED` documents are stored. `REJECTED` ones give a reason, `duplicate` ones were there already.
    Text comes as JSON of 1 MiB at most, larger documents and files of other formats as `multipart/form-data` of 32 MiB.
    """
    return await _ingest(serving, serving.agent(domain), [document.deposit() for document in body.documents], key)


@alone.post("/ingest", response_model=IngestDocument, status_code=202, openapi_extra=FILES)
async def ingest_alone(body: IngestBody, serving: Served, key: Key = None) -> Response:
    """Hand documents in to the agent that is served alone."""
    return await _ingest(serving, serving.agents[0], [document.deposit() for document in body.documents], key)


async def _upload(serving: Serving, agent: SeenAgent, request: Request, key: str | None) -> Response:
    serving.viewer.check_operates()
    check_takes_documents(agent)
    return await _ingest(serving, agent, await read_files(request), key)


async def _ingest(serving: Serving, agent: SeenAgent, documents: Sequence[Deposit], key: str | None) -> Response:
    serving.viewer.check_operates()
    check_takes_documents(agent)
    domain = agent.domain

    def deposited() -> Response:
        return json_response({"documents": serving.engine.documents.deposit(domain, documents, key)}, 202)

    return await serving.writing.run(deposited)


RETRY_DEGRADED_S = 30


def check_takes_documents(agent: Agent | SeenAgent) -> None:
    """Refuse documents for an agent that has a problem with ingestion.

    Raises:
        ProblemError: 503, the problem and when to try again.
    """
    if problem := agent.ingestion_problem:
        raise unavailable("agent-degraded", f"{agent.agent_id} takes no documents now: {problem}", RETRY_DEGRADED_S)


SourcePath = Annotated[str, Path(description="As it was handed in, URL-encoded; `/` may stay.")]


@router.get("/agents/{domain}/documents", response_model=DocumentsDocument)
async def documents(domain: DomainName, asked: Annotated[DocumentsParameters, Query()], serving: Served) -> Response:
    """List documents by source and path, each with its state: its generation, or when and why it failed.

    A document in the inbox is `accepted` until a sync has read it.
    """
    serving.viewer.check_operates()
    served = serving.agent(domain).domain
    return json_response(await serving.lookups.run(lambda: serving.engine.documents.page(served, asked.asked())))


@router.delete(
    "/agents/{domain}/documents/{source_path:path}",
    response_model=WithdrawnDocument,
    status_code=202,
    responses={204: {"description": "Nothing of this path is there"}, **problem_responses(409)},
)
async def withdraw(domain: DomainName, source_path: SourcePath, serving: Served) -> Response:
    """Take a document out of the inbox; the next sync removes it from the index. A repetition changes nothing.

    A document of another source has to be removed in that source. The answer is then 409 and names the source.
    """
    serving.viewer.check_operates()
    served = serving.agent(domain).domain
    if unsafe_path(source_path):
        return Response(status_code=204)
    try:
        is_left = await serving.writing.run(lambda: serving.engine.documents.withdraw(served, source_path))
    except ForeignDocumentError as error:
        owners = ", ".join(error.owners)
        detail = f"{source_path!r} was not handed in; it belongs to source {owners}: remove it there, then sync"
        raise ProblemError(409, detail, kind="not-in-inbox") from error
    if not is_left:
        return Response(status_code=204)
    return json_response({"source_path": source_path, "status": "DELETED"}, 202)
