"""The ports of the store: its records, the writer and the store itself.

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
    from nornweave.index.query_map import QueryMap

Vectors = NDArray[np.float32]
Scores = NDArray[np.float32]
"""One score per chunk, by chunk number; higher is better, 0 is nothing found."""
Numbers = NDArray[np.int32]
Tokens: TypeAlias = Sequence[bytes] | None
"""The token vectors of each of some texts (``models/encoders/tokens.py``), if they have any."""
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
        gate: the entry's gate when it was looked at last.
        content_hash: of the stored version; ``None`` when nothing is stored.
        pipeline: versions and settings that it was chunked with.
        outcome: of the last attempt, which saw this gate with this pipeline; an older version may be stored.
        reason: why the last attempt stored nothing.
        failed_hash: of the content that the last attempt saw and did not store, as far as it could be read.
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
    """The number of a source's documents with one pipeline in the manifest, and of the stored ones.

    Attributes:
        past: the number of commits and releases, whose removal needs no confirmation.
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
        content_hash: of what was looked at; ``None`` if it could not be read.
        outcome: ``failed`` until it changes, ``transient`` until the next sync, ``skipped`` on purpose.
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
    """Changes to store together: all or none."""

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
    """The event of one publication; lists hold ``source_id/path``."""

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
    """The one writer of a domain. It holds the domain's lock."""

    def manifest(self, within: Mapping[str, Within | None] | None = None) -> Mapping[tuple[str, str], Stored]:
        """Return the entry of every document, by source id and path.

        Args:
            within: paths by source id; ``None`` for all documents of a source, or of all sources.
        """

    def tally(self) -> tuple[Tally, ...]:
        """Count the documents of the manifest by source and pipeline."""

    def apply(self, batch: Batch) -> None:
        """Store a batch in one transaction. It also removes the documents' old chunks."""

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        """Give chunks of an older pipeline vector keys of this one.

        These chunks belong to documents that could not be read again. A generation must not mix vectors of two
        encoders.
        """

    def pending_texts(self, window: int) -> Iterator[tuple[PendingText, ...]]:
        """Yield the texts without a vector, longest first, in windows."""

    def pending_count(self, *, of_chunks: bool = False) -> int:
        """Count the distinct texts without a vector, of chunks and what describes settings, or of chunks alone."""

    def add_vectors(self, keys: Sequence[str], vectors: Vectors, tokens: Tokens = None) -> None:
        """Store vectors of shape ``(len(keys), dimensions)`` under their keys, in one transaction."""

    def failures(self) -> tuple[Failure, ...]:
        """Return the failed documents by source and path."""

    def skips(self) -> tuple[Failure, ...]:
        """Return the documents that were read and skipped on purpose, by source and path."""

    def counts(self) -> Counts:
        """Count everything for reconciliation. This reads every key."""

    def size(self) -> tuple[int, int]:
        """Count the stored documents and their chunks."""

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        """Tell whether a generation built now, with these facts, would differ from the last publication."""

    def current(self) -> GenerationId | None:
        """Return the published generation."""

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build a generation that readers do not see yet.

        Args:
            facts: how the generation was made (encoder, analyzer, versions); stored in it for readers.
        """

    def publish(self, candidate: Candidate) -> Publication:
        """Point readers at the candidate, atomically, and remove old generations."""

    def discard(self, candidate: Candidate) -> None:
        """Remove a candidate that must not be published."""

    def publish_map(self, query_map: QueryMap | None, run_id: str) -> GenerationId | None:
        """Publish the same documents with this query map (``None``: without one); later generations keep it.

        Returns:
            The new generation; ``None`` if nothing was done, because a sync is due or an older generation is published.
        """

    def write_again(self, deleted: Deleted) -> bool:
        """Publish the generation again without a deleted document's remains in its files.

        If a sync is due, nothing is done: the sync does it.

        Returns:
            Whether something was published.
        """

    def remains(self, deleted: Deleted) -> Mapping[Remains, int]:
        """Count a document's remains by kind."""

    def erase(self, deleted: Deleted) -> None:
        """Remove a document's remains and overwrite deleted rows. A sync removes its current rows."""


class Store(Protocol):
    """One domain's storage."""

    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> AbstractContextManager[Writer]:
        """Open the domain for writing.

        Raises:
            DomainBusyError: another process still writes it after ``wait_s`` seconds; the message says which.
        """

    def current(self) -> GenerationId | None:
        """Return the published generation, or ``None``."""

    def generations(self) -> tuple[GenerationId, ...]:
        """Return the generations that can be served, oldest first."""

    def published_facts(self) -> Mapping[str, str]:
        """Return the versions behind the published generation; empty if it cannot be read."""

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        """Publish an older generation: the named one, else the one before the current.

        Raises:
            NoGenerationError: there is no such generation.
        """
