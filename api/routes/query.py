"""``/query``: one answer out of all domains. ``/fuse``: one answer out of what any agents said."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from api.arrival import arrive
from api.errors import ProblemError
from api.fuse_body import FuseBody
from api.openapi import problem_responses
from api.ports import EnginePort
from api.query_body import QueryBody
from api.schemas import json_response
from api.starting import wait_for_start
from api.state import Served
from nornweave.errors import QueryError
from nornweave.fusion.records import Recalled
from nornweave.retrieval.question import Question
from nornweave.views import FusionResult

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
    arrival = arrive(serving.timeout_ms if body.timeout_ms is None else body.timeout_ms)
    _check_accept(request.headers.get("accept", ""))
    question = body.question(serving.domains, arrival)
    agents = [agent for agent in serving.agents if question.domains is None or agent.domain in question.domains]
    await wait_for_start(agents, arrival.deadline)
    answer = _text if body.format == "text" else _document
    return await serving.questions.run(lambda: answer(serving.engine, question), arrival.left_s)


@router.post("/fuse", response_model=FusionResult)
async def fuse(body: FuseBody, serving: Served) -> Response:
    """Fuse the answers of any agents: six stages, from collecting to synthesis.

    Agents may know less than ours: of an item `chunk_id`, `content` and `score` are enough.
    """
    arrival = arrive(body.timeout_ms)
    question = body.question(arrival)
    return await serving.fusions.run(lambda: _fused(serving.engine, question, body.recalled()), arrival.left_s)


def _document(engine: EnginePort, question: Question) -> Response:
    """Answer and write the answer down, both in the thread: the event loop stays free for who asks next.

    It can be judged as soon as it is read: it is remembered before it is sent.
    """
    document = engine.query(question)
    response = json_response(document)
    engine.remember(question, document)
    return response


def _text(engine: EnginePort, question: Question) -> Response:
    return PlainTextResponse(engine.query_text(question))


def _fused(engine: EnginePort, question: Question, recalled: Recalled) -> Response:
    try:
        return json_response(engine.fuse(question, recalled))
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
