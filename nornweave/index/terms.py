"""The BM25 tables of a generation: which chunks hold a term, and what it counts for there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nornweave.config import Bm25Settings, FieldWeights
from nornweave.core.types import FIELDS
from nornweave.index.arrays import Arrays, ArrayWriter
from nornweave.index.bm25 import saturated, saturations
from nornweave.index.connection import Connection
from nornweave.index.inverted import (
    DEFAULT_BM25,
    InvertedLists,
    Lengths,
    column_of,
    in_order,
    lengths_of,
    offsets_of,
    read_sorted,
    strings_of,
    text_keys,
    write_texts,
)
from nornweave.index.port import Scores

# Tuning compares five weights of one field at a time.
_REMEMBERED_SETTINGS = 6
_NONE = np.zeros(0, np.float32)


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
            text_keys(arrays, "terms"), arrays["terms.starts"], arrays["terms.chunks"], arrays["terms.weights"]
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
    terms = read_sorted(connection, "select term_id, term, document_frequency from terms", "term_id")
    write_texts(arrays, "terms", strings_of(terms, "term"))
    starts = offsets_of(column_of(terms, "document_frequency"))
    arrays.add("terms.starts", starts)
    columns = ", ".join(f"in_{field}" for field in FIELDS)
    read = read_sorted(connection, f"select chunk_no, {columns} from lengths", "chunk_no")
    lengths = np.column_stack([column_of(read, f"in_{field}") for field in FIELDS]).astype(np.int32)
    arrays.add("lengths", lengths)
    half = saturations(lengths, lengths_of(lengths).average(DEFAULT_BM25), DEFAULT_BM25)
    chunks = arrays.reserve("terms.chunks", np.int32, (int(starts[-1]),))
    weights = arrays.reserve("terms.weights", np.float32, chunks.shape)
    for start, postings in _postings(connection, DEFAULT_BM25.fields):
        numbers = postings["chunk_no"]
        chunks[start : start + len(numbers)] = numbers
        weights[start : start + len(numbers)] = saturated(postings["frequency"], half[numbers], DEFAULT_BM25)


def _postings(connection: Connection, fields: FieldWeights) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Yield where each batch of postings starts, and how often terms stand in chunks, their fields weighted."""
    weighed = " + ".join(f"in_{field} * ?::double" for field in FIELDS)
    query = f"select term_id, chunk_no, ({weighed})::float as frequency from postings"
    return in_order(connection, query, "term_id", fields.values)
