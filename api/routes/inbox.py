"""``/agents/{domain}/ingest``: documents handed in over HTTP, as JSON or as files.

The parts of a form: ``file`` (repeated), whose file name is its place in the inbox; ``path``, a folder to put before
every name; ``metadata``, a JSON object that every file gets; ``source_updated_at``.

Text comes as JSON, files as ``multipart/form-data``: two routes of one path, chosen by the content type.
``/agents/{domain}/documents``: the state of each document after the last sync, and removal of those handed in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope
from typing_extensions import TypedDict

from api.errors import ProblemError, field_problem, unavailable
from api.openapi import PROBLEMS, problem_responses
from api.requests import Body, Parameters
from api.routes.agents import DomainName
from api.schemas import json_response
from api.state import Served, Serving
from nornweave.ask.search.agent import Agent
from nornweave.ask.seen.agents import SeenAgent
from nornweave.ask.views.texts import Deposit, DepositDocument, DocumentsDocument, WithdrawnDocument
from nornweave.core.errors import QueryError
from nornweave.core.files.paths import unsafe_path
from nornweave.core.text.checked_values import MAX_LINE_CHARACTERS, Moment, Name, PlainJson, UrlCount, textual
from nornweave.core.types import freeze
from nornweave.index.inbox_life_cycle import DocumentsQuery, DocumentStatus, ForeignDocumentError

MAX_DOCUMENTS = 1_000
MAX_DOCUMENT_BYTES = 10 * 1024 * 1024


class HandedInBody(Body):
    """A document to index."""

    source_path: Annotated[
        str,
        StringConstraints(max_length=MAX_LINE_CHARACTERS),
        AfterValidator(textual),
        Field(
            description="Its place and identity in the inbox, such as `runbooks/refunds.md`; the suffix is its format."
        ),
    ]
    content: Annotated[
        str,
        AfterValidator(textual),
        Field(description="Text. A body of JSON has 1 MiB at most; larger documents are sent as files."),
    ]
    metadata: Annotated[PlainJson, Field(description="Any JSON; `author`, `title`, `url`, `tags` are known.")] = {}
    source_updated_at: Annotated[
        Moment | None, Field(description="When it changed last; UTC unless it says otherwise.")
    ] = None

    def deposit(self) -> Deposit:
        """Return the document as a file for the inbox."""
        return Deposit(
            source_path=self.source_path,
            content=self.content,
            metadata=freeze(self.metadata),
            source_updated_at=self.source_updated_at,
        )


class IngestBody(Body):
    """Documents for the inbox of one domain."""

    documents: Annotated[list[HandedInBody], Field(min_length=1, max_length=MAX_DOCUMENTS)]


class IngestDocument(TypedDict):
    """The outcome of each document, in the order of the request."""

    documents: list[DepositDocument]


MEDIA_TYPE = "multipart/form-data"
MAX_FILES = 1_000
MAX_FIELDS = 10
MAX_FIELD_BYTES = 512 * 1024
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "Files of at most 10 MiB; the file name is the place in the inbox, its suffix the format.",
        },
        "path": {"type": "string", "description": "A folder to put before every file name."},
        "metadata": {"type": "string", "description": "A JSON object, for every file."},
        "source_updated_at": {"type": "string", "description": "When they changed last; UTC unless it says otherwise."},
    },
}


class _Fields(Parameters):
    path: Annotated[str, StringConstraints(max_length=MAX_LINE_CHARACTERS)] = ""
    metadata: PlainJson = Field(default_factory=dict)
    source_updated_at: Moment | None = None


def is_multipart(content_type: str) -> bool:
    """Tell whether a content type is ``multipart/form-data``."""
    return content_type.partition(";")[0].strip().lower() == MEDIA_TYPE


async def read_files(request: Request) -> list[Deposit]:
    """Return the files of a request, in order.

    Raises:
        ProblemError: 400, the body does not match its content type.
        QueryError: there is no file, a file is too large, or a field is wrong.
    """
    try:
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES) as form:
            fields = _fields([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
            files = [(name, value) for name, value in form.multi_items() if isinstance(value, UploadFile)]
            if not files:
                raise QueryError("file", "is missing; send at least one part `file` with a file name")
            return [await _deposit(name, value, number, fields) for number, (name, value) in enumerate(files)]
    except HTTPException as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(400, f"the body is not valid {MEDIA_TYPE}: {error.detail}") from error


def _fields(pairs: list[tuple[str, str]]) -> _Fields:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise QueryError(name[:80], "given twice; it takes one value")
        values[name] = value
    try:
        if "metadata" in values:
            values["metadata"] = json.loads(values["metadata"])
        return _Fields.model_validate(values)
    except (json.JSONDecodeError, RecursionError) as error:
        raise QueryError("metadata", f"is not JSON: {error}; expected an object") from error
    except ValidationError as error:
        problem = field_problem({**error.errors()[0], "loc": ("body", *error.errors()[0]["loc"])})
        raise QueryError(problem["field"], problem["detail"]) from error


async def _deposit(name: str, file: UploadFile, number: int, fields: _Fields) -> Deposit:
    where = f"file.{number}"
    if name != "file":
        raise QueryError(name[:80], "unknown part; files are parts called `file`")
    if not file.filename:
        raise QueryError(where, "has no file name, which is its place in the inbox")
    if (file.size or 0) > MAX_DOCUMENT_BYTES:
        raise QueryError(where, f"{file.size:,} bytes; allowed are {MAX_DOCUMENT_BYTES:,}")
    folder = fields.path.strip("/")
    return Deposit(
        source_path=f"{folder}/{file.filename}" if folder else file.filename,
        content=await file.read(),
        metadata=freeze(fields.metadata),
        source_updated_at=fields.source_updated_at,
    )


MAX_LISTED, USUAL_DOCUMENTS = 1_000, 100
MAX_CURSOR_CHARACTERS = 16_384


class DocumentsParameters(Parameters):
    """The documents to list."""

    status: Annotated[DocumentStatus | None, Field(description="Those that stand so after the last sync.")] = None
    source: Annotated[Name | None, Field(description="Those of this source; `inbox` are those handed in.")] = None
    limit: Annotated[UrlCount, Field(ge=1, le=MAX_LISTED, strict=True, description="At most this many.")] = (
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
