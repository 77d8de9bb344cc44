"""Items and answers of any agent, with as little said as a test needs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import ranked_items

from nornweave.ask.fuse.records import FusedItem
from nornweave.ask.search.records import Citation, RecallItem, RecallResponse
from nornweave.core.types import ChunkId, Fact, freeze


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def citation(domain: str = "code", path: str = "a.py", written: str | None = None, **more: Any) -> Citation:
    moment = day(written) if written else None
    return ranked_items.citation(domain, path, **{"source_id": "source", "timestamp": moment, **more})


def item(
    chunk_id: str,
    content: str = "some words about something",
    score: float = 0.5,
    *,
    domain: str = "code",
    path: str = "a.py",
    written: str | None = None,
    facts: tuple[Fact, ...] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> RecallItem:
    return RecallItem(
        chunk_id=ChunkId(chunk_id),
        content=content,
        score=score,
        citation=citation(domain, path, written),
        sources={},
        metadata=freeze(metadata or {}),
        facts=facts,
    )


def response(
    domain: str, *items: RecallItem, agent: str | None = None, searched: int = 0, calibrated: bool = False
) -> RecallResponse:
    return RecallResponse(
        agent_id=agent or f"{domain}-memory",
        domain_id=domain,
        generation="gen-000001",
        indexed_at="2026-01-23T00:00:00Z",
        items=items,
        retrieval={},
        total_searched=searched,
        latency_ms=1.0,
        calibrated=calibrated,
    )


def fused(one: RecallItem, score: float | None = None, *, calibrated: bool = False) -> FusedItem:
    return FusedItem(
        item=one,
        agent=f"{one.citation.domain_id}-memory",
        domain=one.citation.domain_id,
        relevance=one.score if score is None else score,
        calibrated=calibrated,
        facts=one.facts or (),
    )
