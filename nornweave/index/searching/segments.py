"""The segments of a generation as one index. It answers as one file with the same documents would.

Chunk numbers are those of the one file, and what is gone has none. A segment numbers its chunks by source, path and
place as well, so the map from its numbers to these ascends: what is in order in a segment stays so. A score depends on
three things that a segment cannot know (chunks, their average length, which terms are frequent); each segment is told
those of the whole.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.config import Bm25Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import StoreError
from nornweave.index.index import Index
from nornweave.index.manifest import Manifest
from nornweave.index.port import Hits, Mask, Numbers, Scores, Vectors, best
from nornweave.index.records import StoredChunk, StoredText
from nornweave.index.searching.conditions import Condition
from nornweave.index.searching.counting import (
    RuledDocument,
    ServedDocument,
    StatedDocument,
    UnreadValues,
    ValueCounts,
    count_values,
    unread_values,
)
from nornweave.index.searching.finding import (
    Completion,
    FoundLines,
    LinePattern,
    WordTexts,
    merged_completions,
    merged_lines,
    merged_texts,
)
from nornweave.index.searching.generation import OpenFile, Segment
from nornweave.index.searching.generation_file import ChunkPlace, IndexedDocument
from nornweave.index.searching.inverted import DEFAULT_BM25, NO_LENGTHS, FrequentTerms, Lengths
from nornweave.index.searching.visibility import Visible


class Numbering:
    """The global numbers of each segment's chunks and documents. Gone chunks and documents have no global number.

    Attributes:
        chunks: for each segment, the global number of each of its chunks; ``size`` for a gone chunk.
        documents: the same for documents.
        of_chunks: global chunk number → global document number.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        tables = [segment.texts.document_places() for segment in segments]
        live = [
            np.ones(len(table), np.bool_) if segment.live is None else segment.live
            for table, segment in zip(tables, segments, strict=True)
        ]
        rows = np.flatnonzero(np.concatenate(live))
        order = (
            pa.concat_tables(tables)
            .take(rows)
            .append_column("row", pa.array(rows))
            .sort_by([("source_id", "ascending"), ("path", "ascending")])
        )
        self.document_count = len(rows)
        numbers = np.full(sum(map(len, tables)), self.document_count, np.int32)
        numbers[order["row"].to_numpy()] = np.arange(len(rows), dtype=np.int32)
        self.documents: list[Numbers] = _divided(numbers, tables)
        files = [segment.opened.file for segment in segments]
        # Chunks of one document are in one segment, in order: a stable sort by document numbers them, gone ones last.
        joined = np.concatenate([of[file.documents] for of, file in zip(self.documents, files, strict=True)])
        by_document = np.argsort(joined, kind="stable")
        self.size = int(np.count_nonzero(joined < self.document_count))
        ranks = np.empty(len(joined), np.int32)
        ranks[by_document] = np.minimum(np.arange(len(joined), dtype=np.int32), self.size)
        self.chunks: list[Numbers] = _divided(ranks, [file.documents for file in files])
        self.of_chunks: Numbers = joined[by_document][: self.size]
        self._chunk_segments, self._chunk_locals = _locate_numbers(self.chunks, self.size)
        self._document_segments, self._document_locals = _locate_numbers(self.documents, self.document_count)

    def chunks_of(self, segment: int, numbers: Numbers) -> tuple[NDArray[np.int64], Numbers]:
        """Return the positions in ``numbers`` of the chunks that are in a segment, and their numbers in the segment."""
        places = np.flatnonzero(self._chunk_segments[numbers] == segment)
        return places, self._chunk_locals[numbers[places]]

    def document(self, number: int) -> tuple[int, int]:
        """Return the segment of a document, and the number of the document in the segment."""
        return int(self._document_segments[number]), int(self._document_locals[number])

    def divided(self, within: Mask | None) -> list[Mask | None]:
        """Return each segment's part of a mask; ``None`` for each segment if the mask is ``None``."""
        if within is None:
            return [None] * len(self.chunks)
        padded = np.append(within, False)
        return [padded[numbers] for numbers in self.chunks]


def _divided(values: Numbers, like: Sequence[pa.Table] | Sequence[Numbers]) -> list[Numbers]:
    return np.split(values, np.cumsum([len(each) for each in like])[:-1])


def _locate_numbers(numbers: Sequence[Numbers], size: int) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Return, for each global number, its segment and its number in the segment."""
    segments, locals_ = np.zeros(size, np.uint16), np.zeros(size, np.int32)
    for segment, of_segment in enumerate(numbers):
        own = np.flatnonzero(of_segment < size).astype(np.int32)
        segments[of_segment[own]] = segment
        locals_[of_segment[own]] = own
    return segments, locals_


T = TypeVar("T")
K = TypeVar("K", int, str)

COMPLETIONS_BEYOND = 200


class Segments:
    """Several index files as one, as far as a viewer may see them. It implements the operations of ``Index``.

    Each file scores its own candidates exactly. So dense retrieval over several files may find more than over one.
    """

    def __init__(self, segments: Sequence[Segment], numbering: Numbering | None = None) -> None:
        """Store the segments, each with the lengths of its visible chunks. Without ``numbering``, make it.

        Raises:
            StoreError: a segment cannot be read.
        """
        self.segments = tuple(segments)
        self.numbering = numbering or Numbering(segments)
        self.size = self.numbering.size
        self.chunk_count = sum(segment.chunk_count for segment in segments)
        self.search = SegmentedSearch(self)
        self.texts = SegmentedTexts(self)
        self.counts = SegmentedCounts(self)
        parts = [segment.part for segment in segments]
        self.part = b"".join(len(part).to_bytes(4, "big") + part for part in parts) if any(parts) else b""

    @property
    def document_count(self) -> int:
        """Count the visible documents that have chunks."""
        if self.part:
            return sum(segment.document_count for segment in self.segments)
        return int(self.numbering.of_chunks[-1]) + 1 if self.size else 0

    @property
    def restricted_documents(self) -> int:
        """Count the documents that are not open to everybody."""
        return sum(segment.restricted_documents for segment in self.segments)

    def ruled_documents(self, path: str) -> list[RuledDocument]:
        """Return the documents that ``path`` names, as ``Segment.ruled_documents``, by source and path."""
        pages = [segment.ruled_documents(path) for segment in self.segments]
        return list(heapq.merge(*pages, key=attrgetter("source_id", "path")))

    def seen_by(self, viewer: Viewer) -> Segments:
        """Return a viewer's view, or the segments themselves if they see everything."""
        if all(segment.opened.visibilities.of(viewer) is segment.visible for segment in self.segments):
            return self
        return self._showing([segment.opened.visibilities.part_of(viewer) for segment in self.segments])

    def without(self, key: str) -> Segments:
        """Return a view without the documents that have a lookup key, or the segments themselves if there are none."""
        visible = [segment.but_for(key) for segment in self.segments]
        if all(segment.visible is part for segment, part in zip(self.segments, visible, strict=True)):
            return self
        return self._showing(visible)

    def _showing(self, visible: Sequence[Visible | None]) -> Segments:
        return Segments(with_lengths([segment.opened for segment in self.segments], visible), self.numbering)

    def numbered(self) -> Iterator[tuple[Numbers, Segment]]:
        """Yield each segment with its chunks' global numbers."""
        return zip(self.numbering.chunks, self.segments, strict=True)

    def divided(self, within: Mask | None) -> Iterator[tuple[Mask | None, Numbers, Segment]]:
        """Yield for each segment its part of a mask (``None`` for ``None``), its chunks' global numbers, and itself."""
        parts = self.numbering.divided(within)
        return ((own, numbers, one) for own, (numbers, one) in zip(parts, self.numbered(), strict=True))

    def scatter(self, scores_of: Callable[[Segment], Scores]) -> Scores:
        """Return a score for every global chunk. ``scores_of`` returns the scores of the chunks of a segment."""
        scores = np.zeros(self.size + 1, np.float32)  # the last place is for gone chunks
        for numbers, segment in self.numbered():
            scores[numbers] = scores_of(segment)
        return scores[:-1]

    def merged(self, chunks_of: Callable[[Segment], Numbers]) -> Numbers:
        """Return the chunks that ``chunks_of`` returns for all segments, as ascending global numbers."""
        return np.sort(np.concatenate([numbers[chunks_of(segment)] for numbers, segment in self.numbered()]))

    def gather(
        self, numbers: Numbers, rows_of: Callable[[Segment, Numbers], NDArray[np.float32]], shape: tuple[int, ...] = ()
    ) -> NDArray[np.float32]:
        """Return one row for each of ``numbers``, in order. ``rows_of`` returns the rows of chunks of one segment."""
        rows = np.zeros((len(numbers), *shape), np.float32)
        for number, segment in enumerate(self.segments):
            places, own = self.numbering.chunks_of(number, numbers)
            if len(places):
                rows[places] = rows_of(segment, own)
        return rows

    def look_up(self, numbers: Numbers, values_of: Callable[[Segment, Numbers], Mapping[int, T]]) -> dict[int, T]:
        """Return global number → value for some chunks, in their order. Unknown chunks are left out."""
        values: dict[int, T] = {}
        for number, (of_segment, segment) in enumerate(self.numbered()):
            _, own = self.numbering.chunks_of(number, numbers)
            if len(own):
                values |= {int(of_segment[one]): value for one, value in values_of(segment, own).items()}
        return {number: values[number] for number in numbers.tolist() if number in values}


class SegmentedSearch:
    """Searches all segments of a generation as one index."""

    def __init__(self, segments: Segments) -> None:
        self._all = segments
        self._corpus = segments.segments[0].corpus
        self._frequent = FrequentTerms(segments.chunk_count, segments.size)

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        hits = [(numbers, segment.search.dense(query, k, own)) for own, numbers, segment in self._all.divided(within)]
        return best(
            np.concatenate([hit.scores for _, hit in hits]),
            k,
            np.concatenate([numbers[hit.numbers] for numbers, hit in hits]),
        )

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        return self._all.gather(numbers, lambda segment, own: segment.search.similarities(query, own))

    def vectors(self, numbers: Numbers) -> Vectors:
        dimensions = int(self._all.segments[0].opened.file.meta["dimensions"])
        return self._all.gather(numbers, lambda segment, own: segment.search.vectors(own), (dimensions,))

    def token_matches(self, tokens: NDArray[np.int8], numbers: Numbers) -> Scores:
        return self._all.gather(numbers, lambda segment, own: segment.search.token_matches(tokens, own), (len(tokens),))

    def setting_similarities(self, query: Vectors, numbers: Numbers) -> dict[int, dict[int, float]]:
        return self._all.look_up(numbers, lambda segment, own: segment.search.setting_similarities(query, own))

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        wanted = list(terms)
        held = [segment.search.document_frequencies(wanted) for segment in self._all.segments]
        return {term: sum(frequencies[term] for frequencies in held) for term in wanted}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        frequencies = self.document_frequencies(weights)
        frequent = {term for term, frequency in frequencies.items() if self._frequent.is_frequent(frequency)}
        return self._all.scatter(lambda segment: segment.search.sparse_with(weights, frequent, document_share, bm25))

    def term_weights(self, terms: Sequence[str], numbers: Numbers, bm25: Bm25Settings) -> Scores:
        return self._all.gather(
            numbers, lambda segment, own: segment.search.term_weights(terms, own, bm25), (len(terms),)
        )

    def average_length(self, bm25: Bm25Settings) -> float:
        return self._corpus.average(bm25)

    def paired(self, pairs: Iterable[int]) -> dict[int, Numbers]:
        wanted = list(dict.fromkeys(pairs))
        return self._held(wanted, lambda segment: segment.search.paired(wanted))

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        wanted = list(dict.fromkeys(keys))
        return self._held(wanted, lambda segment: segment.search.named(wanted))

    def _held(self, keys: Sequence[K], chunks_of: Callable[[Segment], Mapping[K, Numbers]]) -> dict[K, Numbers]:
        parts = [(numbers, chunks_of(segment)) for numbers, segment in self._all.numbered()]
        held = {key: [numbers[part[key]] for numbers, part in parts if key in part] for key in keys}
        return {key: np.sort(np.concatenate(chunks)) for key, chunks in held.items() if chunks}

    def named_nearly(self, field: str, word: str) -> Numbers:
        return self._all.merged(lambda segment: segment.search.named_nearly(field, word))

    def holding(self, terms: Iterable[str]) -> Numbers:
        wanted = list(terms)
        return self._all.merged(lambda segment: segment.search.holding(wanted))


class SegmentedCounts:
    """The filters and values of all segments."""

    def __init__(self, segments: Segments) -> None:
        self._all = segments

    def within(self, conditions: Sequence[Condition]) -> Mask:
        mask = np.zeros(self._all.size + 1, np.bool_)
        for numbers, segment in self._all.numbered():
            mask[numbers] = segment.counts.within(conditions)
        return mask[:-1]

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        read = [(numbers, *segment.counts.field_values(field, type_)) for numbers, segment in self._all.numbered()]
        holding = [row for row in read if len(row[2])] or read[:1]  # an empty column has no type
        values = np.concatenate([values for _, values, _ in holding])
        chunks = np.concatenate([numbers[own] for numbers, _, own in holding])
        there = chunks < self._all.size
        return count_values(
            (values[there], chunks[there]), type_, self._all.numbering.of_chunks, limit, self._within_seen(within)
        )

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        rows = sorted(
            (int(documents[number]), path, said, problem)
            for documents, segment in zip(self._all.numbering.documents, self._all.segments, strict=True)
            for number, path, said, problem in segment.counts.unread_rows(field)
            if documents[number] < self._all.numbering.document_count
        )
        return unread_values(rows, self._all.numbering.of_chunks, limit, self._within_seen(within))

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        pages = [segment.counts.served_documents(after, limit, own) for own, _, segment in self._all.divided(within)]
        return list(islice(heapq.merge(*pages, key=attrgetter("source_id", "path")), limit))

    def stated_documents(self, keys: Sequence[str]) -> list[StatedDocument]:
        pages = [segment.counts.stated_documents(keys) for segment in self._all.segments]
        return list(heapq.merge(*pages, key=attrgetter("source_id", "path")))

    def _within_seen(self, within: Mask | None) -> Mask | None:
        """Return the visible part of a mask. As argument and as result, ``None`` means all chunks."""
        if not self._all.part:
            return within
        return self.within(()) if within is None else self.within(()) & within


class SegmentedTexts:
    """The texts of all segments."""

    def __init__(self, segments: Segments) -> None:
        self._all = segments
        self._texts = [segment.texts for segment in segments.segments]

    def sees_document(self, document_no: int) -> bool:
        segment, number = self._all.numbering.document(document_no)
        return self._texts[segment].sees_document(number)

    def sources_of(self, path: str) -> tuple[str, ...]:
        return tuple(sorted({source for texts in self._texts for source in texts.sources_of(path)}))

    def contents(self, numbers: Numbers) -> dict[int, str]:
        return self._all.look_up(numbers, lambda segment, own: segment.texts.contents(own))

    def containing(self, text: str, k: int) -> Numbers:
        return self._all.merged(lambda segment: segment.texts.containing(text, k))[:k]

    def find(self, pattern: LinePattern, limit: int, deadline: float, within: Mask | None = None) -> FoundLines:
        found = [segment.texts.find(pattern, limit, deadline, own) for own, _, segment in self._all.divided(within)]
        return merged_lines(found, limit)

    def texts_with(
        self, word: str, endings: Sequence[str], limit: int, deadline: float, within: Mask | None = None
    ) -> WordTexts:
        divided = self._all.divided(within)
        found = [segment.texts.texts_with(word, endings, limit, deadline, own) for own, _, segment in divided]
        return merged_texts(found, limit)

    def complete(self, typed: str, limit: int) -> list[Completion]:
        # A rare value in one file may be frequent in others: ask each file for more than is shown.
        return merged_completions((texts.complete(typed, limit + COMPLETIONS_BEYOND) for texts in self._texts), limit)

    def paths(self) -> Collection[str]:
        return [path for texts in self._texts for path in texts.paths()]

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        return set().union(*(texts.seen_places(places) for texts in self._texts))

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        chunks = self._all.look_up(np.asarray(numbers, np.int32), lambda segment, own: segment.texts.chunks(own))
        return {number: replace(chunk, chunk_no=number) for number, chunk in chunks.items()}

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        for numbers, segment in self._all.numbered():
            if chunk := segment.texts.chunk(chunk_id):
                return replace(chunk, chunk_no=int(numbers[chunk.chunk_no]))
        return None

    def document(self, source_id: str, path: str) -> StoredText | None:
        return next((text for each in reversed(self._texts) if (text := each.document(source_id, path))), None)

    def chunk_places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        counts = Counter(path for texts in self._texts for path in texts.live_paths())
        places = [
            replace(place, chunk_no=int(numbers[place.chunk_no]), document_no=int(documents[place.document_no]))
            for (numbers, segment), documents in zip(self._all.numbered(), self._all.numbering.documents, strict=True)
            for place in segment.texts.places(holding)
            if counts[place.path] == 1
        ]
        return sorted(places, key=attrgetter("chunk_no"))

    def document_texts(self, documents: Iterable[int]) -> dict[int, str]:
        wanted = [(number, *self._all.numbering.document(number)) for number in sorted(set(map(int, documents)))]
        texts = [
            reader.document_texts(own for _, held, own in wanted if held == place)
            for place, reader in enumerate(self._texts)
        ]
        return {number: texts[segment][own] for number, segment, own in wanted if own in texts[segment]}

    def indexed_documents(self, path: str) -> tuple[IndexedDocument, ...]:
        documents = [
            replace(indexed, chunks=tuple((int(numbers[number]), chunk) for number, chunk in indexed.chunks))
            for numbers, segment in self._all.numbered()
            for indexed in segment.texts.indexed_documents(path)
        ]
        return tuple(sorted(documents, key=lambda indexed: indexed.document.source_id))


def with_lengths(opened: Sequence[OpenFile], visible: Sequence[Visible | None]) -> list[Segment]:
    """Return a viewer's view of each file. Scores use the chunk lengths of all visible parts together."""
    lengths = [
        part.lengths(each.mapped.terms) if part else each.mapped.terms.own
        for each, part in zip(opened, visible, strict=True)
    ]
    corpus = sum(lengths, NO_LENGTHS)
    return [Segment(each, corpus, part) for each, part in zip(opened, visible, strict=True)]


def open_segments(files: Sequence[Path], manifest: Manifest, opening: Callable[..., OpenFile]) -> Index:
    """Open the files of a manifest as one index.

    Args:
        opening: opens a segment from a closing stack, its path and a mask of its documents.

    Raises:
        StoreError: a file is missing, damaged, of another schema, or not the file that the manifest names.
    """
    with ExitStack() as stack:
        opened = []
        for file, told in zip(files, manifest.segments, strict=True):
            opened.append(opening(stack, file, told.live()))
            if opened[-1].mapped.terms.own != Lengths(told.chunks, told.terms):
                raise StoreError(f"{file}: is not the file that {manifest.generation} was published with; roll back")
        segments = with_lengths(opened, [each.visibilities.everything for each in opened])
        meta = {**opened[-1].file.meta, "generation": manifest.generation, "built_at": manifest.built_at}
        alone = len(segments) == 1 and segments[0].live is None
        return Index(meta, segments[0] if alone else Segments(segments), stack.pop_all(), manifest.query_map)
