"""``/v1/responses``: the answers of ``/v1/chat/completions`` in the shape of OpenAI's newer interface; none is stored.

Shapes: https://platform.openai.com/docs/api-reference/responses and ``…/responses-streaming``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from api.chat_documents import ChatCitation, usage_of
from api.errors import chat_error, unexpected_problem
from api.event_streams import event, stream
from api.openapi import problem_responses
from api.requests.chat import ResponsesBody
from api.routes.chat import STREAMED, ChatAnswer
from api.schemas import json_response
from api.state import Served
from nornweave.ask.answer.streamed import StreamedAnswer
from nornweave.ask.views.answer import AnswerableDocument

router = APIRouter(prefix="/v1", tags=["chat"], responses=problem_responses(401, 421, 500))


class ResponseDocument(TypedDict):
    """A whole answer."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["in_progress", "completed"]
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None
    parallel_tool_calls: bool
    tool_choice: Literal["none"]
    tools: list[dict[str, Any]]
    citations: list[ChatCitation]
    answerable: AnswerableDocument
    warnings: list[str]


@router.post(
    "/responses",
    response_model=ResponseDocument,
    responses={**STREAMED, **problem_responses(400, 413, 415, 422, 429, 503)},
)
async def responses(body: ResponsesBody, serving: Served, request: Request) -> Response:
    """Answer the last message of the user, in the shape of OpenAI's Responses.

    The text is that of `/v1/chat/completions`. Nothing is stored: each request has the whole conversation.
    """
    answer = ChatAnswer(body, serving, request)
    if body.stream:
        return await stream(request, serving.streams, answer.found, lambda found: _events(answer, body, found))
    found = await answer.found()
    await answer.write_whole(found)
    return json_response(_document(answer, body, found, [_message(answer, "completed", [_text(answer.text)])]))


async def _events(answer: ChatAnswer, body: ResponsesBody, found: StreamedAnswer) -> AsyncIterator[bytes]:
    numbers = count()
    place: dict[str, Any] = {"item_id": f"msg_{answer.question.query_id}", "output_index": 0, "content_index": 0}

    def said(kind: str, **fields: Any) -> bytes:
        return event(kind, {"type": kind, "sequence_number": next(numbers), **fields})

    yield said("response.created", response=_document(answer, body, found, []))
    yield said("response.output_item.added", output_index=0, item=_message(answer, "in_progress", []))
    yield said("response.content_part.added", **place, part=_text(""))
    try:
        async for sent in answer.write(found, lambda text: said("response.output_text.delta", **place, delta=text)):
            yield sent
    except Exception as error:
        problem = chat_error(unexpected_problem(error, "the text of a response"))
        yield said("error", code=problem["code"], message=problem["message"], param=None)
        return
    part = _text(answer.text)
    message = _message(answer, "completed", [part])
    yield said("response.output_text.done", **place, text=answer.text)
    yield said("response.content_part.done", **place, part=part)
    yield said("response.output_item.done", output_index=0, item=message)
    yield said("response.completed", response=_document(answer, body, found, [message]))


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _message(answer: ChatAnswer, status: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    identity = f"msg_{answer.question.query_id}"
    return {"id": identity, "type": "message", "status": status, "role": "assistant", "content": parts}


def _document(
    answer: ChatAnswer, body: ResponsesBody, found: StreamedAnswer, output: list[dict[str, Any]]
) -> ResponseDocument:
    usage = usage_of(found.document, answer.text)
    counted = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{answer.question.query_id}",
        "object": "response",
        "created_at": answer.created,
        "status": "completed" if output else "in_progress",
        "model": body.model,
        "output": output,
        "usage": {**counted, "total_tokens": usage["total_tokens"], **details} if output else None,
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "citations": answer.citations,
        "answerable": found.document["answerable"],
        "warnings": body.warnings,
    }
