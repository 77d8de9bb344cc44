"""``/query``: one answer out of all domains. ``/fuse``: one answer out of what any agents said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from api.deadline import Deadline
from api.errors import ProblemError
from api.fuse_body import FuseBody
from api.openapi import problem_responses
from api.ports import EnginePort
from api.query_body import QueryBody
from api.schemas import json_response
from api.state import Served
from nornweave.documents import FusionResult
from nornweave.errors import QueryError
from nornweave.fusion.records import FuseRequest
from nornweave.gathering import Question

EVENTS = "text/event-stream"
TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {"schema": {"type": "string"}}},
        "description": 'The answer; `text/plain` for `format: "text"`.',
    }
}

router = APIRouter(tags=["answers"], responses=problem_responses(400, 401, 413, 415, 421, 422, 500, 503))


@router.post("/query", response_model=FusionResult, responses={**TEXT, **problem_responses(406)})
async def query(body: QueryBody, serving: Served, request: Request) -> Response:
    """Ask all domains and fuse what they answer.

    A domain that is late, fails or has nothing published is a coverage gap: the others answer.
    """
    deadline = Deadline(body.timeout_ms)
    _check_accept(request.headers.get("accept", ""))
    question = body.question(serving.domains)
    asked = [agent for agent in serving.agents if question.domains is None or agent.domain in question.domains]
    await deadline.wait_for_start(asked)
    answer = _text if body.format == "text" else _document
    return await serving.questions.run(lambda: answer(serving.engine, question, deadline), deadline.left_s)


@router.post("/fuse", response_model=FusionResult)
async def fuse(body: FuseBody, serving: Served) -> Response:
    """Fuse the answers of any agents: six stages, from collecting to synthesis.

    Agents may know less than ours: of an item `chunk_id`, `content` and `score` are enough.
    """
    deadline = Deadline(body.timeout_ms)
    return await serving.fusions.run(lambda: _fused(serving.engine, body, deadline), deadline.left_s)


def _document(engine: EnginePort, question: Question, deadline: Deadline) -> Response:
    """Answer and write the answer down, both in the thread: the event loop stays free for who asks next.

    It can be judged as soon as it is read: it is remembered before it is sent.
    """
    document = engine.query(replace(question, timeout_ms=deadline.left_ms))
    response = json_response(document)
    engine.remember(question, document)
    return response


def _text(engine: EnginePort, question: Question, deadline: Deadline) -> Response:
    return PlainTextResponse(engine.query_text(replace(question, timeout_ms=deadline.left_ms)))


def _fused(engine: EnginePort, body: FuseBody, deadline: Deadline) -> Response:
    request: FuseRequest = replace(body.request(), timeout_ms=deadline.left_ms)
    try:
        return json_response(engine.fuse(request))
    except QueryError as error:
        field = "original_text" if error.field in {"query", "text"} else error.field
        raise QueryError(field, error.problem) from error


def _check_accept(accept: str) -> None:
    """Refuse who understands nothing but events, which are not sent yet; whoever else asks gets what ``format`` says.

    Raises:
        ProblemError: 406.
    """
    kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")}
    if kinds == {EVENTS}:
        raise ProblemError(406, f"{EVENTS} is not sent; accept application/json, or text/plain with format 'text'")
