"""Inverted lists in PostgreSQL: a row per key, fetched for all keys of a question at once, the last ones remembered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from nornweave.config import Bm25Settings, FieldWeights
from nornweave.core.types import FIELDS
from nornweave.index.bm25 import saturated
from nornweave.index.port import Mask, Numbers, Scores
from nornweave.index.postgresql.server import Server

K = TypeVar("K", str, int)

# Of the lists of one kind: those of a question's words take some 10 kB of a corpus of 5,000 chunks.
CACHE_BYTES = 32 << 20
# What an entry takes beside its numbers.
_ENTRY_BYTES = 400


class Postings:
    """Where a key stands: chunk numbers, ascending, and for terms how often in each field."""

    __slots__ = ("chunks", "counts")

    def __init__(self, chunks: bytes, *counts: bytes) -> None:
        self.chunks: Numbers = np.frombuffer(chunks, "<i4").astype(np.int32, copy=False)
        self.counts = [np.frombuffer(each, "<u2") for each in counts]

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""
        return _ENTRY_BYTES + self.chunks.nbytes + sum(each.nbytes for each in self.counts)

    def frequencies(self, fields: FieldWeights) -> Scores:
        """Return how often the key stands in each chunk, its fields weighted."""
        weighed = np.zeros(len(self.chunks), np.float64)
        for counts, weight in zip(self.counts, fields.values, strict=True):
            weighed += counts * np.float64(weight)
        return weighed.astype(np.float32)


_ABSENT = Postings(b"", *[b""] * len(FIELDS))


class RemoteLists(Generic[K]):
    """One table of lists of a generation; safe to use from several threads."""

    def __init__(self, server: Server, table: str, key: str, columns: tuple[str, ...], type_: str) -> None:
        """Store the parameters, all of them constants of the caller."""
        self._server = server
        self._statement = f"select {key}, {', '.join(columns)} from {table} where {key} = any(%s::{type_}[])"
        self._lock = threading.Lock()
        self._lists: OrderedDict[K, Postings] = OrderedDict()
        self._bytes = 0

    def fetch(self, keys: Iterable[K]) -> dict[K, Postings]:
        """Return the lists of these keys, in one query for those that are not remembered.

        Raises:
            StoreError: the server cannot be asked.
        """
        asked = dict.fromkeys(keys)
        with self._lock:
            known = {key: self._lists[key] for key in asked if key in self._lists}
            for key in known:
                self._lists.move_to_end(key)
        missing = [key for key in asked if key not in known]
        if missing:
            fetched = {row[0]: Postings(*row[1:]) for row in self._server.rows(self._statement, [missing])}
            fetched |= {key: _ABSENT for key in missing if key not in fetched}
            self._remember(fetched)
            known |= fetched
        return known

    def _remember(self, fetched: dict[K, Postings]) -> None:
        with self._lock:
            for key, postings in fetched.items():
                if key not in self._lists:
                    self._lists[key] = postings
                    self._bytes += postings.size_bytes
            while self._bytes > CACHE_BYTES:
                self._bytes -= self._lists.popitem(last=False)[1].size_bytes


class SeenPostgresTerms:
    """The lists of terms as one viewer may see them; implements ``inverted.WeightedLists``."""

    def __init__(self, lists: RemoteLists[str], half: Scores, bm25: Bm25Settings, seen: Mask | None) -> None:
        self._lists = lists
        self._half = half
        self._bm25 = bm25
        self._seen = seen

    def frequency(self, key: str) -> int:
        """Count the chunks that hold a term."""
        return len(self.chunks(key))

    def chunks(self, key: str) -> Numbers:
        """Return the chunks that hold a term, ascending."""
        return visible(self._lists.fetch([key])[key].chunks, self._seen)

    def weighted(self, key: str) -> tuple[Numbers, Scores]:
        """Return the chunks that hold a term, and what it counts for in each."""
        postings = self._lists.fetch([key])[key]
        frequencies, chunks = postings.frequencies(self._bm25.fields), postings.chunks
        if self._seen is not None:
            kept = self._seen[chunks]
            frequencies, chunks = frequencies[kept], chunks[kept]
        return chunks, saturated(frequencies, self._half[chunks], self._bm25)


def visible(chunks: Numbers, seen: Mask | None) -> Numbers:
    """Return the chunks among some that may be seen."""
    return chunks if seen is None else chunks[seen[chunks]]
