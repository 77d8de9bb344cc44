"""A published index: what a query reads, whichever store holds it and however many files it is in.

Chunks have numbers from 0, in the order of source, path and place in the document; an index never changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from nornweave.config import Bm25Settings
from nornweave.core.access.viewer import Viewer
from nornweave.index.completing import Completion
from nornweave.index.conditions import Condition
from nornweave.index.counting import ServedDocument, StatedDocument
from nornweave.index.finding import FoundLines, LinePattern
from nornweave.index.inverted import DEFAULT_BM25
from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.ranked_chunks import Hits
from nornweave.index.records import StoredChunk, StoredText
from nornweave.index.samples import ChunkPlace, IndexedDocument
from nornweave.index.value_counts import UnreadValues, ValueCounts

if TYPE_CHECKING:
    from nornweave.index.generation import Shard
    from nornweave.index.sharded_index import Shards


class Index:
    """One domain's published index, open for reading from several threads; a context manager.

    Raises:
        StoreError: from every method, when what was published cannot be read.
    """

    def __init__(self, meta: Mapping[str, str], parts: Shard | Shards, resources: ExitStack) -> None:
        """Store the parts.

        Args:
            meta: how it was built: generation, encoder, versions, settings.
            parts: what searches, reads and counts, as somebody may see it.
            resources: closes the files.
        """
        self.meta = meta
        self.size = parts.size
        """Chunk numbers are below this, for every viewer."""
        self._parts = parts
        self._resources = resources

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def built_at(self) -> str:
        """Return the time of its build, ISO 8601, UTC."""
        return self.meta["built_at"].replace("+00:00", "Z")

    @property
    def chunk_count(self) -> int:
        """Count the chunks that there are for who asks; their numbers are below ``size``."""
        return self._parts.chunk_count

    @property
    def document_count(self) -> int:
        """Count the documents that have chunks and may be seen."""
        return self._parts.document_count

    @property
    def restricted_documents(self) -> int:
        """Count the documents that somebody without groups may not see."""
        return self._parts.restricted_documents

    @property
    def part(self) -> bytes:
        """Tell the part that may be seen from other parts; empty for everything."""
        return self._parts.part

    def seen_by(self, viewer: Viewer) -> Index:
        """Return the generation as a viewer may see it: as if the rest had never been there.

        The view shares everything with the generation, has to be done with before that is closed, and is not to be
        closed itself.
        """
        parts = self._parts.seen_by(viewer)
        return self if parts is self._parts else Index(self.meta, parts, ExitStack())

    def sees_document(self, document_no: int) -> bool:
        """Tell whether a document may be seen."""
        return self._parts.texts.sees_document(document_no)

    def close(self) -> None:
        """Close its files."""
        self._resources.close()

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        """Return the ``k`` chunks of highest cosine similarity, in [-1, 1].

        Args:
            query: normalised vector of shape ``(dimensions,)``.
            k: how many.
            within: which chunks may be found; the answer is exact then.
        """
        return self._parts.search.dense(query, k, within)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order."""
        return self._parts.search.similarities(query, numbers)

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks from memory, in their order, of shape ``(len(numbers), dimensions)``."""
        return self._parts.search.vectors(numbers)

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Count the chunks that hold each term."""
        return self._parts.search.document_frequencies(terms)

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
        return self._parts.search.sparse(weights, document_share, bm25)

    def term_weights(self, term: str, numbers: Numbers, bm25: Bm25Settings) -> Scores:
        """Return what a term counts for in some chunks before idf, in their order."""
        return self._parts.search.term_weights(term, numbers, bm25)

    def average_length(self, bm25: Bm25Settings) -> float:
        """Return the mean length of the chunks that may be seen, their fields weighted."""
        return self._parts.search.average_length(bm25)

    def paired(self, pairs: Iterable[int]) -> dict[int, Numbers]:
        """Return the chunks that hold each word pair, ascending; pairs that none holds are left out."""
        return self._parts.search.paired(pairs)

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        """Return the chunks that can be looked up by each key; keys that none has are left out."""
        return self._parts.search.named(keys)

    def named_nearly(self, field: str, word: str) -> Numbers:
        """Return the chunks with a key of the field that one edit parts from ``word``, ascending."""
        return self._parts.search.named_nearly(field, word)

    def holding(self, terms: Iterable[str]) -> Numbers:
        """Return the chunks that hold all of the terms, ascending."""
        return self._parts.search.holding(terms)

    def within(self, conditions: Sequence[Condition]) -> Mask:
        """Return which chunks meet all conditions."""
        return self._parts.counts.within(conditions)

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        """Count the values that documents have in the column of a filter, those of the chunks ``within`` alone."""
        return self._parts.counts.value_counts(field, type_, limit, within)

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        """Return the values that are not of the type which their filter declares."""
        return self._parts.counts.unread_values(field, limit, within)

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        """Return the first documents after a source and a path, by both; those with a chunk ``within`` alone."""
        return self._parts.counts.served_documents(after, limit, within)

    def stated_documents(self, keys: Sequence[str]) -> list[StatedDocument]:
        """Return the documents with statements of who may see them or with one of the keys, whoever may see them."""
        return self._parts.counts.stated_documents(keys)

    def sources_of(self, path: str) -> tuple[str, ...]:
        """Return the sources that have a document of this path."""
        return self._parts.texts.sources_of(path)

    def contents(self, numbers: Numbers) -> dict[int, str]:
        """Return the texts of chunks, by number."""
        return self._parts.texts.contents(numbers)

    def containing(self, text: str, k: int) -> Numbers:
        """Return the first ``k`` chunks that contain ``text``, without regard to case; reads every text."""
        return self._parts.texts.containing(text, k)

    def complete(self, typed: str, limit: int) -> list[Completion]:
        """Return names, paths, headings and channels that go on with what was typed; see ``completing.complete``."""
        return self._parts.texts.complete(typed, limit)

    def find(self, pattern: LinePattern, limit: int, deadline: float, within: Mask | None = None) -> FoundLines:
        """Return the first lines that match, of documents with a chunk ``within``; raises as ``find_lines``."""
        return self._parts.texts.find(pattern, limit, deadline, within)

    def paths(self) -> Collection[str]:
        """Return the source-relative path of every document."""
        return self._parts.texts.paths()

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the documents among some, by source id and path, that are there and may be seen."""
        return self._parts.texts.seen_places(places)

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        """Return chunks with their documents' facts, by number."""
        return self._parts.texts.chunks(numbers)

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        """Return a chunk by its id."""
        return self._parts.texts.chunk(chunk_id)

    def document(self, source_id: str, path: str) -> StoredText | None:
        """Return a document by its place."""
        return self._parts.texts.document(source_id, path)

    def chunk_places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        """List chunks in order, those of documents whose path no other source of the domain has as well.

        Judgments name a document by its path alone; where two have the same, nobody could say which is meant.

        Args:
            holding: only chunks that hold one of these strings; none stands for all.
        """
        return self._parts.texts.chunk_places(holding)

    def document_texts(self, documents: Iterable[int]) -> dict[int, str]:
        """Return the texts of documents, by number."""
        return self._parts.texts.document_texts(documents)

    def indexed_documents(self, path: str) -> tuple[IndexedDocument, ...]:
        """Return the documents at a path, one for each source that has it, with everything that was indexed of them.

        Claims are not part of it.
        """
        return self._parts.texts.indexed_documents(path)
