"""``/v1``: NornWeave as a model, for chat clients that speak OpenAI's interface.

``/v1/responses`` has the same answers as ``/v1/chat/completions``, whole or in pieces, with their sources, in the shape
of OpenAI's newer interface. ``citations`` is an addition, as other providers have it. ``/v1/embeddings`` has vectors of
questions. Shapes: https://platform.openai.com/docs/api-reference/chat, ``…/responses``, ``…/responses-streaming`` and
``…/embeddings``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.sse import format_sse_event
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from api.errors import RETRY_SOON_S, ProblemError, chat_error, unavailable, unexpected_problem
from api.event_streams import EVENT_CONTENT, Writing, answer_streamed, event, stream, text_events
from api.openapi import problem_responses
from api.pages.addresses import page_links
from api.requests import Body
from api.requests.chat import MODEL, ChatBody, Conversation, ModelName, ResponsesBody, Text, model_domains, named
from api.schemas import EVENTS, json_response
from api.state import Served, Serving, arrive
from nornweave.ask.answer.context_budget import estimate_tokens
from nornweave.ask.answer.synthesis.citations import citation_key, without_images
from nornweave.ask.answer.synthesis.synthesizer import StreamedAnswer
from nornweave.ask.fuse.records import Synthesis
from nornweave.ask.views.answer import AnswerableDocument, FusedItemDocument, FusionResult
from nornweave.ask.views.tools import Link
from nornweave.core.errors import EncoderError, QueryError
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS
from nornweave.index.port import Vectors

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#|!&~])")

router = APIRouter(prefix="/v1", tags=["chat"], responses=problem_responses(401, 421, 500))

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": EVENT_CONTENT, "description": f"The answer; with `stream` as {EVENTS}."}
}

MAX_INPUTS = 64
Input = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS)]


class ModelDocument(TypedDict):
    """A model that can be asked."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsDocument(TypedDict):
    """All models that can be asked."""

    object: Literal["list"]
    data: list[ModelDocument]


class ChatCitation(TypedDict):
    """A passage behind the text; ``url`` opens it."""

    id: str
    title: str
    url: str
    domain_id: str
    source_path: str
    agent_id: Annotated[str | None, Field(description="who says so on another machine; null for what is served here")]
    line_range: list[int] | None
    verified_at: Annotated[str | None, Field(description="when its source last confirmed that it exists as it is")]
    folded: NotRequired[Annotated[int, Field(description="how many are like it and share its place")]]


class ChatAnswer(TypedDict):
    """The message of a completion."""

    role: Literal["assistant"]
    content: str


class ChatChoice(TypedDict):
    """The only choice of an answer."""

    index: Literal[0]
    message: ChatAnswer
    finish_reason: Literal["stop"]


class ChatUsage(TypedDict):
    """Numbers of tokens, estimated at four characters each."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionDocument(TypedDict):
    """A whole answer in the shape of ``POST /v1/chat/completions``."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    citations: list[ChatCitation]
    answerable: AnswerableDocument
    warnings: Annotated[list[str], Field(description="one sentence that names what of the request was ignored")]


class ChunkDelta(TypedDict):
    """The part of the message that is new."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]


class ChunkChoice(TypedDict):
    """A piece of the only choice of an answer."""

    index: Literal[0]
    delta: ChunkDelta
    finish_reason: Literal["stop"] | None


class CompletionChunk(TypedDict):
    """A piece of an answer. The last piece has the citations. If the usage is wanted, one more piece has it."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    citations: NotRequired[list[ChatCitation]]
    answerable: NotRequired[AnswerableDocument]
    warnings: NotRequired[list[str]]
    usage: NotRequired[ChatUsage]


def citations_of(document: FusionResult, cited: Sequence[str] | None, link: Link) -> list[ChatCitation]:
    """Return citations of the passages behind a text, in the order of the answer's items.

    Args:
        cited: chunks that the text cites; ``None`` if it shows all items.
    """
    shown = [item for item in document["items"] if cited is None or item["chunk_id"] in cited]
    return [_citation(item, link) for item in shown]


def numbered_sources(citations: Mapping[int, ChatCitation]) -> str:
    """Return the numbered citations of an answer as Markdown links."""
    lines = (f"- [{number}] [{_plain(cited['title'])}]({cited['url']})" for number, cited in citations.items())
    return "\n".join(["Sources:", *lines]) if citations else ""


def sources_list(citations: Sequence[ChatCitation]) -> str:
    """Return the sources as a Markdown list of links, for clients that show only the text."""
    lines = [f"- [{_plain(citation_key(one['domain_id'], one['id']))}] {_linked(one)}" for one in citations]
    return "\n\nSources:\n" + "\n".join(lines) if lines else ""


def completion(
    document: FusionResult,
    model: str,
    created: int,
    text: str,
    citations: list[ChatCitation],
    warnings: list[str],
) -> CompletionDocument:
    """Return a whole answer. ``created`` is the time in seconds since 1970, and ``text`` is the message."""
    return {
        "id": f"chatcmpl-{document['query_id']}",
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": usage_of(document, text),
        "citations": citations,
        "answerable": document["answerable"],
        "warnings": warnings,
    }


def usage_of(document: FusionResult, text: str) -> ChatUsage:
    """Return estimated numbers of tokens for a question and its answer."""
    asked, answered = estimate_tokens(document["query"]), estimate_tokens(text)
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def chunk(
    query_id: str, model: str, created: int, delta: ChunkDelta, finish_reason: Literal["stop"] | None = None
) -> CompletionChunk:
    """Return a piece of an answer. ``finish_reason`` is ``"stop"`` in the last piece and ``None`` before."""
    return {
        "id": f"chatcmpl-{query_id}",
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def _citation(item: FusedItemDocument, link: Link) -> ChatCitation:
    citation = item["citation"]
    lines = citation["line_range"]
    agent = f"{citation['agent_id']}:" if citation["agent_id"] else ""
    place = agent + citation["source_path"] + (f":{lines[0]}-{lines[1]}" if lines else "")
    document: ChatCitation = {
        "id": item["chunk_id"],
        "title": f"{citation['title']} ({place})" if citation["title"] else place,
        "url": link(item["chunk_id"], citation["url"]),
        "domain_id": citation["domain_id"],
        "source_path": citation["source_path"],
        "agent_id": citation["agent_id"],
        "line_range": lines,
        "verified_at": citation["verified_at"],
    }
    folded = len(item.get("folded", ()))
    return {**document, "folded": folded} if folded else document


def _linked(cited: ChatCitation) -> str:
    """Return a citation as a Markdown link, with the number of similar passages folded behind it."""
    link = f"[{_plain(cited['title'])}]({cited['url']})"
    return f"{link} and {cited['folded']} like it" if "folded" in cited else link


def _plain(text: str) -> str:
    """Return foreign text on one line, escaped so that Markdown shows it unchanged."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


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
    answer = ConversationAnswer(body, serving, request)
    if body.stream:
        return await stream(request, serving.streams, answer.found, lambda found: _events(answer, body, found))
    found = await answer.found()
    await answer.write_whole(found)
    return json_response(
        completion(found.document, body.model, answer.created, answer.text, answer.citations, body.warnings)
    )


class ConversationAnswer:
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


async def _events(answer: ConversationAnswer, body: ChatBody, found: StreamedAnswer) -> AsyncIterator[bytes]:
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
    answer = ConversationAnswer(body, serving, request)
    if body.stream:
        return await stream(request, serving.streams, answer.found, lambda found: _response_events(answer, body, found))
    found = await answer.found()
    await answer.write_whole(found)
    return json_response(
        _response_document(answer, body, found, [_output_message(answer, "completed", [_output_text(answer.text)])])
    )


async def _response_events(
    answer: ConversationAnswer, body: ResponsesBody, found: StreamedAnswer
) -> AsyncIterator[bytes]:
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


def _output_message(answer: ConversationAnswer, status: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    identity = f"msg_{answer.question.query_id}"
    return {"id": identity, "type": "message", "status": status, "role": "assistant", "content": parts}


def _response_document(
    answer: ConversationAnswer, body: ResponsesBody, found: StreamedAnswer, output: list[dict[str, Any]]
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


class EmbeddingsBody(Body):
    """The texts to encode. Fields that are not used are ignored, and named in ``warnings``."""

    model_config = ConfigDict(extra="allow")

    model: ModelName
    input: Annotated[
        list[Input],
        BeforeValidator(
            lambda given: [given] if isinstance(given, str) else given, json_schema_input_type=str | list[str]
        ),
        Field(min_length=1, max_length=MAX_INPUTS, description="One text, or several; numbers of tokens are not read."),
    ]
    encoding_format: Annotated[
        Literal["float", "base64"] | None, Field(description="`base64` are 32-bit floats, little-endian.")
    ] = None
    dimensions: Annotated[int | None, Field(ge=1, description="Those of the model; no other number is made.")] = None


class EmbeddingDocument(TypedDict):
    """The vector of a text, of length 1."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsDocument(TypedDict):
    """The vectors of all texts, in their order."""

    object: Literal["list"]
    data: list[EmbeddingDocument]
    model: str
    usage: Annotated[dict[str, int], Field(description="tokens, estimated at four characters each")]
    warnings: list[str]


@router.post(
    "/embeddings",
    response_model=EmbeddingsDocument,
    responses=problem_responses(400, 413, 415, 422, 429, 503),
)
async def embeddings(body: EmbeddingsBody, serving: Served) -> Response:
    """Encode texts with the encoder of a domain, as questions. The model `nornweave:code` is the encoder of `code`.

    The model `nornweave` is the encoder of all domains, if all have the same one.
    """
    models = model_domains(serving.domains)
    if body.model not in models:
        raise QueryError("model", f"{body.model!r} is not served; served: {', '.join(models)}")
    agents = [agent for agent in serving.agents if agent.domain in (models[body.model] or serving.domains)]

    def encode() -> Vectors:
        if len({agent.encoder_version for agent in agents}) > 1:
            raise QueryError("model", f"its domains have different encoders; name one: {', '.join([*models][1:])}")
        return agents[0].encode(body.input)

    question = arrive(serving.timeout_ms, serving.viewer)
    try:
        vectors = await serving.questions.run(encode, question.left_s)
    except EncoderError as error:
        raise unavailable("no-encoder", str(error), RETRY_SOON_S) from error
    if body.dimensions not in {None, vectors.shape[1]}:
        raise QueryError("dimensions", f"{body.dimensions}; the model has {vectors.shape[1]}")
    tokens = sum(map(estimate_tokens, body.input))
    ignored = [name for name, value in (body.model_extra or {}).items() if value is not None]
    document: EmbeddingsDocument = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": place, "embedding": _written(vector, body.encoding_format)}
            for place, vector in enumerate(vectors)
        ],
        "model": body.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "warnings": [f"ignored fields that are not used: {named(ignored)}"] if ignored else [],
    }
    return json_response(document)


def _written(vector: Vectors, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()
    values: list[float] = vector.tolist()
    return values
