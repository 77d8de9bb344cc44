"""Requests to remote agents and their answers, which are checked like any foreign input.

Agents may send less or more than ours: an item needs only ``chunk_id``, ``content`` and ``score``. Unknown fields
are ignored.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Self
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from nornweave.ask.agents.registry import Capabilities
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation, RecallItem, RecallResponse, SourceScore, SourceState
from nornweave.config.base import checked_server, is_allowed
from nornweave.core.access import HELD, Viewer, is_principal
from nornweave.core.errors import AgentError
from nornweave.core.text.checked_values import (
    Characters,
    DomainId,
    Line,
    Lines,
    Moment,
    Name,
    PlainJson,
    Score,
    textual,
)
from nornweave.core.text.dates import aware, utc_text
from nornweave.core.types import ChunkId, Domain, freeze

MAX_ITEMS = 10_000
MAX_CONTENT_CHARACTERS = 100_000

Count = Annotated[int, Field(ge=0, le=10**12)]


class Foreign(BaseModel):
    """A part of an agent's answer. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class CitationBody(Foreign):
    """The place of an item, as far as its agent knows it."""

    domain_id: DomainId | None = None
    source_id: Line | None = None
    source_path: Annotated[Line | None, Field(description="without one the chunk's id stands in")] = None
    timestamp: Annotated[Moment | None, Field(description="ISO 8601, UTC unless it says otherwise")] = None
    line_range: Annotated[Lines | None, Field(description="first and last line, from 1")] = None
    char_range: Annotated[Characters | None, Field(description="[start, end) in the document's text")] = None
    page: Annotated[int | None, Field(ge=0, le=10**9)] = None
    section: Line | None = None
    message_ids: Annotated[list[Line] | None, Field(max_length=10_000)] = None
    url: Line | None = None
    title: Line | None = None
    revision: Line | None = None
    stale: bool | None = None
    verified_at: Annotated[Moment | None, Field(description="when the source last confirmed it")] = None

    def citation(self, domain_id: str, chunk_id: str, length: int) -> Citation:
        """Return the citation for fusion. Without a range of characters it covers the content's ``length``."""
        known = {
            "domain_id": self.domain_id or domain_id,
            "source_id": self.source_id or "",
            "source_path": self.source_path or chunk_id,
            "char_range": self.char_range or (0, length),
            "message_ids": None if self.message_ids is None else tuple(self.message_ids),
            "stale": bool(self.stale),
        }
        return Citation(**{**dict(self), **known})


class SourceScoreBody(Foreign):
    """The rank and score that one retriever gave an item."""

    rank: Annotated[int, Field(ge=1, le=10**9)]
    score: Annotated[float, Field(allow_inf_nan=False)]


class ItemBody(Foreign):
    """One item of an agent."""

    chunk_id: Name
    content: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS), AfterValidator(textual)]
    score: Annotated[Score, Field(description="higher is better; any scale unless the agent is `calibrated`")]
    citation: CitationBody | None = None
    sources: Annotated[dict[Name, SourceScoreBody] | None, Field(max_length=16)] = None
    rerank_score: Annotated[float | None, Field(allow_inf_nan=False)] = None
    metadata: PlainJson | None = None
    folded: Annotated[list[CitationBody] | None, Field(max_length=MAX_ITEMS)] = None

    def item(self, domain_id: str) -> RecallItem:
        """Return the item as a ``RecallItem`` of the domain."""
        sources = {name: SourceScore(source.rank, source.score) for name, source in (self.sources or {}).items()}
        return RecallItem(
            chunk_id=ChunkId(self.chunk_id),
            content=self.content,
            score=self.score,
            citation=(self.citation or _NOWHERE).citation(domain_id, self.chunk_id, len(self.content)),
            sources=MappingProxyType(sources),
            rerank_score=self.rerank_score,
            metadata=freeze(self.metadata or {}),
            folded=tuple(each.citation(domain_id, self.chunk_id, 0) for each in self.folded or ()),
        )


_NOWHERE = CitationBody()


class ResponseBody(Foreign):
    """One agent's answer, as `/agents/{domain}/recall` returns it or with fewer fields."""

    agent_id: Name
    domain_id: Annotated[DomainId, Field(description="any name; `docs` and `convo` are read as our domains")]
    items: Annotated[list[ItemBody], Field(max_length=MAX_ITEMS)]
    latency_ms: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0
    total_searched: Count = 0
    retrieval: Annotated[dict[Name, SourceState], Field(max_length=16)] = {}
    generation: Line = ""
    indexed_at: Line = ""
    notices: Annotated[list[Line], Field(max_length=100)] = []
    expansions: Annotated[list[Line], Field(max_length=100)] = []
    calibrated: Annotated[
        bool, Field(description="scores are in [0, 1] and compare with those of other agents that say so")
    ] = False

    @model_validator(mode="after")
    def _calibrated_scores(self) -> Self:
        if self.calibrated and not all(0 <= item.score <= 1 for item in self.items):
            raise ValueError("calibrated, but a score is not in [0, 1]")
        return self

    def response(self) -> RecallResponse:
        """Return the answer as a ``RecallResponse``, with which fusion works."""
        known = {
            "items": tuple(item.item(self.domain_id) for item in self.items),
            "retrieval": MappingProxyType(dict(self.retrieval)),
            "notices": tuple(self.notices),
            "expansions": tuple(self.expansions),
        }
        return RecallResponse(**{**dict(self), **known})


GROUPS_HEADER = "nornweave-viewer-groups"
"""The groups of whom a question is asked for, percent-encoded, between commas; an answer that has it heeded them."""
MAX_GROUPS = 200


def recall_body(question: Question, domain: Domain, capabilities: Capabilities, left_ms: int | None) -> bytes:
    """Return the body of a recall: query, ``top_k`` and filters, and further fields only if the agent accepts them."""
    fields: dict[str, object] = {
        "query_text": " ".join((question.text, *(f'-"{word}"' for word in question.left_out))),
        "top_k": question.top_k,
        "filters": dict(question.filters.get(domain, {})),
    }
    more = {
        "expand": question.expand,
        "rerank": question.rerank,
        "explain": question.explain,
        "now": utc_text(question.now, "microseconds"),
        "timeout_ms": left_ms,
    }
    fields.update((name, value) for name, value in more.items() if name in capabilities.accepts)
    return json.dumps(fields, default=dict).encode()  # filters may hold read-only mappings


def recall_headers(question: Question, token: str | None, groups: str | None) -> dict[str, str]:
    """Return the headers of a recall: trace, token and groups. A token or groups of ``None`` are not sent."""
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    if groups is not None:
        headers[GROUPS_HEADER] = groups
    if question.trace_id:
        headers["traceparent"] = f"00-{question.trace_id}-{secrets.token_hex(8)}-01"
    return headers


def groups_text(viewer: Viewer) -> str:
    """Return a viewer's groups as the value of a header, without personal accounts."""
    groups = sorted((is_principal(group), group) for group in viewer.groups if not group.startswith(HELD))
    return ",".join(quote(group, safe="") for _, group in groups[:MAX_GROUPS])


def read_answer(
    content: bytes, *, agent_id: str, domain: Domain, top_k: int, now: datetime, origins: Sequence[str] = ()
) -> RecallResponse:
    """Return the answer in the body of an agent's response.

    Its name and domain are those of its registration. Items come best first, each chunk once, ``top_k`` at most.
    Ids and sources begin with the agent's name, so that they differ from all local ones. Times after ``now`` and links
    that do not lead to one of ``origins`` are removed from the items.

    Raises:
        AgentError: the answer is not a recall of this domain.
    """
    try:
        response = ResponseBody.model_validate(json.loads(content)).response()
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise AgentError(
            f"answered with something else than a recall: {where or 'body'}: {first['msg'][:200]}"
        ) from None
    except (ValueError, RecursionError):
        raise AgentError("answered with something else than JSON") from None
    if response.domain_id != domain.value:
        raise AgentError(f"answered for {response.domain_id!r}, and is registered for {domain.value!r}")
    items = _best(response.items, top_k)
    return replace(
        response,
        agent_id=agent_id,
        items=tuple(_as_item_of_agent(item, agent_id, domain, now, origins) for item in items),
        notices=tuple(f"{agent_id}: {notice}" for notice in response.notices),
    )


def _best(items: Sequence[RecallItem], top_k: int) -> list[RecallItem]:
    """Return the items by descending score, each chunk once."""
    by_chunk: Mapping[str, RecallItem] = {
        item.chunk_id: item
        for item in sorted(items, key=lambda item: item.score)  # the best one stays
    }
    places = {item.chunk_id: place for place, item in reversed(list(enumerate(items)))}
    return sorted(by_chunk.values(), key=lambda item: (-item.score, places[item.chunk_id]))[:top_k]


def name_elsewhere(agent_id: str, name: str) -> str:
    """Return ``agent_id:name``, a remote agent's name for something. No local name has this form."""
    return f"{agent_id}:{name}"


def _as_item_of_agent(
    item: RecallItem, agent_id: str, domain: Domain, now: datetime, origins: Sequence[str]
) -> RecallItem:
    """Return an item with its agent's name and domain, without a link outside ``origins`` and times after ``now``."""
    said = item.citation
    citation = replace(
        said,
        agent_id=agent_id,
        domain_id=domain.value,
        source_id=name_elsewhere(agent_id, said.source_id),
        timestamp=said.timestamp if said.timestamp and aware(said.timestamp) <= aware(now) else None,
        verified_at=said.verified_at if said.verified_at and aware(said.verified_at) <= aware(now) else None,
        url=said.url if said.url and any(_leads_to(said.url, origin) for origin in origins) else None,
    )
    return replace(item, chunk_id=ChunkId(name_elsewhere(agent_id, item.chunk_id)), citation=citation)


def _leads_to(url: str, origin: str) -> bool:
    """Tell whether a link stays at or below an address in every browser."""
    try:
        link = urlsplit(url)
        server = checked_server(f"{link.scheme}://{link.netloc}")
    except ValueError:
        return False
    climbs = ".." in unquote(link.path).split("/")
    return url.isprintable() and "\\" not in url and not climbs and is_allowed(f"{server}{link.path}", origin)
