"""Texts behind citations, and lines in them. ``/conflicts``: conflicts in the whole corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Query, Response

from api.errors import ProblemError
from api.openapi import problem_responses
from api.requests.query import CompleteParameters, FindParameters, LedgerQuery, UsesParameters
from api.routes.agents import DomainName
from api.schemas import json_response
from api.state import Served, Serving
from nornweave.ask.search.question import Deadline
from nornweave.ask.views.ledger import DismissedDocument, LedgerDocument
from nornweave.ask.views.texts import ChunkDocument, CompletionsDocument, DocumentDocument, FindDocument, UsesDocument
from nornweave.core.errors import QueryError

T = TypeVar("T")

router = APIRouter(responses=problem_responses(401, 421, 422, 500, 503))

ChunkName = Annotated[str, Path(description="As items carry it.")]
SourceName = Annotated[str, Path(description="As citations carry it.")]
ConflictName = Annotated[str, Path(description="As entries of the ledger and conflicts of answers carry it.")]
DocumentPath = Annotated[str, Path(description="Relative to the source's `path`, URL-encoded; `/` may stay.")]


@router.get("/chunks/{chunk_id}", response_model=ChunkDocument, responses=problem_responses(404), tags=["texts"])
async def chunk(chunk_id: ChunkName, serving: Served) -> Response:
    """Return a chunk with its citation and its facts."""
    found = await _look_up(serving, lambda: serving.engine.texts.chunk(chunk_id), chunk_id)
    return _found(found, f"no chunk {_shown(chunk_id)} is in what is served; it may have been changed or removed since")


@router.get(
    "/documents/{domain}/{source_id}/{path:path}",
    response_model=DocumentDocument,
    responses=problem_responses(404),
    tags=["texts"],
)
async def document(domain: DomainName, source_id: SourceName, path: DocumentPath, serving: Served) -> Response:
    """Return a whole document as it was ingested. The path is looked up in the index; no file is opened."""
    served = serving.agent(domain).domain
    found = await _look_up(serving, lambda: serving.engine.texts.document(served, source_id, path), source_id, path)
    return _found(found, f"no document {_shown(path)} of source {_shown(source_id)} is in what is served of {domain}")


@router.get("/find", response_model=FindDocument, tags=["texts"])
async def find(asked: Annotated[FindParameters, Query()], serving: Served) -> Response:
    """Find lines that hold a text or match a regular expression (RE2), with their numbers.

    Lines are sorted by domain, source, path and line. Texts of remote agents are not read.
    """
    return json_response(await serving.find(asked.query(serving.domains), Deadline(serving.timeout_ms)))


@router.get("/uses", response_model=UsesDocument, tags=["texts"])
async def uses(asked: Annotated[UsesParameters, Query()], serving: Served) -> Response:
    """Find what uses a name of code: calls, imports, subclasses and other places, each with its certainty.

    Documents that hold the name are parsed now. The answer names documents that were not read.
    """
    return json_response(await serving.uses(asked.name, asked.source, Deadline(serving.timeout_ms)))


@router.get("/complete", response_model=CompletionsDocument, tags=["texts"])
async def complete(asked: Annotated[CompleteParameters, Query()], serving: Served) -> Response:
    """Complete names, paths, headings and channels. Matches at the start come first, then frequent, then short ones."""
    return json_response(await serving.lookups.run(lambda: serving.engine.texts.complete(asked.prefix, asked.limit)))


@router.get("/conflicts", response_model=LedgerDocument, tags=["conflicts"])
async def conflicts(asked: Annotated[LedgerQuery, Query()], serving: Served) -> Response:
    """List the conflicts between domains in the whole corpus, newest first, grouped by entity."""
    return json_response(asked.chosen(await serving.lookups.run(serving.engine.ledger.conflicts)))


@router.post(
    "/conflicts/{conflict_id}/dismiss",
    response_model=DismissedDocument,
    responses=problem_responses(403, 404),
    tags=["conflicts"],
)
async def dismiss(conflict_id: ConflictName, serving: Served) -> Response:
    """Say that two statements are no conflict. For operators. This applies in every document, also after syncs."""
    return json_response(await store_dismissal(serving, conflict_id))


@router.delete(
    "/conflicts/{conflict_id}/dismiss",
    response_model=DismissedDocument,
    responses=problem_responses(403, 404),
    tags=["conflicts"],
)
async def undismiss(conflict_id: ConflictName, serving: Served) -> Response:
    """Take the dismissal of a conflict back."""
    return json_response(await store_dismissal(serving, conflict_id, undo=True))


async def store_dismissal(serving: Serving, conflict_id: str, *, undo: bool = False) -> DismissedDocument:
    """Dismiss a conflict, or with ``undo`` take the dismissal back. Return the id of the two statements.

    Raises:
        ProblemError: 404, no conflict has this id, or it is not dismissed; or this is a replica.
        NotPermittedError: the viewer is not an operator.
    """
    serving.viewer.check_operates()
    if serving.sources_file is None:
        raise ProblemError(404, "a replica has no ledger of its own; dismiss the conflict where it is published")
    try:
        return await serving.writing.run(lambda: serving.engine.ledger.dismiss(conflict_id, undo=undo))
    except QueryError as error:
        raise ProblemError(404, str(error)) from error


async def _look_up(serving: Serving, look: Callable[[], T | None], *names: str) -> T | None:
    """Return the result of ``look``, called in a thread; ``None`` if a name has a NUL, which databases may refuse."""
    return None if any("\0" in name for name in names) else await serving.lookups.run(look)


def _found(document: object | None, otherwise: str) -> Response:
    if document is None:
        raise ProblemError(404, otherwise)
    return json_response(document)


def _shown(name: str) -> str:
    return repr(name) if len(name) <= 200 else f"of {len(name)} characters"
