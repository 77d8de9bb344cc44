"""``/v1``: NornWeave as a model, for chat clients that speak OpenAI's interface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.sse import format_sse_event

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
from api.event_streams import EVENT_CONTENT, Writing, answer_streamed, event, stream, text_events, written_whole
from api.links import page_links
from api.openapi import problem_responses
from api.requests.chat import MODEL, ChatBody, model_domains
from api.schemas import EVENTS, json_response
from api.state import Served, arrive
from nornweave.ask.answer.streamed import StreamedAnswer
from nornweave.ask.answer.synthesis.links import without_images
from nornweave.ask.fuse.records import Synthesis
from nornweave.ask.search.question import Question
from nornweave.ask.views.tools import Link

router = APIRouter(prefix="/v1", tags=["chat"], responses=problem_responses(401, 421, 500))

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": EVENT_CONTENT, "description": f"The answer; with `stream` as {EVENTS}."}
}


@router.get("/models", response_model=ModelsDocument)
def models(serving: Served) -> Response:
    """List what can be asked: all domains, or one."""
    names = model_domains(serving.domains)
    return json_response({"object": "list", "data": [_model(name) for name in names]})


@router.get("/models/{model}", response_model=ModelDocument, responses=problem_responses(404, 422))
def one_model(model: str, serving: Served) -> Response:
    """Return one of what can be asked."""
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

    The language model that the configuration names writes the answer; without one it is what `/query` returns as text.
    `citations` and a list of links at the end lead to the passages. Fields and parts of messages that are not used are
    ignored; `warnings` names them.
    """
    arrived = arrive(serving.timeout_ms, serving.viewer)
    writes = serving.engine.answers.writes_answers
    question = body.question(serving.askable, arrived, synthesize=writes)
    chat = _Chat(question, body, int(arrived.now.timestamp()), page_links(serving.public_url, request), writes)

    async def answer() -> StreamedAnswer:
        return await serving.ask(question, lambda answers: answer_streamed(answers, question))

    if body.stream:
        return await stream(request, serving.streams, answer, chat.events)
    return json_response(await chat.whole(await answer()))


@dataclass(frozen=True, slots=True)
class _Chat:
    """One answer in the shape of a completion; ``writes`` if a model was chosen that writes it."""

    question: Question
    body: ChatBody
    created: int
    link: Link
    writes: bool

    async def whole(self, streamed: StreamedAnswer) -> CompletionDocument:
        """Return the answer once its text is written."""
        written = await written_whole(streamed.write) if self.writes else None
        if written and written.text:
            citations = citations_of(streamed.document, written.cited, self.link)
            text = written.text + sources_list(citations)
        else:
            text, citations = self._passages(streamed)
        return completion(streamed.document, self.body.model, self.created, text, citations, self.body.warnings)

    async def events(self, streamed: StreamedAnswer) -> AsyncIterator[bytes]:
        """Send the text piece by piece, then what it cites."""
        yield self._piece({"role": "assistant", "content": ""})
        written: Synthesis | None = None
        if self.writes:
            try:
                async with Writing(streamed.write) as writing:
                    async for sent in text_events(writing, lambda text: self._piece({"content": text})):
                        yield sent
                    written = writing.synthesis
            except Exception as error:
                yield event(None, {"error": chat_error(unexpected_problem(error, "the text of a chat completion"))})
                return
        if written and written.text:
            citations = citations_of(streamed.document, written.cited, self.link)
            rest = sources_list(citations)
            text = written.text + rest
        else:
            text, citations = self._passages(streamed)
            rest = text
        yield self._piece({"content": rest})
        last = self._chunk({}, "stop")
        last["citations"], last["answerable"] = citations, streamed.document["answerable"]
        last["warnings"] = self.body.warnings
        yield event(None, last)
        if self.body.stream_options and self.body.stream_options.include_usage:
            usage = usage_of(streamed.document, text)
            yield event(None, {**self._chunk({}), "choices": [], "usage": usage})
        yield format_sse_event(data_str="[DONE]")

    def _passages(self, streamed: StreamedAnswer) -> tuple[str, list[ChatCitation]]:
        """Return the text that no model wrote: sentences, places, conflicts and passages, with what it cites."""
        page = streamed.page()
        cited = [item.chunk_id for item in page.cited.values()]
        citations = citations_of(streamed.document, cited, self.link)
        numbered = numbered_sources(dict(zip(page.cited, citations, strict=True)))
        parts = (without_images(page.lead), numbered, without_images(page.body))
        return "\n\n".join(filter(None, parts)), citations

    def _piece(self, delta: ChunkDelta) -> bytes:
        return event(None, self._chunk(delta))

    def _chunk(self, delta: ChunkDelta, finish_reason: Literal["stop"] | None = None) -> CompletionChunk:
        return chunk(self.question.query_id, self.body.model, self.created, delta, finish_reason)
