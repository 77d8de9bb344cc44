"""The ports of the store: its records, ranked chunks as arrays, the writer and the store itself.

A ``Writer`` is the one writer of a domain: it holds the domain's lock from opening to closing. Whatever it stores
becomes visible to readers only through ``build`` and ``publish``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.access import EVERYBODY, Rule
from nornweave.core.deletion import Deleted
from nornweave.core.files.paths import Within
from nornweave.core.types import Document, DocumentId, GenerationId
from nornweave.index.records import IndexedChunk

if TYPE_CHECKING:
    from nornweave.index.manifest import QueryMap

Vectors = NDArray[np.float32]
Scores = NDArray[np.float32]
"""One score per chunk, by chunk number; higher is better, 0 is nothing found."""
Numbers = NDArray[np.int32]
Tokens: TypeAlias = Sequence[bytes] | None
"""The token vectors of each of some texts (``models/encoders/port.py``), if they have any."""
Mask = NDArray[np.bool_]
"""Which chunks may be found, by chunk number."""


Unstored: TypeAlias = Literal["failed", "transient", "skipped"]
Outcome: TypeAlias = Literal["stored"] | Unstored


@dataclass(frozen=True, slots=True)
class Failure:
    """A document that could not be ingested."""

    path: str
    reason: str
    source_id: str = ""
    stale: bool = False
    """An older version of it keeps answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The manifest's entry for a document that was stored or failed.

    Attributes:
        gate: the entry's gate at the last attempt to read the document.
        content_hash: the hash of the stored version; ``None`` if nothing is stored.
        pipeline: a digest of the versions and settings of the last attempt.
        outcome: the outcome of the last attempt. If it is not ``stored``, an older version may be stored.
        reason: why the last attempt stored nothing; empty if it stored the document.
        failed_hash: the hash of the content that the last attempt did not store; ``None`` if it could not be read.
    """

    document_id: DocumentId
    source_id: str
    path: str
    gate: str
    content_hash: str | None
    pipeline: str
    outcome: Outcome = "stored"
    reason: str = ""
    failed_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of the documents in the manifest that have the same source and pipeline.

    Attributes:
        known: the number of these documents.
        stored: how many of them are stored.
        past: how many of them are commits or releases. The removal of such a document needs no confirmation.
    """

    source_id: str
    pipeline: str
    known: int
    stored: int
    past: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document and its chunks, to be stored in the working file."""

    document: Document
    gate: str
    pipeline: str
    chunks: tuple[IndexedChunk, ...]
    access: Rule = EVERYBODY
    """What is stated about the document itself; that of its source is known when a generation is built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStored:
    """A document that was read but not stored, to be recorded in the working file.

    Attributes:
        content_hash: the hash of the content; ``None`` if it could not be read.
        outcome: ``failed`` (tried again when it changes), ``transient`` (tried again at the next sync) or ``skipped``
            (left out on purpose).
    """

    document_id: DocumentId
    source_id: str
    path: str
    gate: str
    pipeline: str
    content_hash: str | None = None
    reason: str
    outcome: Unstored


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Changes to store in one transaction, all or none."""

    stored: tuple[StoredDocument, ...] = ()
    not_stored: tuple[NotStored, ...] = ()
    removed: tuple[DocumentId, ...] = ()
    touched: tuple[tuple[DocumentId, str], ...] = ()
    """Documents that were looked at and are the same: id and new gate."""

    def __bool__(self) -> bool:
        return bool(self.stored or self.not_stored or self.removed or self.touched)


@dataclass(frozen=True, slots=True)
class PendingText:
    """A text without a vector."""

    embedding_key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Sizes of the working file, for reconciliation and reports."""

    documents: int
    failed: int
    stale: int
    """Documents that failed and answer with an older version."""
    skipped: int
    chunks: int
    tokens: int
    texts: int
    """Distinct embedded texts."""
    missing_vectors: int
    """Distinct embedded texts without a vector."""
    orphan_chunks: int
    duplicate_chunk_ids: int
    duplicate_documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationCounts:
    """Sizes of a generation file."""

    documents: int
    chunks: int
    vectors: int
    indexed_chunks: int
    """Chunks that the BM25 tables can find, plus those without a single term."""
    orphans: int
    """Vectors, postings or chunks that belong to nothing."""
    terms: tuple[int, ...] = ()
    """Of all chunks together, in each field; of a file alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The event of one publication. Documents are named ``source_id/path``."""

    generation: GenerationId
    run_id: str
    created_at: datetime
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A built and checked generation that is not published."""

    generation: GenerationId
    counts: GenerationCounts
    vector_index: Literal["exact", "hnsw"]
    size_bytes: int
    publication: Publication
    facts: Mapping[str, str]


class Remains(StrEnum):
    """The kinds of remains of a document in a domain's own files."""

    ROWS = "working rows"
    VECTORS = "vectors that no text uses"
    EVENTS = "events of publications"
    DELETED = "deleted rows that are not overwritten"


class Writer(Protocol):
    """The only writer of a domain. It holds the domain's lock."""

    def manifest(self, within: Mapping[str, Within | None] | None = None) -> Mapping[tuple[str, str], Stored]:
        """Return the entry of every document, by source id and path.

        Args:
            within: source id → the paths to return; ``None`` for all documents of this source. If ``within`` itself is
                ``None``, return the documents of all sources.
        """

    def tally(self) -> tuple[Tally, ...]:
        """Count the documents of the manifest by source and pipeline."""

    def apply(self, batch: Batch) -> None:
        """Store a batch in one transaction. It also removes the documents' old chunks."""

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        """Give the chunks that were made with another pipeline new vector keys from ``key_of``.

        These chunks belong to documents that could not be read again. They need vectors of the current encoder, because
        a generation must not mix vectors of two encoders.

        Args:
            pipelines: the current pipelines.
            key_of: returns the vector key of an embedded text.
        """

    def pending_texts(self, window: int) -> Iterator[tuple[PendingText, ...]]:
        """Yield the texts without a vector, longest first, ``window`` at a time."""

    def pending_count(self, *, of_chunks: bool = False) -> int:
        """Count distinct texts without a vector: of chunks and, unless ``of_chunks``, of descriptions of settings."""

    def add_vectors(self, keys: Sequence[str], vectors: Vectors, tokens: Tokens = None) -> None:
        """Store vectors of shape ``(len(keys), dimensions)`` under their keys, in one transaction.

        ``tokens`` has the token vectors of each text; ``None`` if the encoder makes none.
        """

    def failures(self) -> tuple[Failure, ...]:
        """Return the failed documents by source and path."""

    def skips(self) -> tuple[Failure, ...]:
        """Return the documents that were read and skipped on purpose, by source and path."""

    def counts(self) -> Counts:
        """Count everything for reconciliation. This takes long, because it reads every key."""

    def size(self) -> tuple[int, int]:
        """Count the stored documents and their chunks."""

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        """Tell whether a generation built now, with these facts, would differ from the last publication."""

    def current(self) -> GenerationId | None:
        """Return the published generation; ``None`` if nothing is published."""

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build a generation that readers do not see yet.

        Args:
            run_id: the run that builds the generation. The event of its publication names the run.
            facts: how the generation is made (encoder, analyzer, versions). Readers find them in its metadata.
        """

    def publish(self, candidate: Candidate) -> Publication:
        """Point readers at the candidate, atomically, and remove old generations."""

    def discard(self, candidate: Candidate) -> None:
        """Remove a candidate that must not be published."""

    def publish_map(self, query_map: QueryMap | None, run_id: str) -> GenerationId | None:
        """Publish the same documents with this query map, or without one for ``None``. Later generations keep the map.

        Returns:
            The new generation; ``None`` if nothing was done, because a sync is due or an older generation is published.
        """

    def write_again(self, deleted: Deleted) -> bool:
        """Publish the generation again without a deleted document's remains in its files.

        If a sync is due, nothing is done, because the sync removes the remains.

        Returns:
            Whether a generation was published.
        """

    def remains(self, deleted: Deleted) -> Mapping[Remains, int]:
        """Count a document's remains by kind."""

    def erase(self, deleted: Deleted) -> None:
        """Overwrite what earlier versions of a deleted document left on disk. A sync removes its current rows."""


class Store(Protocol):
    """One domain's storage."""

    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> AbstractContextManager[Writer]:
        """Open the domain for writing.

        Raises:
            DomainBusyError: another process still writes it after ``wait_s`` seconds. The message says which process.
        """

    def current(self) -> GenerationId | None:
        """Return the published generation; ``None`` if nothing was published yet."""

    def generations(self) -> tuple[GenerationId, ...]:
        """Return the generations that can be served, oldest first."""

    def published_facts(self) -> Mapping[str, str]:
        """Return how the published generation was made: part → version; empty if it cannot be read."""

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        """Publish an older generation and return it: ``generation``, or for ``None`` the one before the current one.

        Raises:
            NoGenerationError: there is no such generation.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Chunks from a retriever, best first. Equal scores are ordered by chunk number. Higher scores are better."""

    numbers: Numbers
    scores: Scores

    def __len__(self) -> int:
        return len(self.numbers)


NO_HITS = Hits(np.empty(0, np.int32), np.empty(0, np.float32))


def best(scores: Scores, k: int, numbers: Numbers | None = None) -> Hits:
    """Return the ``k`` highest scores. Equal scores are ordered by chunk number, which also decides which are cut off.

    Args:
        scores: one score per chunk.
        numbers: the chunk number of each score. By default it is the position of the score.
    """
    k = min(k, len(scores))
    if k <= 0:
        return NO_HITS
    lowest = np.partition(scores, len(scores) - k)[len(scores) - k] if k < len(scores) else -np.inf
    positions = np.flatnonzero(scores >= lowest)
    chosen = positions if numbers is None else numbers[positions]
    order = np.lexsort((chosen, -scores[positions]))[:k]
    return Hits(chosen[order].astype(np.int32), scores[positions[order]])


def found(scores: Scores, k: int) -> Hits:
    """Return the ``k`` highest scores above 0. Equal scores are ordered by chunk number."""
    positive = np.flatnonzero(scores > 0)
    if len(positive) > max(k, len(scores) // 2):
        return best(scores, k)  # none of which is 0
    return best(scores[positive], k, positive.astype(np.int32))
