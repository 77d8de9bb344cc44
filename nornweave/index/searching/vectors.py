"""Search vectors: in a mapped matrix, or in the ``vss`` index for large domains.

The vectors of the tokens of each chunk, mapped beside the generation, and how well they match those of a query.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol, Self

import numpy as np
import simsimd
from numpy.typing import NDArray

from nornweave.index.connection import Connection
from nornweave.index.port import Hits, Mask, Numbers, Scores, Vectors, best
from nornweave.index.searching.arrays import Arrays, ArrayWriter
from nornweave.models.encoders.port import TOKEN_DIMENSIONS, TOKEN_LENGTH

# vss 1.5.5 crashes the process when more HNSW searches run at once than there are CPUs; two is safe everywhere.
_HNSW_SEARCHES = threading.BoundedSemaphore(2)
_BATCH_ROWS = 8192
# Below this share of chunks that pass a filter, gathering their rows is cheaper than scoring all.
_GATHER_SHARE = 0.25
_CODE_RANGE = 127
# Score this many times the wanted chunks exactly: the order by 8-bit codes is off by a few places.
_SPARE_RESCORED = 50


class VectorIndex(Protocol):
    """Searches vectors by cosine similarity."""

    def search(self, query: Vectors, k: int, within: Mask | None, seen: Numbers | None = None) -> Hits:
        """Return the ``k`` most similar chunks. If ``within`` is given, the search is exact.

        Args:
            query: a normalised vector.
            seen: the visible chunks, ascending, including ``within``; ``None`` for all.
        """

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarities of some chunks, in their order."""

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks, in their order, of shape ``(len(numbers), dimensions)``."""


class VectorMatrix:
    """All vectors, of shape ``(chunks, dimensions)``, by chunk number.

    A search first ranks all vectors by their 8-bit codes, which reads a quarter of the memory. Then it scores the best
    vectors exactly. So all returned scores are exact, but a near vector can be missed: among random vectors, less than
    one in a hundred of the ten nearest. All processes share the mapped codes.
    """

    def __init__(self, matrix: Vectors, codes: NDArray[np.int8], scales: Scores) -> None:
        self.matrix = matrix
        self.codes = codes
        self.scales = scales

    @classmethod
    def of(cls, matrix: Vectors) -> Self:
        """Return an index over vectors in memory."""
        full = np.ascontiguousarray(matrix, np.float32)
        return cls(full, *encoded(full))

    def search(self, query: Vectors, k: int, within: Mask | None, seen: Numbers | None = None) -> Hits:
        numbers = seen if within is None else np.flatnonzero(within).astype(np.int32)
        count, rescored = len(self.matrix) if seen is None else len(seen), k + max(k, _SPARE_RESCORED)
        is_few = numbers is not None and (len(numbers) <= rescored or len(numbers) <= count * _GATHER_SHARE)
        if numbers is not None and within is not None and is_few:
            return best(self.similarities(query, numbers), k, numbers)
        near = best(_estimates(query, self.codes, self.scales, numbers), rescored, numbers).numbers
        return best(self.similarities(query, near), k, near)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarities of some chunks, in their order. Equal vectors give equal values."""
        return products(query, self.matrix[numbers])

    def vectors(self, numbers: Numbers) -> Vectors:
        return np.asarray(self.matrix[numbers], np.float32)


class HnswVectors:
    """An HNSW index for searches of all chunks; other operations use the matrix."""

    def __init__(self, connection: Connection, matrix: VectorMatrix):
        self._connection = connection
        self._matrix = matrix

    def search(self, query: Vectors, k: int, within: Mask | None, seen: Numbers | None = None) -> Hits:
        """Return the ``k`` most similar chunks. The arguments are those of ``VectorIndex.search``.

        A search that excludes chunks uses the matrix, because the index filters after its search (vss 1.5.5), which
        loses qualifying chunks. Scores always come from the matrix, so they do not reveal which one was searched.
        """
        if within is not None or seen is not None:
            return self._matrix.search(query, k, within, seen)
        # Six digits keep single precision; a bound list costs fifty times as much (facts).
        literal = "[" + ",".join(f"{value:.6g}" for value in query) + "]"
        with _HNSW_SEARCHES:
            nearest = self._connection.cursor().execute(nearest_statement(len(query)), [literal, k]).fetchnumpy()
        numbers = nearest["chunk_no"].astype(np.int32)
        return best(self.similarities(query, numbers), k, numbers)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        return self._matrix.similarities(query, numbers)

    def vectors(self, numbers: Numbers) -> Vectors:
        return self._matrix.vectors(numbers)


def nearest_statement(dimensions: int) -> str:
    """Return a query for the nearest vectors for which DuckDB uses the index.

    vss 1.5.5 uses its index only if the sort key is selected unchanged. A query that selects ``1 - distance as score``
    scans every vector, which takes 336 ms instead of 5 for 300,000 chunks.
    """
    return f"""
        select chunk_no, array_cosine_distance(vector, ?::float[{dimensions:d}]) as distance
        from vectors
        order by distance
        limit ?
        """


def write_vectors(connection: Connection, arrays: ArrayWriter, count: int, dimensions: int) -> None:
    """Write the vectors of the table ``vectors`` twice: exact, and as 8-bit codes with one scale per vector.

    Raises:
        OSError: the disk is full.
    """
    codes = arrays.reserve("codes", np.int8, (count, dimensions))
    scales = arrays.reserve("scales", np.float32, (count,))
    matrix = arrays.reserve("vectors", np.float32, (count, dimensions))
    reader = connection.sql("select chunk_no, vector from vectors").to_arrow_reader(_BATCH_ROWS)
    for batch in reader:
        numbers = batch.column("chunk_no").to_numpy()
        vectors = batch.column("vector").flatten().to_numpy().reshape(-1, dimensions)
        codes[numbers], scales[numbers] = encoded(vectors)
        matrix[numbers] = vectors


def load_matrix(arrays: Arrays) -> VectorMatrix:
    """Open the matrix of ``write_vectors``."""
    return VectorMatrix(arrays["vectors"], arrays["codes"], arrays["scales"])


def load_hnsw(connection: Connection, arrays: Arrays, *, search_width: int) -> HnswVectors:
    """Open the index of the file.

    Args:
        connection: a connection to the generation, with ``vss`` loaded.
        arrays: the arrays that ``write_vectors`` wrote.
        search_width: the number of candidates of a search (``hnsw_ef_search``). The index does not store it (vss
            1.5.5). With the default of ``vss``, a search finds 95 % of the ten nearest vectors.
    """
    connection.execute(f"set global hnsw_ef_search = {search_width:d}")
    return HnswVectors(connection, load_matrix(arrays))


def _estimates(query: Vectors, codes: NDArray[np.int8], scales: Scores, numbers: Numbers | None) -> Scores:
    """Return approximate similarities, times a common factor, of ``numbers``, or of all chunks if it is ``None``."""
    code = encoded(np.asarray(query, np.float32)[None])[0][0]
    if numbers is not None and len(numbers) <= len(codes) * _GATHER_SHARE:
        return products(code, codes[numbers]) * scales[numbers]
    estimates = products(code, codes) * scales
    return estimates if numbers is None else estimates[numbers]


def encoded(vectors: Vectors) -> tuple[NDArray[np.int8], Scores]:
    """Return vectors as 8-bit codes, and the scale of each vector. Its codes times its scale approximate the vector."""
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / _CODE_RANGE
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def products(vector: NDArray[Any], rows: NDArray[Any]) -> Scores:
    """Return the product of a vector with each row. Vector and rows must have the same type.

    For bytes, SimSIMD takes a third of the CPU time of ``rows @ vector`` in float32 (NumPy 2.4). Each row is multiplied
    separately, so that equal rows have equal products.
    """
    if not len(rows):
        return np.zeros(0, np.float32)
    return np.asarray(simsimd.cdist(vector[None], rows, "dot", out_dtype="float32"), np.float32)[0]  # type: ignore[no-any-return]


ROWS, STARTS = "tokens", "token_starts"
CHANCE = 0.05
"""What the best of e times as many tokens is nearer by, whatever they say."""
_ROWS_AT_ONCE = 1_024


class TokenVectors:
    """The token vectors of a file. Chunk ``n`` has the rows from ``starts[n]`` to ``starts[n + 1]``."""

    def __init__(self, arrays: Arrays) -> None:
        """Open the arrays of ``write_token_vectors``, which may be missing."""
        self._rows: NDArray[np.int8] = arrays.get(ROWS, np.zeros((0, TOKEN_DIMENSIONS), np.int8))
        self._starts = arrays.get(STARTS)

    def matches(self, tokens: NDArray[np.int8], numbers: Numbers) -> Scores:
        """Return the similarity of each token to the nearest token of each chunk, minus the chance similarity.

        The chance similarity is the one that a chunk with this number of tokens has to any token.

        Returns:
            An array of shape ``(len(numbers), len(tokens))``, with 0 for a chunk without tokens.
        """
        matches = np.zeros((len(numbers), len(tokens)), np.float32)
        if self._starts is None or not len(tokens) or not len(numbers):
            return matches
        starts, counts = self._starts[numbers], self._starts[numbers + 1] - self._starts[numbers]
        held = np.flatnonzero(counts)
        if not len(held):
            return matches
        starts, counts = starts[held], counts[held]
        rows = np.concatenate([self._rows[start : start + count] for start, count in zip(starts, counts, strict=True)])
        # Whole numbers below 2²⁴, so that float32 is exact: that takes half the time of a product of bytes (SimSIMD 6).
        products = rows.astype(np.float32) @ tokens.astype(np.float32).T
        nearest = np.maximum.reduceat(products, np.cumsum(counts) - counts) / np.float32(TOKEN_LENGTH**2)
        matches[held] = nearest - CHANCE * np.log(counts + 1)[:, None]
        return matches


def write_token_vectors(connection: Connection, arrays: ArrayWriter, count: int) -> None:
    """Write the token vectors of the table ``vectors``, if there are any.

    Raises:
        OSError: the disk is full.
    """
    held = connection.execute(
        "select chunk_no, octet_length(tokens) as bytes from vectors where tokens is not null"
    ).fetchnumpy()
    if not len(held["chunk_no"]):
        return
    starts = np.zeros(count + 1, np.int64)
    starts[held["chunk_no"] + 1] = held["bytes"] // TOKEN_DIMENSIONS
    np.cumsum(starts, out=starts)
    arrays.add_starts(STARTS, starts)
    rows = arrays.reserve(ROWS, np.int8, (int(starts[-1]), TOKEN_DIMENSIONS))
    reader = connection.sql("select chunk_no, tokens from vectors where tokens is not null")
    for batch in reader.to_arrow_reader(_ROWS_AT_ONCE):
        for number, tokens in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            rows[starts[number] : starts[number + 1]] = np.frombuffer(tokens, np.int8).reshape(-1, TOKEN_DIMENSIONS)


class SettingVectors:
    """The vectors of the words that describe each setting. Those of chunk ``n`` are the rows from ``starts[n]`` on.

    A component is one byte. This is precise enough, because the vectors are only compared with questions.
    """

    def __init__(self, arrays: Arrays) -> None:
        """Open the arrays of ``write_settings``, which may be missing."""
        self._starts = arrays.get("setting_starts")
        if self._starts is not None:
            self._codes, self._scales, self._places = (
                arrays[name] for name in ("settings", "setting_scales", "setting_places")
            )

    def similarities(self, query: Vectors, numbers: Numbers) -> dict[int, dict[int, float]]:
        """Return the cosine similarities of a query to the settings of some chunks.

        The result is chunk → place of the setting among the chunk's facts → similarity.
        """
        if self._starts is None or not len(numbers):
            return {}
        bounds = [(number, *self._starts[number : number + 2].tolist()) for number in numbers.tolist()]
        rows = np.concatenate([np.arange(first, last) for _, first, last in bounds])
        code, scale = encoded(np.asarray(query, np.float32)[None])
        alike = iter((products(code[0], self._codes[rows]) * (self._scales[rows] * scale[0])).tolist())
        return {
            number: dict(zip(self._places[first:last].tolist(), alike, strict=False)) for number, first, last in bounds
        }


def write_settings(connection: Connection, arrays: ArrayWriter, count: int, dimensions: int) -> None:
    """Write the vectors of the view ``settings``, if there are any.

    Raises:
        OSError: the disk is full.
    """
    of = connection.execute("select chunk_no, position from described order by rowid").fetchnumpy()
    if not len(of["chunk_no"]):
        return
    arrays.add_starts("setting_starts", np.searchsorted(of["chunk_no"], np.arange(count + 1)))
    arrays.add("setting_places", of["position"])
    codes = arrays.reserve("settings", np.int8, (len(of["chunk_no"]), dimensions))
    scales = arrays.reserve("setting_scales", np.float32, (len(of["chunk_no"]),))
    for batch in connection.execute("select setting_no, vector from settings").to_arrow_reader(_BATCH_ROWS):
        rows = batch.column("setting_no").to_numpy()
        codes[rows], scales[rows] = encoded(batch.column("vector").flatten().to_numpy().reshape(-1, dimensions))
