"""Ranked items for tests of what comes after ranking."""

from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from nornweave.ask.fuse.records import FusedItem
from nornweave.ask.search.records import Citation, RecallItem
from nornweave.core.types import ChunkId, freeze

NO_SIGNALS = MappingProxyType({"score": 0.5})


def citation(domain: str = "code", path: str = "src/a.py", **stated: Any) -> Citation:
    """Cite a place; what is not stated is unknown."""
    unknown: dict[str, Any] = {
        "source_id": "payments",
        "timestamp": datetime(2026, 1, 20, 10, tzinfo=UTC),
        "line_range": None,
        "char_range": (0, 0),
        "page": None,
        "section": None,
        "message_ids": None,
        "url": None,
        "title": None,
        "revision": None,
        "stale": False,
    }
    return Citation(domain_id=domain, source_path=path, **{**unknown, **stated})


def ranked(
    chunk_id: str,
    content: str,
    *,
    domain: str = "code",
    score: float = 0.5,
    cited: Citation | None = None,
    metadata: dict[str, Any] | None = None,
    **stated: Any,
) -> FusedItem:
    """Make an item in its final place, as stage 5 hands it on."""
    item = RecallItem(
        chunk_id=ChunkId(chunk_id),
        content=content,
        score=score,
        citation=cited or citation(domain, f"{domain}/{chunk_id}"),
        sources={},
        metadata=freeze(metadata or {}),
    )
    return FusedItem(
        item=item, agent=f"{domain}-memory", domain=domain, relevance=score, score=score, signals=NO_SIGNALS, **stated
    )


def identify(items: tuple[FusedItem, ...] | list[FusedItem]) -> list[str]:
    """Return the chunk ids in order."""
    return [item.chunk_id for item in items]
