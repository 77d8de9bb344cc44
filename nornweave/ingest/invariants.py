"""What must hold before anything is published: listed = stored + failed, vectors = chunks = index, no orphans."""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.index.port import Counts, GenerationCounts
from nornweave.ingest.diff import Changes


@dataclass(frozen=True, slots=True)
class Invariant:
    """Two numbers that must be equal.

    Attributes:
        name: one of ``INVARIANTS``.
    """

    name: str
    found: int
    expected: int
    meaning: str

    @property
    def holds(self) -> bool:
        """Return whether they are equal."""
        return self.found == self.expected

    def __str__(self) -> str:
        return f"{self.name}: found {self.found}, expected {self.expected} ({self.meaning})"


INVARIANTS = (
    "documents_accounted_for",
    "texts_embedded",
    "no_orphan_chunks",
    "ids_unique",
    "generation_complete",
    "vectors_match_chunks",
    "index_matches_chunks",
    "no_orphans_in_generation",
)


def reconcile(changes: Changes, working: Counts, generation: GenerationCounts | None) -> tuple[Invariant, ...]:
    """Return every invariant, in the order of ``INVARIANTS``; those of the generation only when there is one."""
    accounted = working.documents + working.failed - working.stale + working.skipped
    invariants = (
        Invariant("documents_accounted_for", accounted, changes.listed, "stored + failed + skipped = listed + kept"),
        Invariant(
            "texts_embedded", working.texts - working.missing_vectors, working.texts, "every text has its vector"
        ),
        Invariant("no_orphan_chunks", working.orphan_chunks, 0, "every chunk belongs to a document"),
        Invariant("ids_unique", working.duplicate_chunk_ids + working.duplicate_documents, 0, "one row per id"),
    )
    if generation is None:
        return invariants
    return (
        *invariants,
        Invariant("generation_complete", generation.chunks, working.chunks, "every stored chunk is in the generation"),
        Invariant("vectors_match_chunks", generation.vectors, generation.chunks, "one vector per chunk"),
        Invariant(
            "index_matches_chunks", generation.indexed_chunks, generation.chunks, "every chunk is in the BM25 tables"
        ),
        Invariant("no_orphans_in_generation", generation.orphans, 0, "no row belongs to nothing"),
    )
