"""``/v1``: NornWeave as a model, for chat clients that speak OpenAI's interface.

``/v1/responses`` has the same answers as ``/v1/chat/completions``, in the shape of OpenAI's newer interface.
Shapes: https://platform.openai.com/docs/api-reference/responses and ``…/responses-streaming``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.sse import format_sse_event
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from api.chat_documents import (
    ChatCitation,
    ChunkDelta,
    CompletionChunk,
    CompletionDocument,
    ModelDocument,
    ModelsDocument,
    chunk,
    citations_of,
    completion,
    numbered_sources,
    sources_list,
    usage_of,
)
from api.errors import ProblemError, chat_error, unexpected_problem
from api.event_streams import EVENT_CONTENT, Writing, answer_streamed, event, stream, text_events
from api.links import page_links
from api.openapi import problem_responses
from api.requests.chat import MODEL, ChatBody, Conversation, ResponsesBody, model_domains
from api.schemas import EVENTS, json_response
from api.state import Served, Serving, arrive
from nornweave.ask.answer.streamed import StreamedAnswer
from nornweave.ask.answer.synthesis.links import without_images
from nornweave.ask.fuse.records import Synthesis
from nornweave.ask.views.answer import AnswerableDocument

router = APIRouter(prefix="/v1", tags=["chat"], responses=problem_responses(401, 421, 500))

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": EVENT_CONTENT, "description": f"The answer; with `stream` as {EVENTS}."}
}


@router.get("/models", response_model=ModelsDocument)
def models(serving: Served) -> Response:
    """List the models: one for all domains, and one for each domain."""
    names = model_domains(serving.domains)
    return json_response({"object": "list", "data": [_model(name) for name in names]})


@router.get("/models/{model}", response_model=ModelDocument, responses=problem_responses(404, 422))
def one_model(model: str, serving: Served) -> Response:
    """Return the model with this name."""
    names = model_domains(serving.domains)
    if model not in names:
        raise ProblemError(404, f"{model[:64]!r} is not served; served: {', '.join(names)}", kind="model-not-found")
    return json_response(_model(model))


def _model(name: str) -> ModelDocument:
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}


@router.post(
    "/chat/completions",
    response_model=CompletionDocument,
    responses={**STREAMED, **problem_responses(400, 413, 415, 422, 429, 503)},
)
async def chat_completions(body: ChatBody, serving: Served, request: Request) -> Response:
    """Answer the last message of the user, in the shape that OpenAI's clients know.

    The configured language model writes the answer. If none is configured, the answer is the text of `/query`.
    `citations` and a list of links at the end lead to the passages. Fields and parts of messages that are not used are
    ignored; `warnings` names them.
    """
    answer = ChatAnswer(body, serving, request)
    if body.stream:
        return await stream(request, serving.streams, answer.found, lambda found: _events(answer, body, found))
    found = await answer.found()
    await answer.write_whole(found)
    return json_response(
        completion(found.document, body.model, answer.created, answer.text, answer.citations, body.warnings)
    )


class ChatAnswer:
    """An answer to a conversation.

    Attributes:
        text, citations: set when the answer is written.
    """

    def __init__(self, body: Conversation, serving: Serving, request: Request) -> None:
        arrived = arrive(serving.timeout_ms, serving.viewer)
        self._serving, self._link = serving, page_links(serving.public_url, request)
        self._writes = serving.engine.answers.writes_answers
        self.question = body.question(serving.askable, arrived, synthesize=self._writes)
        self.created = int(arrived.now.timestamp())
        self.text = ""
        self.citations: list[ChatCitation] = []

    async def found(self) -> StreamedAnswer:
        """Return the answer without its text, when its turn has come. Raises as ``Serving.ask``."""
        return await self._serving.ask(self.question, lambda answers: answer_streamed(answers, self.question))

    async def write_whole(self, found: StreamedAnswer) -> None:
        """Let the model write the text of the answer, and store it with its citations."""
        async for _ in self.write(found, str.encode):
            pass

    async def write(self, found: StreamedAnswer, to_event: Callable[[str], bytes]) -> AsyncIterator[bytes]:
        """Write the text. Yield an event for each piece, and comments that keep the connection open."""
        written: Synthesis | None = None
        if self._writes:
            async with Writing(found.write) as writing:
                async for sent in text_events(writing, to_event):
                    yield sent
                written = writing.synthesis
        if written and written.text:
            self.citations = citations_of(found.document, written.cited, self._link)
            rest = sources_list(self.citations)
            self.text = written.text + rest
        else:
            rest = self.text = self._passages(found)
        yield to_event(rest)

    def _passages(self, found: StreamedAnswer) -> str:
        """Return a text without a model: sentences, places, conflicts and passages."""
        page = found.page()
        cited = [item.chunk_id for item in page.cited.values()]
        self.citations = citations_of(found.document, cited, self._link)
        numbered = numbered_sources(dict(zip(page.cited, self.citations, strict=True)))
        return "\n\n".join(filter(None, (without_images(page.lead), numbered, without_images(page.body))))


async def _events(answer: ChatAnswer, body: ChatBody, found: StreamedAnswer) -> AsyncIterator[bytes]:
    """Yield the text piece by piece, then its citations."""

    def piece(delta: ChunkDelta, finish_reason: Literal["stop"] | None = None) -> CompletionChunk:
        return chunk(answer.question.query_id, body.model, answer.created, delta, finish_reason)

    yield event(None, piece({"role": "assistant", "content": ""}))
    try:
        async for sent in answer.write(found, lambda text: event(None, piece({"content": text}))):
            yield sent
    except Exception as error:
        yield event(None, {"error": chat_error(unexpected_problem(error, "the text of a chat completion"))})
        return
    last = piece({}, "stop")
    last["citations"], last["answerable"] = answer.citations, found.document["answerable"]
    last["warnings"] = body.warnings
    yield event(None, last)
    if body.stream_options and body.stream_options.include_usage:
        yield event(None, {**piece({}), "choices": [], "usage": usage_of(found.document, answer.text)})
    yield format_sse_event(data_str="[DONE]")


class ResponseDocument(TypedDict):
    """A whole answer in the shape of ``POST /v1/responses``."""

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
        return await stream(request, serving.streams, answer.found, lambda found: _response_events(answer, body, found))
    found = await answer.found()
    await answer.write_whole(found)
    return json_response(
        _response_document(answer, body, found, [_output_message(answer, "completed", [_output_text(answer.text)])])
    )


async def _response_events(answer: ChatAnswer, body: ResponsesBody, found: StreamedAnswer) -> AsyncIterator[bytes]:
    numbers = count()
    place: dict[str, Any] = {"item_id": f"msg_{answer.question.query_id}", "output_index": 0, "content_index": 0}

    def said(kind: str, **fields: Any) -> bytes:
        return event(kind, {"type": kind, "sequence_number": next(numbers), **fields})

    yield said("response.created", response=_response_document(answer, body, found, []))
    yield said("response.output_item.added", output_index=0, item=_output_message(answer, "in_progress", []))
    yield said("response.content_part.added", **place, part=_output_text(""))
    try:
        async for sent in answer.write(found, lambda text: said("response.output_text.delta", **place, delta=text)):
            yield sent
    except Exception as error:
        problem = chat_error(unexpected_problem(error, "the text of a response"))
        yield said("error", code=problem["code"], message=problem["message"], param=None)
        return
    part = _output_text(answer.text)
    message = _output_message(answer, "completed", [part])
    yield said("response.output_text.done", **place, text=answer.text)
    yield said("response.content_part.done", **place, part=part)
    yield said("response.output_item.done", output_index=0, item=message)
    yield said("response.completed", response=_response_document(answer, body, found, [message]))


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _output_message(answer: ChatAnswer, status: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    identity = f"msg_{answer.question.query_id}"
    return {"id": identity, "type": "message", "status": status, "role": "assistant", "content": parts}


def _response_document(
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
