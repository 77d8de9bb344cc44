"""Inverted lists: key → chunks that have it, with weights; mapped from the arrays beside a generation."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import add, mul
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.config import Bm25Settings, FieldWeights
from nornweave.core.types import FIELDS
from nornweave.index.arrays import Arrays, ArrayWriter
from nornweave.index.bm25 import saturated, saturations
from nornweave.index.connection import Connection
from nornweave.index.port import Numbers, Scores

DEFAULT_BM25 = Bm25Settings()
_REMEMBERED = 1 << 14
# Tuning compares five weights of one field at a time.
_REMEMBERED_SETTINGS = 6
# A term in more than this share of the chunks is faster to add up as one number a chunk than chunk by chunk.
_FREQUENT_SHARE = 1 / 16
_FREQUENT_BYTES = 8 << 20
_STEP = 32
_BATCH_ROWS = 1 << 18
_NONE = np.zeros(0, np.float32)

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

    def __init__(self, keys: pa.LargeStringArray) -> None:
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
class Lengths:
    """How many chunks there are, and how many terms they hold together in each of ``types.FIELDS``.

    Whole numbers, so that the sum over the shards of a corpus is that of the corpus, whatever the order.
    """

    chunks: int
    terms: tuple[int, ...]

    def __add__(self, other: Lengths) -> Lengths:
        return Lengths(self.chunks + other.chunks, tuple(map(add, self.terms, other.terms)))

    def average(self, bm25: Bm25Settings) -> float:
        """Return the mean length of a chunk, its fields weighted; 0 without chunks."""
        return math.fsum(map(mul, self.terms, bm25.fields.values)) / self.chunks if self.chunks else 0.0


NO_LENGTHS = Lengths(0, (0,) * len(FIELDS))


def lengths_of(lengths: NDArray[np.int32]) -> Lengths:
    """Sum the lengths of chunks, of shape ``(chunks, fields)``."""
    return Lengths(len(lengths), tuple(map(int, lengths.sum(axis=0, dtype=np.int64))))


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

    def __init__(self, arrays: Arrays, corpus: Lengths | None = None) -> None:
        """Open what ``write_terms`` wrote.

        Args:
            arrays: of the generation; they hold the weights that the default settings make of it alone.
            corpus: what the lengths of chunks are compared with; those of this file unless given.
        """
        self.lengths: NDArray[np.int32] = arrays["lengths"]
        self.own = lengths_of(self.lengths)
        self.corpus = corpus or self.own
        self._lock = threading.Lock()
        self.default = InvertedLists(
            _text_keys(arrays, "terms"), arrays["terms.starts"], arrays["terms.chunks"], arrays["terms.weights"]
        )
        """The lists with the weights that the default settings make of this file alone."""
        alone = self.corpus.average(DEFAULT_BM25) == self.own.average(DEFAULT_BM25)
        self._weighted: dict[Bm25Settings, InvertedLists[str]] = {DEFAULT_BM25: self.default} if alone else {}
        self._frequencies: dict[FieldWeights, Scores] = {}

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

    def frequencies(self, fields: FieldWeights, connection: Callable[[], Connection]) -> Scores:
        """Return how often each term stands in each chunk, its fields weighted, beside ``default.chunk_nos``.

        Read when they are first asked for, four bytes a posting; those of the last few weights are remembered.
        """
        with self._lock:
            found = self._frequencies.get(fields)
            if found is None:
                found = np.concatenate([part["frequency"] for _, part in _postings(connection(), fields)] or [_NONE])
                recent = [*self._frequencies][1 - _REMEMBERED_SETTINGS :]
                self._frequencies = {known: self._frequencies[known] for known in recent} | {fields: found}
        return found

    def _read(self, connection: Connection, bm25: Bm25Settings) -> InvertedLists[str]:
        weights = np.empty(len(self.default.chunk_nos), np.float32)
        self._fill(weights, connection, bm25)
        recent = [known for known in self._weighted if known != DEFAULT_BM25][1 - _REMEMBERED_SETTINGS :]
        kept = [*([DEFAULT_BM25] if DEFAULT_BM25 in self._weighted else []), *recent]
        lists = replace(self.default, weights=weights)
        self._weighted = {known: self._weighted[known] for known in kept} | {bm25: lists}
        return lists

    def write_weights(self, name: str, arrays: ArrayWriter, connection: Connection) -> None:
        """Write what terms count for by the default settings in the corpus that this file is a shard of."""
        self._fill(arrays.reserve(name, np.float32, self.default.chunk_nos.shape), connection, DEFAULT_BM25)

    def use_weights(self, weights: Scores) -> None:
        """Take what ``write_weights`` wrote."""
        self._weighted = {DEFAULT_BM25: replace(self.default, weights=weights)}

    def _fill(self, weights: Scores, connection: Connection, bm25: Bm25Settings) -> None:
        half = saturations(self.lengths, self.corpus.average(bm25), bm25)
        for start, postings in _postings(connection, bm25.fields):
            end = start + len(postings["chunk_no"])
            weights[start:end] = saturated(postings["frequency"], half[postings["chunk_no"]], bm25)


def write_terms(connection: Connection, arrays: ArrayWriter) -> None:
    """Write the BM25 tables, with the weights that the default settings make.

    Raises:
        OSError: the disk is full.
    """
    terms = _by(connection, "select term_id, term, document_frequency from terms", "term_id")
    _write_texts(arrays, "terms", _strings(terms, "term"))
    starts = _offsets(_numpy(terms, "document_frequency"))
    arrays.add("terms.starts", starts)
    columns = ", ".join(f"in_{field}" for field in FIELDS)
    read = _by(connection, f"select chunk_no, {columns} from lengths", "chunk_no")
    lengths = np.column_stack([_numpy(read, f"in_{field}") for field in FIELDS]).astype(np.int32)
    arrays.add("lengths", lengths)
    half = saturations(lengths, lengths_of(lengths).average(DEFAULT_BM25), DEFAULT_BM25)
    chunks = arrays.reserve("terms.chunks", np.int32, (int(starts[-1]),))
    weights = arrays.reserve("terms.weights", np.float32, chunks.shape)
    for start, postings in _postings(connection, DEFAULT_BM25.fields):
        numbers = postings["chunk_no"]
        chunks[start : start + len(numbers)] = numbers
        weights[start : start + len(numbers)] = saturated(postings["frequency"], half[numbers], DEFAULT_BM25)


def write_names(connection: Connection, arrays: ArrayWriter) -> None:
    """Write the lookup keys: ``field:value`` → chunks.

    Raises:
        OSError: the disk is full.
    """
    names = _by(connection, "select name_id, name, chunk_count from names", "name_id")
    _write_texts(arrays, "names", _strings(names, "name"))
    starts = _offsets(_numpy(names, "chunk_count"))
    arrays.add("names.starts", starts)
    chunks = arrays.reserve("names.chunks", np.int32, (int(starts[-1]),))
    for start, rows in _in_order(connection, "select name_id, chunk_no from chunk_names", "name_id"):
        chunks[start : start + len(rows["chunk_no"])] = rows["chunk_no"]


def write_pairs(connection: Connection, arrays: ArrayWriter) -> None:
    """Write the word pairs: key of the pair → chunks.

    Raises:
        OSError: the disk is full.
    """
    count = connection.execute("select count(*) from pairs").fetchall()[0][0]
    chunks = arrays.reserve("pairs.chunks", np.int32, (count,))
    keys, starts, last = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)], None
    for start, rows in _in_order(connection, "select pair, chunk_no from pairs", "pair"):
        pairs = rows["pair"]
        chunks[start : start + len(pairs)] = rows["chunk_no"]
        first = np.flatnonzero(np.r_[last is None or pairs[0] != last, pairs[1:] != pairs[:-1]])
        keys.append(pairs[first])
        starts.append(first + start)
        last = pairs[-1]
    arrays.add("pairs.keys", np.concatenate(keys))
    arrays.add("pairs.starts", np.append(np.concatenate(starts), count).astype(np.int64))


def load_names(arrays: Arrays) -> InvertedLists[str]:
    """Open the lookup keys that ``write_names`` wrote."""
    return InvertedLists(_text_keys(arrays, "names"), arrays["names.starts"], arrays["names.chunks"])


def load_pairs(arrays: Arrays) -> InvertedLists[int]:
    """Open the word pairs that ``write_pairs`` wrote."""
    return InvertedLists(NumberKeys(arrays["pairs.keys"]), arrays["pairs.starts"], arrays["pairs.chunks"])


def _postings(connection: Connection, fields: FieldWeights) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Yield where each batch of postings starts, and how often terms stand in chunks, their fields weighted."""
    weighed = " + ".join(f"in_{field} * ?::double" for field in FIELDS)
    query = f"select term_id, chunk_no, ({weighed})::float as frequency from postings"
    return _in_order(connection, query, "term_id", fields.values)


def _in_order(
    connection: Connection, query: str, key: str, parameters: Sequence[float] = ()
) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Read a table that was written in the order of ``key``, then chunk, in batches; sort only what came otherwise.

    Sorting ten million rows in DuckDB takes more memory than serving them, and reading them at once takes as much.
    """
    start, last = 0, (-1, -1)
    for batch in connection.execute(query, list(parameters)).to_arrow_reader(_BATCH_ROWS):
        columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}
        if not len(columns[key]):
            continue
        if not _is_ascending(columns[key], columns["chunk_no"], last):
            break
        yield start, columns
        start += len(columns[key])
        last = int(columns[key][-1]), int(columns["chunk_no"][-1])
    else:
        return
    yield 0, _sorted(connection, query, key, parameters)


def _by(connection: Connection, query: str, key: str) -> pa.Table:
    """Read a table that was written in the order of ``key``; sort only what came otherwise.

    Sorting the terms of a million chunks takes DuckDB more memory than a reader has.
    """
    table = connection.execute(query).to_arrow_table()
    keys = _numpy(table, key)
    return table if bool(np.all(keys[1:] > keys[:-1])) else table.sort_by(key)


def _is_ascending(keys: NDArray[Any], chunks: NDArray[Any], last: tuple[int, int]) -> bool:
    same = keys[1:] == keys[:-1]
    after = bool(np.all((keys[1:] > keys[:-1]) | (same & (chunks[1:] > chunks[:-1]))))
    return after and (int(keys[0]), int(chunks[0])) > last


def _sorted(connection: Connection, query: str, key: str, parameters: Sequence[float]) -> dict[str, NDArray[Any]]:
    table = connection.execute(query, list(parameters)).to_arrow_table()
    columns = {name: _numpy(table, name) for name in table.column_names}
    order = np.lexsort((columns["chunk_no"], columns[key]))
    return {name: column[order] for name, column in columns.items()}


def _write_texts(arrays: ArrayWriter, name: str, texts: pa.LargeStringArray) -> None:
    """Write texts one after the other, and where each starts and the last one ends."""
    _, starts, content = texts.buffers()
    ends = np.frombuffer(starts, np.int64)[texts.offset : texts.offset + len(texts) + 1] if len(texts) else np.zeros(1)
    arrays.add(f"{name}.text_starts", (ends - ends[0]).astype(np.int64))
    arrays.add(f"{name}.text", np.frombuffer(content or b"", np.uint8)[int(ends[0]) : int(ends[-1])])


def _text_keys(arrays: Arrays, name: str) -> TextKeys:
    starts, content = arrays[f"{name}.text_starts"], arrays[f"{name}.text"]
    return TextKeys(pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(content)))


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _numpy(table: pa.Table, column: str) -> NDArray[Any]:
    return table.column(column).combine_chunks().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _strings(table: pa.Table, column: str) -> pa.LargeStringArray:
    return table.column(column).combine_chunks().cast(pa.large_string())
