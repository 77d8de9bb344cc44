"""Answers for chat clients: completions in OpenAI's shape, whole or in pieces, with their sources.

Shapes: https://platform.openai.com/docs/api-reference/chat. ``citations`` is an addition, as other providers have it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.answer.context_budget import estimate_tokens
from nornweave.ask.answer.synthesis.citations import citation_key
from nornweave.ask.views.answer import AnswerableDocument, FusedItemDocument, FusionResult
from nornweave.ask.views.tools import Link

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#|!&~])")


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
