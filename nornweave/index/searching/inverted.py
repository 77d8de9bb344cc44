"""Inverted lists: the chunks of each key, with weights, mapped from the arrays beside a generation."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import add, mul
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nornweave.config import Bm25Settings
from nornweave.core.types import FIELDS
from nornweave.index.connection import Connection
from nornweave.index.port import Numbers, Scores
from nornweave.index.searching.arrays import Arrays, ArrayWriter

DEFAULT_BM25 = Bm25Settings()
_REMEMBERED = 1 << 14
# A term in more than this share of the chunks is faster to add up as one number a chunk than chunk by chunk.
FREQUENT_SHARE = 1 / 16
FREQUENT_BYTES = 8 << 20
_STEP = 32
_BATCH_ROWS = 1 << 18

K_contra = TypeVar("K_contra", contravariant=True)


class Keys(Protocol[K_contra]):
    """The distinct keys of an index, sorted."""

    def find(self, key: K_contra) -> int:
        """Return a key's position, or -1."""


class TextKeys:
    """Text keys in the order of code points, as an Arrow array, which takes a third of a Python list's memory.

    Every ``_STEP``-th key is also a Python string, because reading an Arrow scalar takes a microsecond and a search
    reads 20. Results are cached, because a query repeats its words and queries have words in common.
    """

    def __init__(self, starts: NDArray[Any], text: NDArray[np.uint8]) -> None:
        kind = pa.LargeStringArray if starts.dtype == np.int64 else pa.StringArray
        self._keys = keys = kind.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(text))
        self._starts, self._text = starts, text.data
        self._marks: list[str] = keys.take(np.arange(0, len(keys), _STEP)).to_pylist()
        self.find = lru_cache(maxsize=_REMEMBERED)(self._find)

    def near(self, field: str, word: str) -> list[str]:
        """Return the keys of ``field`` that differ from ``field:word`` by one edit, such as one more letter.

        One edit leaves one half of a word unchanged, so only keys with an equal half are compared.
        """
        start, middle = f"{field}:", len(word) // 2
        first, last = self._lower_bound(start), self._lower_bound(f"{field};")
        keys = self._keys.slice(first, last - first)
        alike = pc.or_(pc.starts_with(keys, start + word[: middle - 1]), pc.ends_with(keys, word[middle + 1 :]))
        return [key for key in keys.filter(alike).to_pylist() if is_one_edit(word, key[len(start) :])]

    def _lower_bound(self, key: str) -> int:
        """Return the number of keys before ``key``."""
        start = max(bisect_left(self._marks, key) - 1, 0) * _STEP
        return start + bisect_left(self._keys.slice(start, _STEP).to_pylist(), key)

    def _find(self, key: str) -> int:
        """Return a key's position, or -1."""
        start = max(bisect_right(self._marks, key) - 1, 0) * _STEP
        stop = min(start + _STEP, len(self._keys))
        # Most keys of a query do not exist, and a search in the block's bytes shows it quickly.
        if key.encode("utf-8", "surrogatepass") not in bytes(self._text[self._starts[start] : self._starts[stop]]):
            return -1
        block: list[str] = self._keys.slice(start, _STEP).to_pylist()
        position = bisect_left(block, key)
        return start + position if position < len(block) and block[position] == key else -1


def is_one_edit(word: str, other: str) -> bool:
    """Tell whether two words differ by one letter: removed, added, replaced or swapped with the next."""
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    ends = zip(word, other, strict=False)
    start = next((place for place, (one, two) in enumerate(ends) if one != two), min(len(word), len(other)))
    rest, others = word[start:], other[start:]
    swapped = len(rest) > 1 and rest[1::-1] + rest[2:] == others
    return rest[1:] == others or rest == others[1:] or rest[1:] == others[1:] or swapped


@dataclass(frozen=True, slots=True)
class NumberKeys:
    """The keys of an inverted list whose keys are numbers, ascending."""

    keys: NDArray[np.uint32]

    def find(self, key: int) -> int:
        """Return a key's position, or -1."""
        position = int(np.searchsorted(self.keys, np.uint32(key)))
        return position if position < len(self.keys) and self.keys[position] == key else -1


@dataclass(frozen=True, slots=True)
class Lengths:
    """The number of chunks, and the number of their terms in each of ``types.FIELDS``.

    They are whole numbers, so that sums over segments are exact in any order.
    """

    chunks: int
    terms: tuple[int, ...]

    def __add__(self, other: Lengths) -> Lengths:
        return Lengths(self.chunks + other.chunks, tuple(map(add, self.terms, other.terms)))

    def average(self, bm25: Bm25Settings) -> float:
        """Return the mean weighted length of a chunk; 0 without chunks."""
        return math.fsum(map(mul, self.terms, bm25.fields.values)) / self.chunks if self.chunks else 0.0


NO_LENGTHS = Lengths(0, (0,) * len(FIELDS))


def lengths_of(lengths: NDArray[np.int32]) -> Lengths:
    """Return the number and the summed lengths of chunks. ``lengths`` has the shape ``(chunks, fields)``."""
    return Lengths(len(lengths), tuple(map(int, lengths.sum(axis=0, dtype=np.int64))))


@dataclass(frozen=True, slots=True)
class InvertedLists(Generic[K_contra]):
    """The chunks of each key, ascending.

    Attributes:
        offsets: the start of each key's chunks in ``chunk_nos``, and the end of the last key's chunks.
    """

    keys: Keys[K_contra]
    offsets: NDArray[Any]
    chunk_nos: Numbers

    def chunks(self, key: K_contra) -> Numbers:
        """Return the chunks of a key, ascending; empty if the key does not exist."""
        return self.chunk_nos[self.range_of(key)]

    def frequency(self, key: K_contra) -> int:
        """Count the chunks of a key."""
        where = self.range_of(key)
        return int(where.stop - where.start)

    def range_of(self, key: K_contra) -> slice:
        """Return the slice of a key's chunks in ``chunk_nos``; an empty slice if the key does not exist."""
        position = self.keys.find(key)
        return slice(0, 0) if position < 0 else slice(int(self.offsets[position]), int(self.offsets[position + 1]))


class FrequentTerms:
    """The weights of frequent terms in every chunk, one array per term. Thread-safe.

    Nearly all postings of a question belong to a few function words. Arrays are computed at first use. The most
    recently used arrays are kept, ``most_bytes`` at most (default 8 MB).
    """

    def __init__(self, chunk_count: int, size: int, most_bytes: int = FREQUENT_BYTES) -> None:
        """Store the sizes.

        Args:
            chunk_count: the number of chunks that can be found.
            size: the length of an array, which has a place for every chunk.
            most_bytes: the limit for all arrays together.
        """
        self._chunk_count = chunk_count
        self._most = max(1, most_bytes // max(4 * size, 1))
        self._rows: OrderedDict[Hashable, Scores] = OrderedDict()
        self._lock = threading.Lock()

    def is_frequent(self, frequency: int) -> bool:
        """Tell whether a term in this many chunks counts as frequent."""
        return frequency > self._chunk_count * FREQUENT_SHARE

    def row(self, key: Hashable, make: Callable[[], Scores]) -> Scores:
        """Return the array of ``key``, computed at first use. Callers must not write to it."""
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


def write_names(connection: Connection, arrays: ArrayWriter) -> None:
    """Write the lookup keys (``field:value``) of the table ``named`` as an index from key to chunks.

    Raises:
        OSError: the disk is full.
    """
    counted = "select name, count(*) as chunk_count from named group by name order by name"
    names = connection.sql(counted).to_arrow_table()
    write_texts(arrays, "names", names, "name")
    arrays.add_starts("names.starts", offsets_of(column_of(names, "chunk_count")))
    rows = batches(connection, "select chunk_no from named order by name, chunk_no")
    arrays.extend("names.chunks", np.int32, (row["chunk_no"] for row in rows))


def write_pairs(connection: Connection, arrays: ArrayWriter) -> None:
    """Write the word pairs of the table ``pairs`` as an index from pair key to chunks.

    Raises:
        OSError: the disk is full.
    """
    keys, starts = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
    count = 0

    def chunks() -> Iterator[Numbers]:
        nonlocal count
        last = None
        for rows in batches(connection, "select pair, chunk_no from pairs order by pair, chunk_no"):
            pairs = rows["pair"]
            first = np.flatnonzero(np.r_[last is None or pairs[0] != last, pairs[1:] != pairs[:-1]])
            keys.append(pairs[first])
            starts.append(first + count)
            last, count = pairs[-1], count + len(pairs)
            yield rows["chunk_no"]

    arrays.extend("pairs.chunks", np.int32, chunks())
    arrays.add("pairs.keys", np.concatenate(keys))
    arrays.add_starts("pairs.starts", np.append(np.concatenate(starts), count).astype(np.int64))


def load_names(arrays: Arrays) -> tuple[TextKeys, InvertedLists[str]]:
    """Open the lookup keys of ``write_names``, and their chunks."""
    keys = text_keys(arrays, "names")
    return keys, InvertedLists(keys, arrays["names.starts"], arrays["names.chunks"])


def load_pairs(arrays: Arrays) -> InvertedLists[int]:
    """Open the word pairs of ``write_pairs``."""
    return InvertedLists(NumberKeys(arrays["pairs.keys"]), arrays["pairs.starts"], arrays["pairs.chunks"])


def batches(connection: Connection, query: str) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Yield the rows of a query in order, in large batches."""
    for batch in connection.sql(query).to_arrow_reader(_BATCH_ROWS):
        if batch.num_rows:
            yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}


def write_texts(arrays: ArrayWriter, name: str, table: pa.Table, column: str) -> None:
    """Write texts one after another, with the start of each text and the end of the last one."""
    written, ends = texts_of(table, column)
    arrays.add_starts(f"{name}.text_starts", ends)
    arrays.add(f"{name}.text", written)


def texts_of(table: pa.Table, column: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of all texts in a column, the start of each text and the end of the last (Arrow's layout)."""
    texts = table.column(column).combine_chunks().cast(pa.large_string())
    _, starts, content = texts.buffers()
    ends = np.frombuffer(starts, np.int64)[texts.offset :][: len(texts) + 1] if len(texts) else np.zeros(1, np.int64)
    return np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]], ends - ends[0]


def text_keys(arrays: Arrays, name: str) -> TextKeys:
    """Open the keys of ``write_texts``."""
    return TextKeys(arrays[f"{name}.text_starts"], arrays[f"{name}.text"])


def offsets_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the starts of consecutive lists of these sizes, and the end of the last list."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def column_of(table: pa.Table, column: str) -> NDArray[Any]:
    """Return a column as an array."""
    return table.column(column).combine_chunks().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
