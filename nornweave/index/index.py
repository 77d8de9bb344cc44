"""The port of a published index: what a query reads, whichever store holds it.

Chunks have numbers from 0, in the order of source, path and place in the document; an index never changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

from nornweave.config import Bm25Settings
from nornweave.core.access.viewer import Viewer
from nornweave.core.types import ChunkId, DocumentId, Fact, Metadata, freeze
from nornweave.index.conditions import Condition
from nornweave.index.inverted import DEFAULT_BM25
from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.ranked_chunks import Hits
from nornweave.index.samples import ChunkPlace, IndexedDocument
from nornweave.index.served_documents import ServedDocument
from nornweave.index.value_counts import UnreadValues, ValueCounts


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
        """Return the document of a row: title, format, updated_at, revision, url, stale, metadata, text, chunk ids."""
        title, kind, updated_at, revision, url, stale, metadata, text, chunk_ids = row
        return cls(
            title=title,
            format=kind,
            updated_at=updated_at,
            revision=revision,
            url=url,
            stale=stale,
            metadata=freeze(json.loads(metadata)),
            text=text,
            chunk_ids=tuple(chunk_ids or ()),
        )


class Index(Protocol):
    """One domain's published index, open for reading from several threads.

    Raises:
        StoreError: from every method, when what was published cannot be read.
    """

    meta: Mapping[str, str]
    """How it was built: generation, encoder, versions, settings."""
    size: int
    """Chunk numbers are below this, for every viewer."""

    @property
    def built_at(self) -> str:
        """Return the time of its build, ISO 8601, UTC."""

    @property
    def chunk_count(self) -> int:
        """Count the chunks that there are for who asks; their numbers are below ``size``."""

    @property
    def document_count(self) -> int:
        """Count the documents that have chunks and may be seen."""

    @property
    def restricted_documents(self) -> int:
        """Count the documents that somebody without groups may not see."""

    @property
    def part(self) -> bytes:
        """Tell the part that may be seen from other parts; empty for everything."""

    def seen_by(self, viewer: Viewer) -> Self:
        """Return the generation as a viewer may see it: as if the rest had never been there.

        The view shares everything with the generation, has to be done with before that is closed, and is not to be
        closed itself.
        """

    def sees_document(self, document_no: int) -> bool:
        """Tell whether a document may be seen."""

    def close(self) -> None:
        """Close the file."""

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        """Return the ``k`` chunks of highest cosine similarity, in [-1, 1].

        Args:
            query: normalised vector of shape ``(dimensions,)``.
            k: how many.
            within: which chunks may be found; the answer is exact then.
        """

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order."""

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks from memory, in their order, of shape ``(len(numbers), dimensions)``."""

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Count the chunks that hold each term."""

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        """Return ``Σ weight(term) · tf(term, chunk)`` for every chunk: BM25 when the weights are the terms' idf.

        Args:
            weights: term → what it counts for.
            document_share: in [0, 1]; this share of a term's part comes from where the chunk's document says it best,
                so that a passage of a document about the subject need not repeat the subject.
            bm25: ``k1``, ``b``, and what a term counts for in each field.

        Raises:
            StoreError: the generation cannot be read.
        """

    def term_weights(self, term: str, numbers: Numbers, bm25: Bm25Settings) -> Scores:
        """Return what a term counts for in some chunks before idf, in their order."""

    def average_length(self, bm25: Bm25Settings) -> float:
        """Return the mean length of the chunks that may be seen, their fields weighted."""

    def paired(self, weights: Mapping[int, float]) -> Scores:
        """Return ``Σ weight(pair)`` over the word pairs that each chunk holds."""

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        """Return the chunks that can be looked up by each key; keys that none has are left out."""

    def holding(self, terms: Iterable[str]) -> Numbers:
        """Return the chunks that hold all of the terms, ascending."""

    def within(self, conditions: Sequence[Condition]) -> Mask:
        """Return which chunks meet all conditions."""

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        """Count the values that documents have in the column of a filter, those of the chunks ``within`` alone."""

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        """Return the values that are not of the type which their filter declares."""

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        """Return the first documents after a source and a path, by both; those with a chunk ``within`` alone."""

    def sources_of(self, path: str) -> tuple[str, ...]:
        """Return the sources that have a document of this path."""

    def contents(self, numbers: Numbers) -> dict[int, str]:
        """Return the texts of chunks, by number."""

    def containing(self, text: str, k: int) -> Numbers:
        """Return the first ``k`` chunks that contain ``text``, without regard to case; reads every text."""

    def paths(self) -> Collection[str]:
        """Return the source-relative path of every document."""

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the documents among some, by source id and path, that are there and may be seen."""

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        """Return chunks with their documents' facts, by number."""

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        """Return a chunk by its id."""

    def document(self, source_id: str, path: str) -> StoredText | None:
        """Return a document by its place."""

    def chunk_places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        """List chunks in order, those of documents whose path no other source of the domain has as well.

        Judgments name a document by its path alone; where two have the same, nobody could say which is meant.

        Args:
            holding: only chunks that hold one of these strings; none stands for all.
        """

    def document_texts(self, documents: Iterable[int]) -> dict[int, str]:
        """Return the texts of documents, by number."""

    def indexed_documents(self, path: str) -> tuple[IndexedDocument, ...]:
        """Return the documents at a path, one for each source that has it, with everything that was indexed of them.

        Claims are not part of it.
        """


class OpenIndex(Index, Protocol):
    """An index that was opened; a context manager, to be closed by who opened it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
