"""``/query``: one answer from all domains. ``/why``: why a place is not in it. ``/fuse``: one from given answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from api.errors import ProblemError, unexpected_problem
from api.event_streams import EVENT_CONTENT, Writing, answer_streamed, event, stream, text_events
from api.openapi import problem_responses
from api.requests.query import FuseBody, QueryBody, WhyBody
from api.schemas import EVENTS, json_response, prefers_events
from api.state import Served, arrive
from nornweave.ask.answer.streamed import StreamedAnswer
from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.question import Question
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.answer import FusionResult, SynthesisDocument, synthesis_document
from nornweave.ask.views.texts import WhyDocument
from nornweave.core.errors import QueryError

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
