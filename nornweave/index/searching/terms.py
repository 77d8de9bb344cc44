"""The BM25 tables of a file: the chunks of each term, and its weight there.

BM25 over weighted fields: Robertson & Zaragoza 2009, eq. 3.15; fields as in Robertson, Zaragoza & Taylor 2004:
occurrences and lengths are weighted before they saturate, as if a field was written that many times over.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nornweave.config import Bm25Settings, FieldWeights
from nornweave.core.types import FIELDS
from nornweave.index.connection import Connection
from nornweave.index.port import Mask, Numbers, Scores
from nornweave.index.searching.arrays import Arrays, ArrayWriter
from nornweave.index.searching.inverted import (
    FREQUENT_SHARE,
    InvertedLists,
    Lengths,
    batches,
    column_of,
    lengths_of,
    offsets_of,
    text_keys,
    write_texts,
)


def saturations(lengths: NDArray[np.int32], average: float, bm25: Bm25Settings) -> Scores:
    """Return ``k1 · (1 - b + b · length / average)`` for each chunk.

    A term with this number of occurrences in the chunk has half of the highest possible weight.

    Args:
        lengths: the number of terms of each chunk in each field, of shape ``(chunks, fields)``.
        average: the mean weighted length of the chunks of the corpus.
        bm25: ``k1``, ``b`` and the weight of each field.
    """
    weighted = weighted_lengths(lengths, bm25.fields)
    return (bm25.k1 * (1 - bm25.b + bm25.b * weighted / (average or 1.0))).astype(np.float32)


def weighted_lengths(lengths: NDArray[np.int32], fields: FieldWeights) -> NDArray[np.float64]:
    """Return the length of each chunk, with weighted fields."""
    return np.asarray(lengths @ np.array(fields.values), np.float64)


def saturated(frequencies: Scores, half: Scores, bm25: Bm25Settings) -> Scores:
    """Return weights of terms before idf, in [0, k1 + 1): ``f · (k1 + 1) / (f + half)``.

    Args:
        frequencies: weighted occurrences of a term in a chunk, ≥ 0.
        half: ``saturations`` of these chunks, > 0.
    """
    return (frequencies * np.float32(bm25.bound) / (frequencies + half)).astype(np.float32)


# Tuning compares five weights of one field at a time, and a generation has another average length than the one before.
_REMEMBERED_SETTINGS = 6
# Questions share words. An entry takes eight bytes per chunk of a term; frequent terms are stored elsewhere.
_RECENT_TERMS = 64
# How often a term stands in a field of a chunk; in the content as often as in no other field.
_FIELDS = tuple(f"terms.in_{field}" for field in FIELDS[:-1])
_SLICE = 1 << 18


class WeightedTerms:
    """The chunks of each term, and its weight in each of them before idf, for one BM25 setting. Thread-safe.

    Weights are computed from frequencies on demand, because they depend on the corpus's average length, which changes
    with every publication.
    """

    def __init__(
        self, lists: InvertedLists[str], frequencies: Scores, half: Scores, bm25: Bm25Settings, seen: Mask | None = None
    ) -> None:
        """Store the arguments.

        Args:
            lists: term → chunks.
            frequencies: the weighted occurrences, parallel to ``lists.chunk_nos``.
            half: the ``saturations`` of every chunk.
            seen: a mask of the chunks that may be found; ``None`` for all.
        """
        self._lists = lists
        self._frequencies = frequencies
        self._half = half
        self._bm25 = bm25
        self._seen = seen
        self._recent = lru_cache(maxsize=_RECENT_TERMS)(self._made)

    def weighted(self, term: str) -> tuple[Numbers, Scores]:
        """Return the chunks of a term, ascending, and its weight in each. Callers must not write to these arrays."""
        is_frequent = self._lists.frequency(term) > len(self._half) * FREQUENT_SHARE
        return self._made(term) if is_frequent else self._recent(term)

    def _made(self, term: str) -> tuple[Numbers, Scores]:
        where = self._lists.range_of(term)
        chunks, frequencies = self._lists.chunk_nos[where], self._frequencies[where]
        if self._seen is not None:
            kept = self._seen[chunks]
            chunks, frequencies = chunks[kept], frequencies[kept]
        return chunks, saturated(frequencies, self._half[chunks], self._bm25)

    def weights(self, terms: Sequence[str], numbers: Numbers) -> Scores:
        """Return the weights of terms in some chunks, one column per term; 0 where a term is missing."""
        return np.column_stack([np.zeros((len(numbers), 0), np.float32), *(self._in(term, numbers) for term in terms)])

    def _in(self, term: str, numbers: Numbers) -> Scores:
        where = self._lists.range_of(term)
        chunks = self._lists.chunk_nos[where]
        if not len(chunks):
            return np.zeros(len(numbers), np.float32)
        places = np.minimum(np.searchsorted(chunks, numbers), len(chunks) - 1)
        holds = chunks[places] == numbers
        if self._seen is not None:
            holds &= self._seen[numbers]
        weights = saturated(self._frequencies[where][places], self._half[numbers], self._bm25)
        return np.where(holds, weights, np.float32(0))


class TermLists:
    """The BM25 tables. They hold the chunks and occurrences of each term, and the lengths of chunks. Thread-safe."""

    def __init__(self, arrays: Arrays) -> None:
        """Open the arrays of ``write_terms``."""
        self.lengths: NDArray[np.int32] = arrays["lengths"]
        self.own = lengths_of(self.lengths)
        self.lists = InvertedLists(text_keys(arrays, "terms"), arrays["terms.starts"], arrays["terms.chunks"])
        self._all: NDArray[Any] = arrays["terms.frequencies"]
        self._fields: list[NDArray[Any]] = [arrays[name] for name in _FIELDS if name in arrays]
        self._lock = threading.Lock()
        self._frequencies: dict[FieldWeights, Scores] = {}
        self.by = lru_cache(maxsize=_REMEMBERED_SETTINGS)(self._by)

    def _by(self, bm25: Bm25Settings, corpus: Lengths) -> WeightedTerms:
        """Return the weighted terms for a BM25 setting. ``corpus`` gives the average length of a chunk."""
        half = saturations(self.lengths, corpus.average(bm25), bm25)
        return WeightedTerms(self.lists, self.frequencies(bm25.fields), half, bm25)

    def frequencies(self, fields: FieldWeights) -> Scores:
        """Return each term's weighted occurrences, parallel to ``lists.chunk_nos``.

        If the fields have different weights, the numbers are computed on demand (four bytes per posting). Those for
        recent settings are kept. A file of an earlier version has no fields, so its terms have weight 1.
        """
        if set(fields.values) == {1} or not self._fields:
            return self._all
        with self._lock:
            if fields not in self._frequencies:
                recent = [*self._frequencies][1 - _REMEMBERED_SETTINGS :]
                made = {fields: self._weighted(fields)}
                self._frequencies = {known: self._frequencies[known] for known in recent} | made
            return self._frequencies[fields]

    def _weighted(self, fields: FieldWeights) -> Scores:
        weighted = np.zeros(len(self._all), np.float32)
        for start in range(0, len(weighted), _SLICE):
            part = slice(start, start + _SLICE)
            others = [occurrences[part].astype(np.float64) for occurrences in self._fields]
            counts = (*others, self._all[part] - sum(others))
            weighted[part] = sum(count * weight for count, weight in zip(counts, fields.values, strict=True))
        return weighted


def write_terms(connection: Connection, arrays: ArrayWriter) -> None:
    """Write the BM25 tables with the smallest number types.

    Raises:
        OSError: the disk is full.
    """
    terms = connection.sql("select term, document_frequency from terms").to_arrow_table()
    write_texts(arrays, "terms", terms, "term")
    starts = offsets_of(column_of(terms, "document_frequency"))
    arrays.add_starts("terms.starts", starts)
    fields = [f"in_{field}" for field in FIELDS]
    lengths = connection.sql(f"select {', '.join(fields)} from lengths").to_arrow_table()
    arrays.add("lengths", np.column_stack([column_of(lengths, field) for field in fields]).astype(np.int32))
    chunks = arrays.reserve("terms.chunks", np.int32, (int(starts[-1]),))
    counted = dict(zip(_FIELDS, fields[:-1], strict=True))
    counted["terms.frequencies"] = " + ".join(f"{field}::integer" for field in fields)
    largest = connection.execute(f"select {', '.join(f'max({each})' for each in counted.values())} from postings")
    numbers = {
        name: arrays.reserve(name, np.min_scalar_type(most or 0), chunks.shape)
        for name, most in zip(counted, *largest.fetchall(), strict=True)
    }
    named = ", ".join(f'{each} as "{name}"' for name, each in counted.items())
    start = 0
    for postings in batches(connection, f"select chunk_no, {named} from postings"):
        end = start + len(postings["chunk_no"])
        chunks[start:end] = postings["chunk_no"]
        for name, array in numbers.items():
            array[start:end] = postings[name]
        start = end
