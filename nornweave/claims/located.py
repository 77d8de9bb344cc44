"""A claim with where it stands: what the ledger compares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nornweave.types import ChunkId, Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedClaim:
    """A claim with its place and the time of its document; ``line_range`` only where lines are what one cites."""

    claim: Claim
    chunk_id: ChunkId
    source_id: str
    path: str
    line_range: tuple[int, int] | None
    updated_at: datetime | None
