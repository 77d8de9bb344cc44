"""One index over the shards of a generation: it answers as one file with all their documents would.

Chunk numbers are those of the one file. A shard numbers its chunks by source, path and place as well, so the map from
its numbers to these ascends: what is in order in a shard stays so. A score depends on three things that a shard cannot
know (chunks, their average length, which terms are frequent); each shard is told those of the whole.
"""

from __future__ import annotations

import copy
import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.config import Bm25Settings
from nornweave.core.access.rules import Statement
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import StoreError
from nornweave.core.types import document_id
from nornweave.index.arrays import ArrayWriter, open_arrays
from nornweave.index.conditions import Condition
from nornweave.index.generation import Generation
from nornweave.index.index import StoredChunk, StoredText
from nornweave.index.inverted import DEFAULT_BM25, NO_LENGTHS, FrequentTerms, Lengths
from nornweave.index.manifest import Manifest, shard_of
from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.ranked_chunks import Hits, best
from nornweave.index.samples import ChunkPlace, IndexedDocument
from nornweave.index.served_documents import ServedDocument
from nornweave.index.value_counts import UnreadValues, ValueCounts, count_values, unread_values

T = TypeVar("T")


class Numbering:
    """Which chunk and document of the whole is which of a shard.

    Attributes:
        chunks: of each shard, the number in the whole of each of its chunks.
        documents: the same of documents.
        of_chunks: the document of each chunk, in the whole.
    """

    def __init__(self, shards: Sequence[Generation]) -> None:
        tables = [shard.document_places() for shard in shards]
        places = pa.concat_tables(tables)
        order = places.append_column("row", pa.array(np.arange(len(places)))).sort_by(
            [("source_id", "ascending"), ("path", "ascending")]
        )
        numbers = np.empty(len(places), np.int32)
        numbers[order["row"].to_numpy()] = np.arange(len(places), dtype=np.int32)
        self.documents: list[Numbers] = np.split(numbers, np.cumsum([len(table) for table in tables])[:-1])
        of_shards = [self.documents[number][shard.chunk_documents] for number, shard in enumerate(shards)]
        # Chunks of one document are in one shard, in order: a stable sort by document numbers them.
        joined = np.concatenate(of_shards)
        by_document = np.argsort(joined, kind="stable")
        ranks = np.empty(len(joined), np.int32)
        ranks[by_document] = np.arange(len(joined), dtype=np.int32)
        self.chunks: list[Numbers] = np.split(ranks, np.cumsum([shard.size for shard in shards])[:-1])
        self.of_chunks: Numbers = joined[by_document]
        self._chunk_shards, self._chunk_locals = _reversed(self.chunks)
        self._document_shards, self._document_locals = _reversed(self.documents)

    def chunks_of(self, shard: int, numbers: Numbers) -> tuple[NDArray[np.int64], Numbers]:
        """Return which of some chunks are in a shard, and their numbers there."""
        places = np.flatnonzero(self._chunk_shards[numbers] == shard)
        return places, self._chunk_locals[numbers[places]]

    def document(self, number: int) -> tuple[int, int]:
        """Return the shard of a document, and its number there."""
        return int(self._document_shards[number]), int(self._document_locals[number])


class ShardedIndex:
    """Several files, open for reading as one index; a context manager, safe to use from several threads.

    Dense retrieval scores more candidates in full than one file would, so it may find what that misses.
    """

    def __init__(self, shards: Sequence[Generation], meta: Mapping[str, str], resources: ExitStack) -> None:
        """Store the shards.

        Args:
            shards: open, each with the lengths of the whole.
            meta: how the generation was built.
            resources: closes the shards.

        Raises:
            StoreError: a shard cannot be read.
        """
        self.meta = meta
        self.size = sum(shard.size for shard in shards)
        self._shards = tuple(shards)
        self._resources = resources
        self._numbering = Numbering(shards)
        self._frequent = FrequentTerms(self.size, self.size)
        self._corpus = sum((shard.lengths for shard in shards), NO_LENGTHS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._resources.close()

    @property
    def built_at(self) -> str:
        """Return the time of its build, ISO 8601, UTC."""
        return self.meta["built_at"].replace("+00:00", "Z")

    @property
    def chunk_count(self) -> int:
        """Count the chunks that there are for who asks; their numbers are below ``size``."""
        return sum(shard.chunk_count for shard in self._shards)

    @property
    def document_count(self) -> int:
        """Count the documents that have chunks and may be seen."""
        if self.part:
            return sum(shard.document_count for shard in self._shards)
        return int(self._numbering.of_chunks[-1]) + 1 if self.size else 0

    @property
    def restricted_documents(self) -> int:
        """Count the documents that somebody without groups may not see."""
        return sum(shard.restricted_documents for shard in self._shards)

    @property
    def part(self) -> bytes:
        """Tell the part that may be seen from other parts; empty for everything."""
        parts = [shard.part for shard in self._shards]
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts) if any(parts) else b""

    def seen_by(self, viewer: Viewer) -> Self:
        """Return the generation as a viewer may see it: as if the rest had never been there."""
        if all(shard.seen_by(viewer) is shard for shard in self._shards):
            return self
        corpus: Lengths = sum((shard.lengths_for(viewer) for shard in self._shards), NO_LENGTHS)
        view = copy.copy(self)
        view._shards = tuple(shard.shard_seen_by(viewer, corpus) for shard in self._shards)
        view._frequent = FrequentTerms(corpus.chunks, self.size)
        view._corpus = corpus
        return view

    def sees_document(self, document_no: int) -> bool:
        """Tell whether a document may be seen."""
        shard, number = self._numbering.document(document_no)
        return self._shards[shard].sees_document(number)

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        """Return the ``k`` chunks of highest cosine similarity, in [-1, 1]."""
        hits = [
            (numbers, shard.dense(query, k, None if within is None else within[numbers]))
            for numbers, shard in self._numbered()
        ]
        return best(
            np.concatenate([hit.scores for _, hit in hits]),
            k,
            np.concatenate([numbers[hit.numbers] for numbers, hit in hits]),
        )

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order."""
        return self._gathered(numbers, lambda shard, own: shard.similarities(query, own))

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks from memory, in their order, of shape ``(len(numbers), dimensions)``."""
        return self._gathered(numbers, lambda shard, own: shard.vectors(own), (int(self.meta["dimensions"]),))

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Count the chunks that hold each term."""
        wanted = list(terms)
        held = [shard.document_frequencies(wanted) for shard in self._shards]
        return {term: sum(frequencies[term] for frequencies in held) for term in wanted}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        """Return ``Σ weight(term) · tf(term, chunk)`` for every chunk: BM25 when the weights are the terms' idf."""
        frequencies = self.document_frequencies(weights)
        frequent = {term for term, frequency in frequencies.items() if self._frequent.is_frequent(frequency)}
        return self._scattered(lambda shard: shard.sparse_with(weights, frequent, document_share, bm25))

    def term_weights(self, term: str, numbers: Numbers, bm25: Bm25Settings) -> Scores:
        """Return what a term counts for in some chunks before idf, in their order."""
        return self._gathered(numbers, lambda shard, own: shard.term_weights(term, own, bm25))

    def average_length(self, bm25: Bm25Settings) -> float:
        """Return the mean length of the chunks that may be seen, their fields weighted."""
        return self._corpus.average(bm25)

    def paired(self, weights: Mapping[int, float]) -> Scores:
        """Return ``Σ weight(pair)`` over the word pairs that each chunk holds."""
        return self._scattered(lambda shard: shard.paired(weights))

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        """Return the chunks that can be looked up by each key; keys that none has are left out."""
        wanted = list(dict.fromkeys(keys))
        held = [(numbers, shard.named(wanted)) for numbers, shard in self._numbered()]
        found = {key: [numbers[chunks[key]] for numbers, chunks in held if key in chunks] for key in wanted}
        return {key: np.sort(np.concatenate(chunks)) for key, chunks in found.items() if chunks}

    def holding(self, terms: Iterable[str]) -> Numbers:
        """Return the chunks that hold all of the terms, ascending."""
        wanted = list(terms)
        return self._merged(lambda shard: shard.holding(wanted))

    def within(self, conditions: Sequence[Condition]) -> Mask:
        """Return which chunks meet all conditions."""
        mask = np.zeros(self.size, np.bool_)
        for numbers, shard in self._numbered():
            mask[numbers] = shard.within(conditions)
        return mask

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        """Count the values that documents have in the column of a filter, those of the chunks ``within`` alone."""
        found = [(numbers, *shard.field_values(field, type_)) for numbers, shard in self._numbered()]
        holds = [one for one in found if len(one[2])] or found[:1]  # an empty column has no type
        values = np.concatenate([values for _, values, _ in holds])
        chunks = np.concatenate([numbers[own] for numbers, _, own in holds])
        return count_values((values, chunks), type_, self._numbering.of_chunks, limit, self._within_seen(within))

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        """Return the values that are not of the type which their filter declares."""
        rows = sorted(
            (int(documents[number]), path, said, problem)
            for documents, shard in zip(self._numbering.documents, self._shards, strict=True)
            for number, path, said, problem in shard.unread_rows(field)
        )
        return unread_values(rows, self._numbering.of_chunks, limit, self._within_seen(within))

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        """Return the first documents after a source and a path, by both; those with a chunk ``within`` alone."""
        pages = [
            shard.served_documents(after, limit, None if within is None else within[numbers])
            for numbers, shard in self._numbered()
        ]
        return list(islice(heapq.merge(*pages, key=attrgetter("source_id", "path")), limit))

    def sources_of(self, path: str) -> tuple[str, ...]:
        """Return the sources that have a document of this path."""
        return tuple(sorted({source for shard in self._shards for source in shard.sources_of(path)}))

    def contents(self, numbers: Numbers) -> dict[int, str]:
        """Return the texts of chunks, by number."""
        return self._looked_up(numbers, lambda shard, own: shard.contents(own))

    def containing(self, text: str, k: int) -> Numbers:
        """Return the first ``k`` chunks that contain ``text``, without regard to case; reads every text."""
        return self._merged(lambda shard: shard.containing(text, k))[:k]

    def paths(self) -> Collection[str]:
        """Return the source-relative path of every document."""
        return [path for shard in self._shards for path in shard.paths()]

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the documents among some, by source id and path, that are there and may be seen."""
        return set().union(*(shard.seen_places(places) for shard in self._shards))

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        """Return chunks with their documents' facts, by number."""
        found = self._looked_up(np.asarray(numbers, np.int32), lambda shard, own: shard.chunks(own))
        return {number: replace(chunk, chunk_no=number) for number, chunk in found.items()}

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        """Return a chunk by its id."""
        for numbers, shard in self._numbered():
            if chunk := shard.chunk(chunk_id):
                return replace(chunk, chunk_no=int(numbers[chunk.chunk_no]))
        return None

    def document(self, source_id: str, path: str) -> StoredText | None:
        """Return a document by its place."""
        number = shard_of(document_id(source_id, path), len(self._shards))
        return self._shards[number].document(source_id, path)

    def chunk_places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        """List chunks in order, those of documents whose path no other source of the domain has as well."""
        counts = Counter(path for shard in self._shards for path in shard.document_places()["path"].to_pylist())
        places = [
            replace(one, chunk_no=int(numbers[one.chunk_no]), document_no=int(documents[one.document_no]))
            for (numbers, shard), documents in zip(self._numbered(), self._numbering.documents, strict=True)
            for one in shard.chunk_places(holding)
            if counts[one.path] == 1
        ]
        return sorted(places, key=attrgetter("chunk_no"))

    def document_texts(self, documents: Iterable[int]) -> dict[int, str]:
        """Return the texts of documents, by number."""
        wanted = [(number, *self._numbering.document(number)) for number in sorted(set(map(int, documents)))]
        texts = [
            shard.document_texts(own for _, held, own in wanted if held == place)
            for place, shard in enumerate(self._shards)
        ]
        return {number: texts[shard][own] for number, shard, own in wanted if own in texts[shard]}

    def indexed_documents(self, path: str) -> tuple[IndexedDocument, ...]:
        """Return the documents at a path, one for each source that has it, with everything that was indexed of them."""
        found = [
            replace(one, chunks=tuple((int(numbers[number]), chunk) for number, chunk in one.chunks))
            for numbers, shard in self._numbered()
            for one in shard.indexed_documents(path)
        ]
        return tuple(sorted(found, key=lambda one: one.document.source_id))

    def _numbered(self) -> Iterator[tuple[Numbers, Generation]]:
        return zip(self._numbering.chunks, self._shards, strict=True)

    def _within_seen(self, within: Mask | None) -> Mask | None:
        """Return which chunks may be found, without those that may not be seen; ``None`` for all."""
        if not self.part:
            return within
        seen = self.within(())
        return seen if within is None else seen & within

    def _scattered(self, scores_of: Callable[[Generation], Scores]) -> Scores:
        scores = np.zeros(self.size, np.float32)
        for numbers, shard in self._numbered():
            scores[numbers] = scores_of(shard)
        return scores

    def _merged(self, chunks_of: Callable[[Generation], Numbers]) -> Numbers:
        return np.sort(np.concatenate([numbers[chunks_of(shard)] for numbers, shard in self._numbered()]))

    def _gathered(
        self,
        numbers: Numbers,
        rows_of: Callable[[Generation, Numbers], NDArray[np.float32]],
        shape: tuple[int, ...] = (),
    ) -> NDArray[np.float32]:
        """Return a row for each of some chunks, in their order."""
        rows = np.zeros((len(numbers), *shape), np.float32)
        for number, shard in enumerate(self._shards):
            places, own = self._numbering.chunks_of(number, numbers)
            if len(places):
                rows[places] = rows_of(shard, own)
        return rows

    def _looked_up(self, numbers: Numbers, values_of: Callable[[Generation, Numbers], Mapping[int, T]]) -> dict[int, T]:
        """Return what shards know of some chunks, by number, in their order."""
        found: dict[int, T] = {}
        for shard, (of_shard, generation) in enumerate(self._numbered()):
            _, own = self._numbering.chunks_of(shard, numbers)
            if len(own):
                found |= {int(of_shard[number]): value for number, value in values_of(generation, own).items()}
        return {number: found[number] for number in numbers.tolist() if number in found}


def _reversed(numbers: Sequence[Numbers]) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Return the shard of each number of the whole, and the number there."""
    size = sum(map(len, numbers))
    shards, locals_ = np.zeros(size, np.uint16), np.zeros(size, np.int32)
    for shard, of_shard in enumerate(numbers):
        shards[of_shard] = shard
        locals_[of_shard] = np.arange(len(of_shard), dtype=np.int32)
    return shards, locals_


def open_shards(
    file: Path, files: Sequence[Path], manifest: Manifest, statements: Mapping[str, Statement]
) -> ShardedIndex:
    """Open the files of a manifest as one index.

    Args:
        file: of the manifest. What terms count for in the whole is kept beside it, which every process maps.
        files: one for each shard.
        manifest: of the generation.
        statements: what the configuration says now about who may see each source, beside what the files say.

    Raises:
        StoreError: a file is missing, damaged, of another schema, or not the one that the manifest means.
    """
    with ExitStack() as stack:
        corpus = manifest.lengths
        shards = [stack.enter_context(Generation(one, statements, corpus)) for one in files]
        for one, shard, told in zip(files, shards, manifest.shards, strict=True):
            if shard.lengths != Lengths(told.chunks, told.terms):
                raise StoreError(f"{one}: is not the file that {manifest.generation} was published with; roll back")
        weights = open_arrays(file, f"{manifest.generation} {manifest.built_at}", partial(_write_weights, shards))
        for number, shard in enumerate(shards):
            shard.use_weights(weights[f"{number}"])
        meta = {**shards[0].meta, "generation": manifest.generation, "built_at": manifest.built_at}
        return ShardedIndex(shards, meta, stack.pop_all())


def _write_weights(shards: Sequence[Generation], arrays: ArrayWriter) -> None:
    for number, shard in enumerate(shards):
        shard.write_weights(f"{number}", arrays)
