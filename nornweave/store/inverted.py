"""Inverted lists in memory: key → the chunks that have it, with what it counts for there."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.settings import FieldWeights
from nornweave.store.bm25 import saturated, saturations, weighted_lengths
from nornweave.store.connection import Connection
from nornweave.store.port import Numbers, Scores
from nornweave.types import FIELDS

EVEN = FieldWeights()
_REMEMBERED = 1 << 14
# Tuning compares five weights of one field at a time.
_REMEMBERED_FIELDS = 6
_STEP = 32

K_contra = TypeVar("K_contra", contravariant=True)


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
        return self.chunk_nos[self._range(key)]

    def weighted(self, key: K_contra) -> tuple[Numbers, Scores]:
        """Return the chunks that have the key, and what it counts for in each."""
        where = self._range(key)
        chunks = self.chunk_nos[where]
        return chunks, np.ones(len(chunks), np.float32) if self.weights is None else self.weights[where]

    def frequency(self, key: K_contra) -> int:
        """Count the chunks that have the key."""
        where = self._range(key)
        return int(where.stop - where.start)

    def _range(self, key: K_contra) -> slice:
        position = self.keys.find(key)
        return slice(0, 0) if position < 0 else slice(int(self.offsets[position]), int(self.offsets[position + 1]))


class TermLists:
    """The BM25 tables: term → chunks, with what the term counts for there before idf, by the weights of the fields.

    Safe to use from several threads. What the last few weights of fields make of the postings is remembered, four bytes
    a posting each; another takes some 50 ms a million postings.
    """

    def __init__(self, connection: Connection) -> None:
        """Load them, with the weights of fields that are the default."""
        terms = connection.execute("select term, document_frequency from terms order by term_id").to_arrow_table()
        keys, offsets = TextKeys(_strings(terms, "term")), _offsets(_numpy(terms, "document_frequency"))
        columns = ", ".join(f"in_{field}" for field in FIELDS)
        lengths = connection.execute(f"select {columns} from lengths order by chunk_no").fetchnumpy()
        self._lengths = np.column_stack([lengths[f"in_{field}"] for field in FIELDS])
        self._lock = threading.Lock()
        weights, chunk_nos = self._weights(connection, EVEN)
        self._weighted: dict[FieldWeights, InvertedLists[str]] = {
            EVEN: InvertedLists(keys, offsets, chunk_nos, weights)
        }

    @property
    def even(self) -> InvertedLists[str]:
        """Return the lists where every field counts alike."""
        return self._weighted[EVEN]

    def by(self, fields: FieldWeights, connection: Callable[[], Connection]) -> InvertedLists[str]:
        """Return the lists with the weights that these fields make.

        Args:
            fields: what a term counts for in each.
            connection: returns one to the generation, should it be needed.
        """
        found = self._weighted.get(fields)
        if found is None:
            with self._lock:
                return self._weighted.get(fields) or self._read(connection(), fields)
        return found

    def average_length(self, fields: FieldWeights) -> float:
        """Return the mean length of a chunk, its fields weighted."""
        return float(weighted_lengths(self._lengths, fields).mean()) if len(self._lengths) else 0.0

    def _read(self, connection: Connection, fields: FieldWeights) -> InvertedLists[str]:
        weights, _ = self._weights(connection, fields)
        kept = [one for one in self._weighted if one != EVEN][1 - _REMEMBERED_FIELDS :]
        lists = replace(self.even, weights=weights)
        self._weighted = {one: self._weighted[one] for one in (EVEN, *kept)} | {fields: lists}
        return lists

    def _weights(self, connection: Connection, fields: FieldWeights) -> tuple[Scores, Numbers]:
        weighed = " + ".join(f"in_{field} * ?::double" for field in FIELDS)
        query = f"select term_id, chunk_no, ({weighed})::float as frequency from postings"
        postings = _in_order(connection, query, "term_id", fields.values)
        chunks = postings["chunk_no"]
        half = saturations(self._lengths, self.average_length(fields), fields)
        return saturated(postings["frequency"], half[chunks]), chunks


def load_names(connection: Connection) -> InvertedLists[str]:
    """Load what chunks can be looked up by: ``field:value`` → chunks."""
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
