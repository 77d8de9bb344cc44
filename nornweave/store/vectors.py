"""Search vectors: a matrix in memory, or the ``vss`` index for large domains."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import simsimd
from numpy.typing import NDArray

from nornweave.store.connection import Connection
from nornweave.store.port import Mask, Numbers, Scores, Vectors
from nornweave.store.ranked_chunks import NO_HITS, Hits, best

# vss 1.5.5 crashes the process when more HNSW searches run at once than there are CPUs; two is safe everywhere.
_HNSW_SEARCHES = threading.BoundedSemaphore(2)
_BATCH_ROWS = 8192
# Below this share of chunks that pass a filter, gathering their rows is cheaper than scoring all.
_GATHER_SHARE = 0.25
_CODE_RANGE = 127
# So many more than are wanted are scored in full: the order by one byte a component is off by a few places.
_SPARE_RESCORED = 50


class VectorIndex(Protocol):
    """Searches vectors by cosine similarity."""

    def search(self, query: Vectors, k: int, within: Mask | None, seen: Numbers | None = None) -> Hits:
        """Return the ``k`` most similar chunks; among those of ``within`` exactly.

        Args:
            query: normalised vector.
            k: how many.
            within: which chunks may be found.
            seen: chunks that there are at all, ascending; those of ``within`` are among them. ``None`` for all.
        """

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order."""

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks, in their order, of shape ``(len(numbers), dimensions)``."""


class VectorMatrix:
    """All vectors in memory, of shape ``(chunks, dimensions)``, in the order of chunk numbers.

    A search places every vector by one byte a component, which reads a quarter of the memory, and scores the best of
    them again in full. What is returned is scored in full; of the ten nearest among random vectors it misses less than
    one in a hundred.
    """

    def __init__(self, matrix: Vectors) -> None:
        self.matrix = np.ascontiguousarray(matrix, np.float32)
        self._codes, self._scales = _encoded(self.matrix)

    def search(self, query: Vectors, k: int, within: Mask | None, seen: Numbers | None = None) -> Hits:
        """Return the ``k`` most similar chunks."""
        numbers = seen if within is None else np.flatnonzero(within).astype(np.int32)
        count, rescored = len(self.matrix) if seen is None else len(seen), k + max(k, _SPARE_RESCORED)
        is_few = numbers is not None and (len(numbers) <= rescored or len(numbers) <= count * _GATHER_SHARE)
        if numbers is not None and within is not None and is_few:
            return best(self.similarities(query, numbers), k, numbers)
        near = best(_estimates(query, self._codes, self._scales, numbers), rescored, numbers).numbers
        return best(self.similarities(query, near), k, near)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order; equal vectors have equal ones."""
        return _products(query, self.matrix[numbers])

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks, in their order."""
        return np.asarray(self.matrix[numbers], np.float32)


class HnswVectors:
    """The ``vss`` index of the generation file; what it does not return is scored from one byte a component.

    ``codes`` times ``scales`` is a vector within 0.4 % of its largest component: good enough to place a candidate that
    another retrieval source found, at a quarter of the memory.
    """

    def __init__(self, connection: Connection, codes: NDArray[np.int8], scales: Scores):
        self._connection = connection
        self._codes = codes
        self._scales = scales

    def search(self, query: Vectors, k: int, within: Mask | None, seen: Numbers | None = None) -> Hits:
        """Return the ``k`` most similar chunks; exact only among those of ``within``.

        The index knows chunks that must not be seen. Where there are some it is left out: all codes are compared, and
        the nearest scored in full.
        """
        if within is None and seen is not None:
            within = np.zeros(len(self._codes), np.bool_)
            rescored = k + max(k, _SPARE_RESCORED)
            within[best(_estimates(query, self._codes, self._scales, seen), rescored, seen).numbers] = True
        # Six digits keep single precision; a bound list costs fifty times as much (facts).
        literal = "[" + ",".join(f"{value:.6g}" for value in query) + "]"
        cursor = self._connection.cursor()
        if within is None:
            with _HNSW_SEARCHES:
                found = cursor.execute(nearest_statement(len(query)), [literal, k]).fetchnumpy()
        else:
            cursor.register("qualifying", _number_table(np.flatnonzero(within)))
            # The index filters after searching, which loses qualifying rows; a second sort key keeps it out.
            statement = f"""
                select chunk_no, array_cosine_distance(vector, ?::float[{len(query):d}]) as distance
                from vectors
                semi join qualifying using (chunk_no)
                order by distance, chunk_no
                limit ?
                """
            found = cursor.execute(statement, [literal, k]).fetchnumpy()
        if not len(found["chunk_no"]):
            return NO_HITS
        return best((1 - found["distance"]).astype(np.float32), k, found["chunk_no"].astype(np.int32))

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order, within 0.01."""
        return np.asarray((self._codes[numbers].astype(np.float32) @ query) * self._scales[numbers], np.float32)

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks, in their order, within 0.4 % of the largest component of each."""
        return np.asarray(self._codes[numbers].astype(np.float32) * self._scales[numbers][:, None], np.float32)


def nearest_statement(dimensions: int) -> str:
    """Return the query that the index answers.

    vss 1.5.5 takes part only when what is sorted by is what is selected: ``1 - distance as score`` scans every vector
    (300,000 chunks: 336 ms instead of 5).
    """
    return f"""
        select chunk_no, array_cosine_distance(vector, ?::float[{dimensions:d}]) as distance
        from vectors
        order by distance
        limit ?
        """


def load_matrix(connection: Connection, count: int, dimensions: int) -> VectorMatrix:
    """Read all vectors into memory."""
    matrix = np.zeros((count, dimensions), dtype=np.float32)
    for numbers, vectors in _batches(connection, dimensions):
        matrix[numbers] = vectors
    return VectorMatrix(matrix)


def load_hnsw(connection: Connection, count: int, dimensions: int, *, search_width: int) -> HnswVectors:
    """Open the index of the file, and read one byte a component.

    Args:
        connection: at the generation, with ``vss`` loaded.
        count: of the vectors.
        dimensions: of a vector.
        search_width: candidates that a search keeps (``hnsw_ef_search``). The index does not keep it (vss 1.5.5), and
            with the default of ``vss`` finds .95 of the ten nearest.
    """
    connection.execute(f"set global hnsw_ef_search = {search_width:d}")
    codes = np.zeros((count, dimensions), dtype=np.int8)
    scales = np.zeros(count, dtype=np.float32)
    for numbers, vectors in _batches(connection, dimensions):
        codes[numbers], scales[numbers] = _encoded(vectors)
    return HnswVectors(connection, codes, scales)


def _estimates(query: Vectors, codes: NDArray[np.int8], scales: Scores, numbers: Numbers | None) -> Scores:
    """Return numbers in the order of the similarities, nearly, of these chunks or of all."""
    code = _encoded(np.asarray(query, np.float32)[None])[0][0]
    if numbers is not None and len(numbers) <= len(codes) * _GATHER_SHARE:
        return _products(code, codes[numbers]) * scales[numbers]
    estimates = _products(code, codes) * scales
    return estimates if numbers is None else estimates[numbers]


def _encoded(vectors: Vectors) -> tuple[NDArray[np.int8], Scores]:
    """Return vectors as one byte a component, and the scale of each: codes times scale is the vector, nearly."""
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / _CODE_RANGE
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def _products(vector: NDArray[Any], rows: NDArray[Any]) -> Scores:
    """Return the product of a vector with each row, both of one type.

    Of bytes SimSIMD takes a third of the CPU time that ``rows @ vector`` takes of numbers in full (NumPy 2.4). Each row
    is multiplied by itself, so that equal rows have equal products.
    """
    if not len(rows):
        return np.zeros(0, np.float32)
    products: Scores = np.asarray(simsimd.cdist(vector[None], rows, "dot", out_dtype="float32"))[0]
    return products


def _batches(connection: Connection, dimensions: int) -> Iterator[tuple[NDArray[np.int32], Vectors]]:
    reader = connection.execute("select chunk_no, vector from vectors").to_arrow_reader(_BATCH_ROWS)
    for batch in reader:
        yield batch.column("chunk_no").to_numpy(), batch.column("vector").flatten().to_numpy().reshape(-1, dimensions)


def _number_table(numbers: NDArray[np.int64]) -> pa.Table:
    return pa.table({"chunk_no": numbers.astype(np.int32)})
