"""The answer of one agent, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.search.records import Citation, Explanation, RecallItem, RecallResponse, SourceState


class ScoreDocument(TypedDict):
    """A score in [0, 1], comparable between domains, and its parts where they were asked for."""

    value: float
    signals: dict[str, float]


class CitationDocument(TypedDict):
    """Where an item stands."""

    domain_id: str
    source_id: str
    source_path: Annotated[str, Field(description="relative to the source's `path`")]
    timestamp: Annotated[str | None, Field(description="ISO 8601, UTC")]
    line_range: Annotated[list[int] | None, Field(description="first and last line, from 1")]
    char_range: Annotated[list[int], Field(description="[start, end) in the document's text")]
    page: int | None
    section: str | None
    message_ids: Annotated[list[str] | None, Field(description="the messages that the chunk itself holds")]
    url: str | None
    title: str | None
    revision: str | None
    stale: Annotated[bool, Field(description="a newer version of the document could not be ingested")]
    verified_at: Annotated[
        str | None, Field(description="when the source last confirmed that the document exists as it is; RFC 3339")
    ]
    agent_id: Annotated[str | None, Field(description="who says so on another machine; null for what is served here")]


class SourceScoreDocument(TypedDict):
    """What one retrieval source gave an item: its rank, from 1, and its score, higher is better."""

    rank: int
    score: float


class ExplanationDocument(TypedDict):
    """How a score came about: what each retrieval source contributed, and what came on top."""

    weights: dict[str, float]
    contributions: dict[str, float]
    combined: float
    bonuses: dict[str, float]
    model_score: float | None


class ItemDocument(TypedDict):
    """A chunk that answers."""

    chunk_id: str
    content: str
    score: ScoreDocument
    citation: CitationDocument
    sources: dict[str, SourceScoreDocument]
    rerank_score: float | None
    metadata: dict[str, Any]
    explanation: NotRequired[ExplanationDocument]


class RecallDocument(TypedDict):
    """One agent's answer; items best first."""

    agent_id: str
    domain_id: str
    items: list[ItemDocument]
    latency_ms: float
    total_searched: Annotated[int, Field(description="chunks that were searched, after filters")]
    retrieval: Annotated[dict[str, SourceState], Field(description="retrieval source → how it went")]
    generation: str
    indexed_at: str
    notices: Annotated[list[str], Field(description="what could not be done as requested, and why")]
    expansions: Annotated[list[str], Field(description="variants of the query that were searched beside it")]
    calibrated: Annotated[bool, Field(description="the scores compare with those of other agents that say so")]


def recall_document(response: RecallResponse) -> RecallDocument:
    """Return one agent's answer."""
    return {
        "agent_id": response.agent_id,
        "domain_id": response.domain_id,
        "items": [item_document(item) for item in response.items],
        "latency_ms": round(response.latency_ms, 3),
        "total_searched": response.total_searched,
        "retrieval": dict(response.retrieval),
        "generation": response.generation,
        "indexed_at": response.indexed_at,
        "notices": list(response.notices),
        "expansions": list(response.expansions),
        "calibrated": response.calibrated,
    }


def item_document(item: RecallItem) -> ItemDocument:
    """Return an item of one agent."""
    explained = item.explanation
    signals = {**explained.contributions, **explained.bonuses} if explained else {}
    document: ItemDocument = {
        "chunk_id": item.chunk_id,
        "content": item.content,
        "score": {"value": item.score, "signals": signals},
        "citation": citation_document(item.citation),
        "sources": {name: {"rank": source.rank, "score": source.score} for name, source in item.sources.items()},
        "rerank_score": item.rerank_score,
        "metadata": dict(item.metadata),
    }
    if explained:
        document["explanation"] = _explanation(explained)
    return document


def citation_document(citation: Citation) -> CitationDocument:
    """Return where something stands."""
    return {
        "domain_id": citation.domain_id,
        "source_id": citation.source_id,
        "source_path": citation.source_path,
        "timestamp": moment_text(citation.timestamp),
        "line_range": list(citation.line_range) if citation.line_range else None,
        "char_range": list(citation.char_range),
        "page": citation.page,
        "section": citation.section,
        "message_ids": list(citation.message_ids) if citation.message_ids else None,
        "url": citation.url,
        "title": citation.title,
        "revision": citation.revision,
        "stale": citation.stale,
        "agent_id": citation.agent_id,
        "verified_at": moment_text(citation.verified_at),
    }


def _explanation(explanation: Explanation) -> ExplanationDocument:
    return {
        "weights": dict(explanation.weights),
        "contributions": dict(explanation.contributions),
        "combined": explanation.combined,
        "bonuses": dict(explanation.bonuses),
        "model_score": explanation.model_score,
    }


def moment_text(moment: datetime | None) -> str | None:
    """Return a moment as ISO 8601 with its zone, ``Z`` for UTC."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None
