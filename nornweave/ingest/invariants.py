"""Checks before publication: listed = stored + failed, vectors = chunks = index, no orphans."""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.index.port import Counts, GenerationCounts
from nornweave.ingest.diff import Changes

INVARIANTS = {
    "documents_accounted_for": "Every document that is listed is stored, failed with a reason, or left out on purpose.",
    "texts_embedded": "Every text has its vector.",
    "no_orphan_chunks": "Every chunk belongs to a document.",
    "ids_unique": "No id is used twice.",
    "generation_complete": "Every stored chunk is in the candidate generation.",
    "vectors_match_chunks": "The candidate generation has one vector per chunk.",
    "index_matches_chunks": "The BM25 tables of the candidate generation find every chunk.",
    "no_orphans_in_generation": "No row of the candidate generation belongs to nothing.",
}
"""Name → what it means."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """Two numbers that must be equal; ``name`` is one of ``INVARIANTS``."""

    name: str
    found: int
    expected: int

    @property
    def holds(self) -> bool:
        """Tell whether the numbers are equal."""
        return self.found == self.expected

    def __str__(self) -> str:
        return f"{self.name}: found {self.found}, expected {self.expected} ({INVARIANTS[self.name].rstrip('.')})"


def reconcile(changes: Changes, working: Counts, generation: GenerationCounts | None) -> tuple[Invariant, ...]:
    """Return all invariants in the order of ``INVARIANTS``. Without a generation, its invariants are left out."""
    accounted = working.documents + working.failed - working.stale + working.skipped
    invariants = (
        Invariant("documents_accounted_for", accounted, changes.listed),
        Invariant("texts_embedded", working.texts - working.missing_vectors, working.texts),
        Invariant("no_orphan_chunks", working.orphan_chunks, 0),
        Invariant("ids_unique", working.duplicate_chunk_ids + working.duplicate_documents, 0),
    )
    if generation is None:
        return invariants
    return (
        *invariants,
        Invariant("generation_complete", generation.chunks, working.chunks),
        Invariant("vectors_match_chunks", generation.vectors, generation.chunks),
        Invariant("index_matches_chunks", generation.indexed_chunks, generation.chunks),
        Invariant("no_orphans_in_generation", generation.orphans, 0),
    )
