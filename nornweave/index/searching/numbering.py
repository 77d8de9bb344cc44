"""The chunk and document numbers of a generation in several files, and of each file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.index.port import Mask, Numbers
from nornweave.index.searching.generation import Segment


class Numbering:
    """Which chunk and document of the whole is which of a segment; what is gone has no number.

    Attributes:
        chunks: of each segment, the number in the whole of each of its chunks; ``size`` for those that are gone.
        documents: the same of documents.
        of_chunks: the document of each chunk, in the whole.
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
        self._chunk_segments, self._chunk_locals = _reversed(self.chunks, self.size)
        self._document_segments, self._document_locals = _reversed(self.documents, self.document_count)

    def chunks_of(self, segment: int, numbers: Numbers) -> tuple[NDArray[np.int64], Numbers]:
        """Return which of some chunks are in a segment, and their numbers there."""
        places = np.flatnonzero(self._chunk_segments[numbers] == segment)
        return places, self._chunk_locals[numbers[places]]

    def document(self, number: int) -> tuple[int, int]:
        """Return the segment of a document, and its number there."""
        return int(self._document_segments[number]), int(self._document_locals[number])

    def divided(self, within: Mask | None) -> list[Mask | None]:
        """Return which chunks of each segment are among some of the whole."""
        if within is None:
            return [None] * len(self.chunks)
        padded = np.append(within, False)
        return [padded[numbers] for numbers in self.chunks]


def _divided(values: Numbers, like: Sequence[pa.Table] | Sequence[Numbers]) -> list[Numbers]:
    return np.split(values, np.cumsum([len(each) for each in like])[:-1])


def _reversed(numbers: Sequence[Numbers], size: int) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Return the segment of each number of the whole, and the number there."""
    segments, locals_ = np.zeros(size, np.uint16), np.zeros(size, np.int32)
    for segment, of_segment in enumerate(numbers):
        own = np.flatnonzero(of_segment < size).astype(np.int32)
        segments[of_segment[own]] = segment
        locals_[of_segment[own]] = own
    return segments, locals_
