"""``/agents/{domain}/documents``: where each document stands after the last sync, and taking those handed in out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from api.errors import ProblemError
from api.openapi import problem_responses
from api.requests.documents import DocumentsParameters
from api.routes.agents import DomainName
from api.schemas import json_response
from api.state import Served
from nornweave.ask.views.texts import DocumentsDocument, WithdrawnDocument
from nornweave.core.files.paths import unsafe_path
from nornweave.index.inbox_life_cycle import ForeignDocumentError

router = APIRouter(tags=["inbox"], responses=problem_responses(401, 403, 404, 421, 422, 500, 503))

SourcePath = Annotated[str, Path(description="As it was handed in, URL-encoded; `/` may stay.")]


@router.get("/agents/{domain}/documents", response_model=DocumentsDocument)
async def documents(domain: DomainName, asked: Annotated[DocumentsParameters, Query()], serving: Served) -> Response:
    """List documents by source and path, each with where it stands: indexed in which generation, failed and why.

    What was handed in is `accepted` until a sync has looked at it.
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
    """Take a document out of the inbox; it is gone with the next sync. Once more changes nothing.

    Documents of other sources are removed where they live: 409 says which source that is.
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
