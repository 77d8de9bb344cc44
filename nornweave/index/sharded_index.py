"""The shards of a generation as one index: they answer as one file with all their documents would.

Chunk numbers are those of the one file. A shard numbers its chunks by source, path and place as well, so the map from
its numbers to these ascends: what is in order in a shard stays so. A score depends on three things that a shard cannot
know (chunks, their average length, which terms are frequent); each shard is told those of the whole.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nornweave.config import Bm25Settings
from nornweave.core.access.rules import Statement
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import StoreError
from nornweave.core.types import document_id
from nornweave.index.access_today import AccessToday
from nornweave.index.arrays import ArrayWriter, open_arrays
from nornweave.index.completing import Completion, merged_completions
from nornweave.index.conditions import Condition
from nornweave.index.counting import ServedDocument, StatedDocument
from nornweave.index.finding import FoundLines, LinePattern, merged_lines
from nornweave.index.generation import Shard, open_shard
from nornweave.index.index import Index
from nornweave.index.inverted import DEFAULT_BM25, NO_LENGTHS, FrequentTerms, Lengths
from nornweave.index.manifest import Manifest, shard_of
from nornweave.index.numbering import Numbering
from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.ranked_chunks import Hits, best
from nornweave.index.records import StoredChunk, StoredText
from nornweave.index.samples import ChunkPlace, IndexedDocument
from nornweave.index.value_counts import UnreadValues, ValueCounts, count_values, unread_values

T = TypeVar("T")
K = TypeVar("K", int, str)

COMPLETIONS_BEYOND = 200


class Shards:
    """Several files as somebody may see them; implements what ``Index`` asks of one file.

    Dense retrieval scores more candidates in full than one file would, so it may find what that misses.
    """

    def __init__(self, shards: Sequence[Shard], numbering: Numbering | None = None) -> None:
        """Store the shards, each with the lengths of the whole; their numbering is made unless it is there.

        Raises:
            StoreError: a shard cannot be read.
        """
        self.shards = tuple(shards)
        self.numbering = numbering or Numbering(shards)
        self.size = sum(shard.size for shard in shards)
        self.chunk_count = sum(shard.chunk_count for shard in shards)
        self.search = ShardedSearch(self)
        self.texts = ShardedTexts(self)
        self.counts = ShardedCounts(self)
        parts = [shard.part for shard in shards]
        self.part = b"".join(len(part).to_bytes(4, "big") + part for part in parts) if any(parts) else b""

    @property
    def document_count(self) -> int:
        """Count the documents that have chunks and may be seen."""
        if self.part:
            return sum(shard.document_count for shard in self.shards)
        return int(self.numbering.of_chunks[-1]) + 1 if self.size else 0

    @property
    def restricted_documents(self) -> int:
        """Count the documents that somebody without groups may not see."""
        return sum(shard.restricted_documents for shard in self.shards)

    def seen_by(self, viewer: Viewer) -> Shards:
        """Return the shards as a viewer may see them; themselves when they see everything."""
        if all(shard.seen_by(viewer) is shard for shard in self.shards):
            return self
        visible = [shard.part_of(viewer) for shard in self.shards]
        lengths = (part.lengths(shard.opened.mapped.terms) for part, shard in zip(visible, self.shards, strict=True))
        corpus = sum(lengths, NO_LENGTHS)
        seen = [Shard(shard.opened, corpus, part) for part, shard in zip(visible, self.shards, strict=True)]
        return Shards(seen, self.numbering)

    def numbered(self) -> Iterator[tuple[Numbers, Shard]]:
        """Yield each shard with the numbers that its chunks have in the whole."""
        return zip(self.numbering.chunks, self.shards, strict=True)

    def scattered(self, scores_of: Callable[[Shard], Scores]) -> Scores:
        """Return a score for every chunk."""
        scores = np.zeros(self.size, np.float32)
        for numbers, shard in self.numbered():
            scores[numbers] = scores_of(shard)
        return scores

    def merged(self, chunks_of: Callable[[Shard], Numbers]) -> Numbers:
        """Return the chunks of all shards, ascending."""
        return np.sort(np.concatenate([numbers[chunks_of(shard)] for numbers, shard in self.numbered()]))

    def gathered(
        self, numbers: Numbers, rows_of: Callable[[Shard, Numbers], NDArray[np.float32]], shape: tuple[int, ...] = ()
    ) -> NDArray[np.float32]:
        """Return a row for each of some chunks, in their order."""
        rows = np.zeros((len(numbers), *shape), np.float32)
        for number, shard in enumerate(self.shards):
            places, own = self.numbering.chunks_of(number, numbers)
            if len(places):
                rows[places] = rows_of(shard, own)
        return rows

    def looked_up(self, numbers: Numbers, values_of: Callable[[Shard, Numbers], Mapping[int, T]]) -> dict[int, T]:
        """Return what shards know of some chunks, by number, in their order."""
        values: dict[int, T] = {}
        for number, (of_shard, shard) in enumerate(self.numbered()):
            _, own = self.numbering.chunks_of(number, numbers)
            if len(own):
                values |= {int(of_shard[one]): value for one, value in values_of(shard, own).items()}
        return {number: values[number] for number in numbers.tolist() if number in values}


class ShardedSearch:
    """The scores of all shards."""

    def __init__(self, shards: Shards) -> None:
        self._all = shards
        self._corpus = shards.shards[0].corpus
        self._frequent = FrequentTerms(shards.chunk_count, shards.size)

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        hits = [
            (numbers, shard.search.dense(query, k, None if within is None else within[numbers]))
            for numbers, shard in self._all.numbered()
        ]
        return best(
            np.concatenate([hit.scores for _, hit in hits]),
            k,
            np.concatenate([numbers[hit.numbers] for numbers, hit in hits]),
        )

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        return self._all.gathered(numbers, lambda shard, own: shard.search.similarities(query, own))

    def vectors(self, numbers: Numbers) -> Vectors:
        dimensions = int(self._all.shards[0].opened.file.meta["dimensions"])
        return self._all.gathered(numbers, lambda shard, own: shard.search.vectors(own), (dimensions,))

    def token_matches(self, tokens: NDArray[np.int8], numbers: Numbers) -> Scores:
        return self._all.gathered(numbers, lambda shard, own: shard.search.token_matches(tokens, own), (len(tokens),))

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        wanted = list(terms)
        held = [shard.search.document_frequencies(wanted) for shard in self._all.shards]
        return {term: sum(frequencies[term] for frequencies in held) for term in wanted}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        frequencies = self.document_frequencies(weights)
        frequent = {term for term, frequency in frequencies.items() if self._frequent.is_frequent(frequency)}
        return self._all.scattered(lambda shard: shard.search.sparse_with(weights, frequent, document_share, bm25))

    def term_weights(self, term: str, numbers: Numbers, bm25: Bm25Settings) -> Scores:
        return self._all.gathered(numbers, lambda shard, own: shard.search.term_weights(term, own, bm25))

    def average_length(self, bm25: Bm25Settings) -> float:
        return self._corpus.average(bm25)

    def paired(self, pairs: Iterable[int]) -> dict[int, Numbers]:
        wanted = list(dict.fromkeys(pairs))
        return self._held(wanted, lambda shard: shard.search.paired(wanted))

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        wanted = list(dict.fromkeys(keys))
        return self._held(wanted, lambda shard: shard.search.named(wanted))

    def _held(self, keys: Sequence[K], chunks_of: Callable[[Shard], Mapping[K, Numbers]]) -> dict[K, Numbers]:
        parts = [(numbers, chunks_of(shard)) for numbers, shard in self._all.numbered()]
        held = {key: [numbers[part[key]] for numbers, part in parts if key in part] for key in keys}
        return {key: np.sort(np.concatenate(chunks)) for key, chunks in held.items() if chunks}

    def named_nearly(self, field: str, word: str) -> Numbers:
        return self._all.merged(lambda shard: shard.search.named_nearly(field, word))

    def holding(self, terms: Iterable[str]) -> Numbers:
        wanted = list(terms)
        return self._all.merged(lambda shard: shard.search.holding(wanted))


class ShardedCounts:
    """The filters and values of all shards."""

    def __init__(self, shards: Shards) -> None:
        self._all = shards

    def within(self, conditions: Sequence[Condition]) -> Mask:
        mask = np.zeros(self._all.size, np.bool_)
        for numbers, shard in self._all.numbered():
            mask[numbers] = shard.counts.within(conditions)
        return mask

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        read = [(numbers, *shard.counts.field_values(field, type_)) for numbers, shard in self._all.numbered()]
        holding = [row for row in read if len(row[2])] or read[:1]  # an empty column has no type
        values = np.concatenate([values for _, values, _ in holding])
        chunks = np.concatenate([numbers[own] for numbers, _, own in holding])
        return count_values((values, chunks), type_, self._all.numbering.of_chunks, limit, self._within_seen(within))

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        rows = sorted(
            (int(documents[number]), path, said, problem)
            for documents, shard in zip(self._all.numbering.documents, self._all.shards, strict=True)
            for number, path, said, problem in shard.counts.unread_rows(field)
        )
        return unread_values(rows, self._all.numbering.of_chunks, limit, self._within_seen(within))

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        pages = [
            shard.counts.served_documents(after, limit, None if within is None else within[numbers])
            for numbers, shard in self._all.numbered()
        ]
        return list(islice(heapq.merge(*pages, key=attrgetter("source_id", "path")), limit))

    def stated_documents(self, keys: Sequence[str]) -> list[StatedDocument]:
        pages = [shard.counts.stated_documents(keys) for shard in self._all.shards]
        return list(heapq.merge(*pages, key=attrgetter("source_id", "path")))

    def _within_seen(self, within: Mask | None) -> Mask | None:
        """Return which chunks may be found, without those that may not be seen; ``None`` for all."""
        if not self._all.part:
            return within
        seen = self.within(())
        return seen if within is None else seen & within


class ShardedTexts:
    """The texts of all shards."""

    def __init__(self, shards: Shards) -> None:
        self._all = shards
        self._texts = [shard.texts for shard in shards.shards]

    def sees_document(self, document_no: int) -> bool:
        shard, number = self._all.numbering.document(document_no)
        return self._texts[shard].sees_document(number)

    def sources_of(self, path: str) -> tuple[str, ...]:
        return tuple(sorted({source for texts in self._texts for source in texts.sources_of(path)}))

    def contents(self, numbers: Numbers) -> dict[int, str]:
        return self._all.looked_up(numbers, lambda shard, own: shard.texts.contents(own))

    def containing(self, text: str, k: int) -> Numbers:
        return self._all.merged(lambda shard: shard.texts.containing(text, k))[:k]

    def find(self, pattern: LinePattern, limit: int, deadline: float, within: Mask | None = None) -> FoundLines:
        found = [
            shard.texts.find(pattern, limit, deadline, None if within is None else within[numbers])
            for numbers, shard in self._all.numbered()
        ]
        return merged_lines(found, limit)

    def complete(self, typed: str, limit: int) -> list[Completion]:
        # What is rare in one file may be frequent in the others: each is asked for more than is shown.
        return merged_completions((texts.complete(typed, limit + COMPLETIONS_BEYOND) for texts in self._texts), limit)

    def paths(self) -> Collection[str]:
        return [path for texts in self._texts for path in texts.paths()]

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        return set().union(*(texts.seen_places(places) for texts in self._texts))

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        chunks = self._all.looked_up(np.asarray(numbers, np.int32), lambda shard, own: shard.texts.chunks(own))
        return {number: replace(chunk, chunk_no=number) for number, chunk in chunks.items()}

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        for numbers, shard in self._all.numbered():
            if chunk := shard.texts.chunk(chunk_id):
                return replace(chunk, chunk_no=int(numbers[chunk.chunk_no]))
        return None

    def document(self, source_id: str, path: str) -> StoredText | None:
        number = shard_of(document_id(source_id, path), len(self._texts))
        return self._texts[number].document(source_id, path)

    def chunk_places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        counts = Counter(path for texts in self._texts for path in texts.document_places()["path"].to_pylist())
        places = [
            replace(place, chunk_no=int(numbers[place.chunk_no]), document_no=int(documents[place.document_no]))
            for (numbers, shard), documents in zip(self._all.numbered(), self._all.numbering.documents, strict=True)
            for place in shard.texts.chunk_places(holding)
            if counts[place.path] == 1
        ]
        return sorted(places, key=attrgetter("chunk_no"))

    def document_texts(self, documents: Iterable[int]) -> dict[int, str]:
        wanted = [(number, *self._all.numbering.document(number)) for number in sorted(set(map(int, documents)))]
        texts = [
            reader.document_texts(own for _, held, own in wanted if held == place)
            for place, reader in enumerate(self._texts)
        ]
        return {number: texts[shard][own] for number, shard, own in wanted if own in texts[shard]}

    def indexed_documents(self, path: str) -> tuple[IndexedDocument, ...]:
        documents = [
            replace(indexed, chunks=tuple((int(numbers[number]), chunk) for number, chunk in indexed.chunks))
            for numbers, shard in self._all.numbered()
            for indexed in shard.texts.indexed_documents(path)
        ]
        return tuple(sorted(documents, key=lambda indexed: indexed.document.source_id))


def open_shards(
    file: Path,
    files: Sequence[Path],
    manifest: Manifest,
    statements: Mapping[str, Statement],
    today: AccessToday | None = None,
) -> Index:
    """Open the files of a manifest as one index.

    Raises:
        StoreError: a file is missing, damaged, of another schema, or not the one that the manifest means.
    """
    with ExitStack() as stack:
        corpus = manifest.lengths
        shards = [open_shard(stack, one, statements, corpus, today=today) for one in files]
        for one, shard, told in zip(files, shards, manifest.shards, strict=True):
            if shard.opened.mapped.terms.own != Lengths(told.chunks, told.terms):
                raise StoreError(f"{one}: is not the file that {manifest.generation} was published with; roll back")
        weights = open_arrays(file, f"{manifest.generation} {manifest.built_at}", partial(_write_weights, shards))
        for number, shard in enumerate(shards):
            shard.opened.use_weights(weights[f"{number}"])
        meta = {**shards[0].opened.file.meta, "generation": manifest.generation, "built_at": manifest.built_at}
        return Index(meta, Shards(shards), stack.pop_all())


def _write_weights(shards: Sequence[Shard], arrays: ArrayWriter) -> None:
    for number, shard in enumerate(shards):
        shard.opened.write_weights(f"{number}", arrays)
