"""``/query``, ``/why`` and ``/fuse``; the texts behind citations, lines in them, and ``/conflicts``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse
from starlette.requests import Request
from starlette.responses import Response

from api.errors import ProblemError, unexpected_problem
from api.event_streams import EVENT_CONTENT, Writing, answer_streamed, event, stream, text_events
from api.openapi import problem_responses
from api.requests.query import (
    CompleteParameters,
    FindParameters,
    FuseBody,
    LedgerQuery,
    QueryBody,
    UsesParameters,
    WhyBody,
)
from api.routes.agents import DomainName
from api.schemas import EVENTS, json_response, prefers_events
from api.state import Served, Serving, arrive
from nornweave.ask.answer.synthesis.synthesizer import StreamedAnswer
from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.question import Deadline, Question
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.answer import FusionResult, SynthesisDocument, synthesis_document
from nornweave.ask.views.ledger import DismissedDocument, LedgerDocument
from nornweave.ask.views.texts import (
    ChunkDocument,
    CompletionsDocument,
    DocumentDocument,
    FindDocument,
    UsesDocument,
    WhyDocument,
)
from nornweave.core.errors import QueryError

T = TypeVar("T")

texts_router = APIRouter(responses=problem_responses(401, 421, 422, 500, 503))

ChunkName = Annotated[str, Path(description="As items carry it.")]
SourceName = Annotated[str, Path(description="As citations carry it.")]
ConflictName = Annotated[str, Path(description="As entries of the ledger and conflicts of answers carry it.")]
DocumentPath = Annotated[str, Path(description="Relative to the source's `path`, URL-encoded; `/` may stay.")]


@texts_router.get("/chunks/{chunk_id}", response_model=ChunkDocument, responses=problem_responses(404), tags=["texts"])
async def chunk(chunk_id: ChunkName, serving: Served) -> Response:
    """Return a chunk with its citation and its facts."""
    found = await _look_up(serving, lambda: serving.engine.texts.chunk(chunk_id), chunk_id)
    return _found(found, f"no chunk {_shown(chunk_id)} is in what is served; it may have been changed or removed since")


@texts_router.get(
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


@texts_router.get("/find", response_model=FindDocument, tags=["texts"])
async def find(asked: Annotated[FindParameters, Query()], serving: Served) -> Response:
    """Find lines that hold a text or match a regular expression (RE2), with their numbers.

    Lines are sorted by domain, source, path and line. Texts of remote agents are not read.
    """
    return json_response(await serving.find(asked.query(serving.domains), Deadline(serving.timeout_ms)))


@texts_router.get("/uses", response_model=UsesDocument, tags=["texts"])
async def uses(asked: Annotated[UsesParameters, Query()], serving: Served) -> Response:
    """Find what uses a name of code: calls, imports, subclasses and other places, each with its certainty.

    Documents that hold the name are parsed now. The answer names documents that were not read.
    """
    return json_response(await serving.uses(asked.name, asked.source, Deadline(serving.timeout_ms)))


@texts_router.get("/complete", response_model=CompletionsDocument, tags=["texts"])
async def complete(asked: Annotated[CompleteParameters, Query()], serving: Served) -> Response:
    """Complete names, paths, headings and channels. Matches at the start come first, then frequent, then short ones."""
    return json_response(await serving.lookups.run(lambda: serving.engine.texts.complete(asked.prefix, asked.limit)))


@texts_router.get("/conflicts", response_model=LedgerDocument, tags=["conflicts"])
async def conflicts(asked: Annotated[LedgerQuery, Query()], serving: Served) -> Response:
    """List the conflicts between domains in the whole corpus, newest first, grouped by entity."""
    return json_response(asked.chosen(await serving.lookups.run(serving.engine.ledger.conflicts)))


@texts_router.post(
    "/conflicts/{conflict_id}/dismiss",
    response_model=DismissedDocument,
    responses=problem_responses(403, 404),
    tags=["conflicts"],
)
async def dismiss(conflict_id: ConflictName, serving: Served) -> Response:
    """Say that two statements are no conflict. For operators. This applies in every document, also after syncs."""
    return json_response(await store_dismissal(serving, conflict_id))


@texts_router.delete(
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


TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {"schema": {"type": "string"}}, **EVENT_CONTENT},
        "description": f'The answer; `text/plain` for `format: "text"`, `{EVENTS}` for who prefers events.',
    }
}

NO_SUCH_PLACE = "no such document or line is in what is served; citations print paths as they are looked up"

router = APIRouter(tags=["answers"], responses=problem_responses(400, 401, 413, 415, 421, 422, 500, 503))


@router.post("/query", response_model=FusionResult, responses={**TEXT, **problem_responses(404, 429)})
async def query(body: QueryBody, serving: Served, request: Request) -> Response:
    """Ask all domains and fuse their answers.

    A domain that is late, fails or has nothing published is a coverage gap: the others answer. A client that prefers
    `text/event-stream` gets the event `items` (the answer without a text), with `synthesize` also `token` (pieces of
    the text), then `citations`, and at last `done`; or `error`. Without `timeout_ms` only the settings limit the text.
    """
    arrived = arrive(serving.timeout_ms if body.timeout_ms is None else body.timeout_ms, serving.viewer)
    question = body.question(serving.askable, arrived)
    if prefers_events(request.headers.get("accept", "")):
        if body.format == "text":
            raise QueryError("format", f"'text' is not sent as events; leave it out, or do not accept {EVENTS}")
        return await stream(
            request,
            serving.streams,
            lambda: serving.ask(question, lambda answers: answer_streamed(answers, question)),
            lambda streamed: _events(streamed, question, limited=body.timeout_ms is not None),
        )
    answer = _text if body.format == "text" else _document
    return await serving.ask(question, lambda answers: answer(answers, question))


@router.post("/why", response_model=WhyDocument, responses=problem_responses(404))
async def why(body: WhyBody, serving: Served) -> Response:
    """Explain why a document, or its part that holds a line, is not in the answer to a question.

    The named changes were tried: `changed` is the body of a question whose answer shows the place.
    """
    arrived = arrive(serving.timeout_ms if body.timeout_ms is None else body.timeout_ms, serving.viewer)
    question = body.question(serving.askable, arrived)
    found = await serving.ask(question, lambda answers: answers.why(question, body.place))
    if found is None:
        raise ProblemError(404, NO_SUCH_PLACE)
    return json_response(found)


@router.post("/fuse", response_model=FusionResult)
async def fuse(body: FuseBody, serving: Served) -> Response:
    """Fuse the answers of any agents, in six stages from collecting to synthesis.

    Other agents may send less than ours: an item needs `chunk_id`, `content` and `score`. A body has 1 MiB at most:
    send fewer or shorter items if it would be larger.
    """
    arrived = arrive(body.timeout_ms, serving.viewer)
    question = body.question(arrived)
    return await serving.fusions.run(lambda: _fused(serving.engine.answers, question, body.recalled()), arrived.left_s)


def _document(answers: SeenAnswers, question: Question) -> Response:
    """Answer and record the answer, both in the worker thread, so that the event loop stays free.

    The answer is recorded before it is sent, so that it can be judged as soon as it is read.
    """
    document = answers.query(question)
    response = json_response(document)
    answers.remember(question, document)
    return response


def _text(answers: SeenAnswers, question: Question) -> Response:
    return PlainTextResponse(answers.query_text(question))


def _fused(answers: SeenAnswers, question: Question, recalled: Recalled) -> Response:
    try:
        return json_response(answers.fuse(question, recalled))
    except QueryError as error:
        field = "original_text" if error.field in {"query", "text"} else error.field
        raise QueryError(field, error.problem) from error


async def _events(streamed: StreamedAnswer, question: Question, *, limited: bool) -> AsyncIterator[bytes]:
    """Yield the items, the text while it is written, its citations, and the outcome.

    Args:
        limited: whether the question's deadline also limits the text.
    """
    yield event("items", streamed.document)
    details: SynthesisDocument | None = None
    text: str | None = None
    if question.synthesize:
        timeout_ms = question.deadline.left_ms if limited and question.deadline else None
        try:
            async with Writing(partial(streamed.write, timeout_ms=timeout_ms)) as writing:
                async for sent in text_events(writing, lambda piece: event("token", {"text": piece})):
                    yield sent
                synthesis = writing.synthesis
        except Exception as error:
            yield event("error", unexpected_problem(error, "the text of an answer"))
            return
        text, details = synthesis.text, synthesis_document(synthesis)
        cited = {"cited": details["cited"], "unknown_citations": details["unknown_citations"]}
        yield event("citations", cited)
    done = {"query_id": question.query_id, "trace_id": question.trace_id, "synthesis": text}
    yield event("done", {**done, "synthesis_details": details})
