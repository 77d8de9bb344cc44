"""Chunks and documents as a generation keeps them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from nornweave.core.types import ChunkId, DocumentId, Fact, Metadata, freeze


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk as a generation keeps it, with its document's facts."""

    chunk_no: int
    chunk_id: ChunkId
    document_id: DocumentId
    content: str
    source_id: str
    path: str
    title: str | None
    section: str | None
    page: int | None
    char_range: tuple[int, int]
    line_range: tuple[int, int]
    message_ids: tuple[str, ...]
    updated_at: datetime | None
    revision: str | None
    url: str | None
    stale: bool
    metadata: Metadata
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A document as a generation keeps it, with the ids of its chunks in order."""

    title: str | None
    format: str
    updated_at: datetime | None
    revision: str | None
    url: str | None
    stale: bool
    metadata: Metadata
    text: str
    chunk_ids: tuple[ChunkId, ...]

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """Return the document of a row, which has its fields in their order."""
        values = dict(zip(cls.__slots__, row, strict=True))
        metadata, chunk_ids = freeze(json.loads(values["metadata"])), tuple(values["chunk_ids"] or ())
        return cls(**{**values, "metadata": metadata, "chunk_ids": chunk_ids})
