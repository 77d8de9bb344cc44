"""The chunk and document numbers of a generation in several files, and of each file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.index.generation import Shard
from nornweave.index.port import Numbers


class Numbering:
    """Which chunk and document of the whole is which of a shard.

    Attributes:
        chunks: of each shard, the number in the whole of each of its chunks.
        documents: the same of documents.
        of_chunks: the document of each chunk, in the whole.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        tables = [shard.texts.document_places() for shard in shards]
        places = pa.concat_tables(tables)
        order = places.append_column("row", pa.array(np.arange(len(places)))).sort_by(
            [("source_id", "ascending"), ("path", "ascending")]
        )
        numbers = np.empty(len(places), np.int32)
        numbers[order["row"].to_numpy()] = np.arange(len(places), dtype=np.int32)
        self.documents: list[Numbers] = np.split(numbers, np.cumsum([len(table) for table in tables])[:-1])
        of_shards = [self.documents[number][shard.opened.file.documents] for number, shard in enumerate(shards)]
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


def _reversed(numbers: Sequence[Numbers]) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Return the shard of each number of the whole, and the number there."""
    size = sum(map(len, numbers))
    shards, locals_ = np.zeros(size, np.uint16), np.zeros(size, np.int32)
    for shard, of_shard in enumerate(numbers):
        shards[of_shard] = shard
        locals_[of_shard] = np.arange(len(of_shard), dtype=np.int32)
    return shards, locals_
