"""Inverted lists in memory: key → chunks that have it, with weights."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.settings import Bm25Settings, FieldWeights
from nornweave.store.bm25 import saturated, saturations, weighted_lengths
from nornweave.store.connection import Connection
from nornweave.store.port import Numbers, Scores
from nornweave.types import FIELDS

DEFAULT_BM25 = Bm25Settings()
_REMEMBERED = 1 << 14
# Tuning compares five weights of one field at a time.
_REMEMBERED_SETTINGS = 6
# A term in more than this share of the chunks is faster to add up as one number a chunk than chunk by chunk.
_FREQUENT_SHARE = 1 / 16
_FREQUENT_BYTES = 8 << 20
_STEP = 32

K_contra = TypeVar("K_contra", contravariant=True)


class WeightedLists(Protocol):
    """The chunks of each term, and what it counts for in each."""

    @property
    def frequency(self) -> Callable[[str], int]:
        """Count the chunks that hold a term."""

    def chunks(self, term: str, /) -> Numbers:
        """Return the chunks that hold a term, ascending."""

    def weighted(self, term: str, /) -> tuple[Numbers, Scores]:
        """Return the chunks that hold a term, and what it counts for in each."""


class Keys(Protocol[K_contra]):
    """The distinct keys of an index, in order."""

    def find(self, key: K_contra) -> int:
        """Return the key's position, or -1."""


class TextKeys:
    """Keys that are text, in the order of their code points; an Arrow array is a third of a Python list.

    Every ``_STEP``-th is a Python string as well: a scalar of Arrow takes a microsecond, and a search 20 of them. A
    query asks for its words several times, and queries share theirs.
    """

    def __init__(self, keys: pa.StringArray) -> None:
        self._keys = keys
        self._marks: list[str] = keys.take(np.arange(0, len(keys), _STEP)).to_pylist()
        self.find = lru_cache(maxsize=_REMEMBERED)(self._find)

    def _find(self, key: str) -> int:
        """Return the key's position, or -1."""
        start = max(bisect_right(self._marks, key) - 1, 0) * _STEP
        block: list[str] = self._keys.slice(start, _STEP).to_pylist()
        position = bisect_left(block, key)
        return start + position if position < len(block) and block[position] == key else -1


@dataclass(frozen=True, slots=True)
class NumberKeys:
    """Keys that are numbers, ascending."""

    keys: NDArray[np.uint32]

    def find(self, key: int) -> int:
        """Return the key's position, or -1."""
        position = int(np.searchsorted(self.keys, np.uint32(key)))
        return position if position < len(self.keys) and self.keys[position] == key else -1


@dataclass(frozen=True, slots=True)
class InvertedLists(Generic[K_contra]):
    """The chunks of each key, ascending.

    Attributes:
        offsets: of each key's chunks in ``chunk_nos``; one more than keys.
        weights: beside ``chunk_nos``; ``None`` where a chunk has a key or has not.
    """

    keys: Keys[K_contra]
    offsets: NDArray[np.int64]
    chunk_nos: Numbers
    weights: Scores | None = None

    def chunks(self, key: K_contra) -> Numbers:
        """Return the chunks that have the key, ascending."""
        return self.chunk_nos[self.range_of(key)]

    def weighted(self, key: K_contra) -> tuple[Numbers, Scores]:
        """Return the chunks that have the key, and what it counts for in each."""
        where = self.range_of(key)
        chunks = self.chunk_nos[where]
        return chunks, np.ones(len(chunks), np.float32) if self.weights is None else self.weights[where]

    def frequency(self, key: K_contra) -> int:
        """Count the chunks that have the key."""
        where = self.range_of(key)
        return int(where.stop - where.start)

    def range_of(self, key: K_contra) -> slice:
        """Return where the key's chunks stand in ``chunk_nos``."""
        position = self.keys.find(key)
        return slice(0, 0) if position < 0 else slice(int(self.offsets[position]), int(self.offsets[position + 1]))


class FrequentTerms:
    """The weights of frequent terms in every chunk, one array per term; safe to use from several threads.

    Nearly all postings that a question touches are of a few function words. The arrays are made when they are first
    asked for; those asked for last are kept, in 8 MB unless said otherwise.
    """

    def __init__(self, chunk_count: int, size: int, most_bytes: int = _FREQUENT_BYTES) -> None:
        """Store the sizes.

        Args:
            chunk_count: chunks that can be found.
            size: of an array, which has a place for the others as well.
            most_bytes: of all arrays.
        """
        self._chunk_count = chunk_count
        self._most = max(1, most_bytes // max(4 * size, 1))
        self._rows: OrderedDict[Hashable, Scores] = OrderedDict()
        self._lock = threading.Lock()

    def is_frequent(self, frequency: int) -> bool:
        """Tell whether a term that occurs in this many chunks is kept here."""
        return frequency > self._chunk_count * _FREQUENT_SHARE

    def row(self, key: Hashable, make: Callable[[], Scores]) -> Scores:
        """Return the array of ``key``, computing it if needed; callers must not write to it."""
        with self._lock:
            row = self._rows.get(key)
            if row is not None:
                self._rows.move_to_end(key)
                return row
        row = make()
        with self._lock:
            self._rows[key] = row
            while len(self._rows) > self._most:
                self._rows.popitem(last=False)
        return row


class TermLists:
    """The BM25 tables: term → chunks, with what the term counts for there before idf, by the settings of BM25.

    Safe to use from several threads. What the last few settings make of the postings is remembered, four bytes
    a posting each; another takes some 50 ms a million postings.
    """

    def __init__(self, connection: Connection) -> None:
        """Load them, with the weights that the default settings make."""
        terms = connection.execute("select term, document_frequency from terms order by term_id").to_arrow_table()
        keys, offsets = TextKeys(_strings(terms, "term")), _offsets(_numpy(terms, "document_frequency"))
        columns = ", ".join(f"in_{field}" for field in FIELDS)
        lengths = connection.execute(f"select {columns} from lengths order by chunk_no").fetchnumpy()
        self.lengths: NDArray[np.int32] = np.column_stack([lengths[f"in_{field}"] for field in FIELDS])
        self._lock = threading.Lock()
        weights, chunk_nos = self._weights(connection, DEFAULT_BM25)
        self._weighted: dict[Bm25Settings, InvertedLists[str]] = {
            DEFAULT_BM25: InvertedLists(keys, offsets, chunk_nos, weights)
        }
        self._frequencies: dict[FieldWeights, Scores] = {}

    @property
    def default(self) -> InvertedLists[str]:
        """Return the lists with the weights of the default settings."""
        return self._weighted[DEFAULT_BM25]

    def by(self, bm25: Bm25Settings, connection: Callable[[], Connection]) -> InvertedLists[str]:
        """Return the lists with the weights that these settings make.

        Args:
            bm25: of the domain.
            connection: returns one to the generation, should it be needed.
        """
        found = self._weighted.get(bm25)
        if found is None:
            with self._lock:
                return self._weighted.get(bm25) or self._read(connection(), bm25)
        return found

    def average_length(self, bm25: Bm25Settings, among: Numbers | None = None) -> float:
        """Return the mean length of a chunk, its fields weighted; of some chunks only where they are given."""
        lengths = self.lengths if among is None else self.lengths[among]
        return float(weighted_lengths(lengths, bm25.fields).mean()) if len(lengths) else 0.0

    def frequencies(self, fields: FieldWeights, connection: Callable[[], Connection]) -> Scores:
        """Return how often each term stands in each chunk, its fields weighted, beside ``default.chunk_nos``.

        Read when they are first asked for, four bytes a posting; those of the last few weights are remembered.
        """
        with self._lock:
            found = self._frequencies.get(fields)
            if found is None:
                found = self._postings(connection(), fields)["frequency"]
                recent = [*self._frequencies][1 - _REMEMBERED_SETTINGS :]
                self._frequencies = {known: self._frequencies[known] for known in recent} | {fields: found}
        return found

    def _read(self, connection: Connection, bm25: Bm25Settings) -> InvertedLists[str]:
        weights, _ = self._weights(connection, bm25)
        recent = [known for known in self._weighted if known != DEFAULT_BM25][1 - _REMEMBERED_SETTINGS :]
        lists = replace(self.default, weights=weights)
        self._weighted = {known: self._weighted[known] for known in (DEFAULT_BM25, *recent)} | {bm25: lists}
        return lists

    def _weights(self, connection: Connection, bm25: Bm25Settings) -> tuple[Scores, Numbers]:
        postings = self._postings(connection, bm25.fields)
        chunks = postings["chunk_no"]
        half = saturations(self.lengths, self.average_length(bm25), bm25)
        return saturated(postings["frequency"], half[chunks], bm25), chunks

    def _postings(self, connection: Connection, fields: FieldWeights) -> dict[str, NDArray[Any]]:
        weighed = " + ".join(f"in_{field} * ?::double" for field in FIELDS)
        query = f"select term_id, chunk_no, ({weighed})::float as frequency from postings"
        return _in_order(connection, query, "term_id", fields.values)


def load_names(connection: Connection) -> InvertedLists[str]:
    """Load the lookup keys: ``field:value`` → chunks."""
    names = connection.execute("select name, chunk_count from names order by name_id").to_arrow_table()
    rows = _in_order(connection, "select name_id, chunk_no from chunk_names", "name_id")
    return InvertedLists(TextKeys(_strings(names, "name")), _offsets(_numpy(names, "chunk_count")), rows["chunk_no"])


def load_pairs(connection: Connection) -> InvertedLists[int]:
    """Load the word pairs: key of the pair → chunks."""
    rows = _in_order(connection, "select pair, chunk_no from pairs", "pair")
    pairs = rows["pair"]
    starts = np.flatnonzero(np.r_[len(pairs) > 0, pairs[1:] != pairs[:-1]])
    return InvertedLists(
        NumberKeys(pairs[starts].copy()), np.append(starts, len(pairs)).astype(np.int64), rows["chunk_no"]
    )


def _in_order(
    connection: Connection, query: str, key: str, parameters: Sequence[float] = ()
) -> dict[str, NDArray[Any]]:
    """Read a table that was written in the order of ``key``, then chunk; sort only what came otherwise.

    Sorting ten million rows in DuckDB takes more memory than serving them.
    """
    table = connection.execute(query, list(parameters)).to_arrow_table()
    columns = {name: _numpy(table, name) for name in table.column_names}
    keys, chunks = columns[key], columns["chunk_no"]
    same = keys[1:] == keys[:-1]
    if not np.all((keys[1:] > keys[:-1]) | (same & (chunks[1:] > chunks[:-1]))):
        order = np.lexsort((chunks, keys))
        columns = {name: column[order] for name, column in columns.items()}
    return columns


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _numpy(table: pa.Table, column: str) -> NDArray[Any]:
    return table.column(column).combine_chunks().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _strings(table: pa.Table, column: str) -> pa.StringArray:
    return table.column(column).combine_chunks()
