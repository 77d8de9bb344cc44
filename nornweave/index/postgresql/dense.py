"""Search vectors: codes in memory or an HNSW index of pgvector find candidates, full vectors rank them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
from pgvector import Vector
from pgvector.psycopg import register_vector

from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.postgresql.server import Connection, Server
from nornweave.index.postgresql.terms import CACHE_BYTES
from nornweave.index.ranked_chunks import NO_HITS, Hits, best
from nornweave.index.vectors import VectorMatrix, encoded

# pgvector's largest.
MOST_EF_SEARCH = 1_000
# So many more than are wanted are ranked by the full vectors: half precision is off by a few places.
_SPARE = 50
# Below this many chunks that pass a filter all of them are compared: reading them costs less than a search that the
# filter makes go on and on.
_FEW = 2_000
_FEW_SHARE = 0.02
# Then a search under a filter gives up (pgvector's default); what it has not found by then is compared one by one.
_MOST_SCANNED = 20_000


# What a remembered vector takes beside its components.
_ROW_BYTES = 200


class PostgresVectors:
    """The vectors of a generation; implements ``vectors.VectorIndex``; safe to use from several threads."""

    def __init__(self, server: Server, table: str, count: int, dimensions: int, *, indexed: bool, width: int) -> None:
        """Store the parameters.

        Args:
            server: with the table.
            table: of the vectors, a constant of the caller.
            count: of the vectors.
            dimensions: of a vector.
            indexed: whether the table has an HNSW index.
            width: candidates that a search of the index keeps (``hnsw_ef_search``).
        """
        self._server = server
        self._rows = FetchedRows(server, table, count, dimensions)
        self._table = table
        self._count = count
        self._dimensions = dimensions
        self._indexed = indexed
        self._width = min(width, MOST_EF_SEARCH)

    def search(self, query: Vectors, k: int, within: Mask | None, seen: Numbers | None = None) -> Hits:
        """Return the ``k`` most similar chunks; of a few they are exact."""
        numbers = seen if within is None else np.flatnonzero(within).astype(np.int32)
        if k <= 0 or (numbers is not None and not len(numbers)):
            return NO_HITS
        vector = np.asarray(query, np.float32)
        if numbers is not None and len(numbers) <= max(_FEW, self._count * _FEW_SHARE):
            return self._exact(vector, k, "where chunk_no = any(%(allowed)s)", numbers.tolist())
        mask = None if numbers is None else _bits(numbers, self._count)
        where = "" if mask is None else "where get_bit(%(allowed)s, chunk_no) = 1"
        if self._indexed:
            hits = self._nearest(vector, k, where, mask)
            if len(hits) >= min(k, self._count if numbers is None else len(numbers)):
                return hits  # else the search gave up among chunks that do not pass
        return self._exact(vector, k, where, mask)

    def _exact(self, query: Vectors, k: int, where: str, allowed: object) -> Hits:
        return self._hits(
            f"""
            select chunk_no, -(vector <#> %(query)s) as score
            from {self._table} {where}
            order by vector <#> %(query)s, chunk_no
            limit %(k)s
            """,
            {"query": Vector(query), "allowed": allowed, "k": k},
            k,
        )

    def _nearest(self, query: Vectors, k: int, where: str, allowed: object) -> Hits:
        half = f"halfvec({self._dimensions:d})"
        return self._hits(
            f"""
            with near as materialized (
              select chunk_no, vector
              from {self._table} {where}
              order by vector::{half} <=> %(query)s::{half}
              limit %(near)s
            )
            select chunk_no, -(vector <#> %(query)s) as score
            from near
            order by score desc, chunk_no
            limit %(k)s
            """,
            {"query": Vector(query), "allowed": allowed, "near": k + max(k, _SPARE), "k": k},
            k,
            width=max(self._width, min(2 * k, MOST_EF_SEARCH)),
        )

    def _hits(self, statement: str, values: dict[str, object], k: int, *, width: int = 0) -> Hits:
        def work(connection: Connection) -> list[tuple[Any, ...]]:
            prepare(connection)
            if not width:
                return connection.execute(statement, values, binary=True).fetchall()
            with connection.pipeline(), connection.transaction():  # one round trip
                # Under a filter the search goes on until enough pass it, however few of the nearest do.
                connection.execute(
                    "select set_config('hnsw.ef_search', %s, true), "
                    "set_config('hnsw.iterative_scan', 'relaxed_order', true), "
                    "set_config('hnsw.max_scan_tuples', %s, true), "
                    # The planner takes every filter to pass 0.5 %, and would compare all vectors and sort them.
                    "set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)",
                    [str(width), str(_MOST_SCANNED)],
                )
                found = connection.execute(statement, values, binary=True)
            return found.fetchall()

        rows = self._server.read(work)
        numbers = np.array([number for number, _ in rows], np.int32)
        return best(np.array([score for _, score in rows], np.float32), k, numbers)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order; the server multiplies, a vector stays there."""
        asked = np.asarray(numbers, np.int32)
        statement = f"select chunk_no, -(vector <#> %s) from {self._table} where chunk_no = any(%s)"

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            prepare(connection)
            vector = Vector(np.asarray(query, np.float32))
            return connection.execute(statement, [vector, np.unique(asked).tolist()], binary=True).fetchall()

        scores = dict(self._server.read(work)) if len(asked) else {}
        return np.array([scores[number] for number in asked.tolist()], np.float32)

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks, in their order, of shape ``(len(numbers), dimensions)``."""
        return self._rows[numbers]


class CodedVectors(VectorMatrix):
    """The search of a generation file: one byte a component in memory; of the best, full vectors are fetched.

    A filter decides among the codes, whatever passes it: fetching every vector that passes would take longer.
    """

    gather_share = 0.0

    def __init__(self, rows: FetchedRows, codes: bytes, dimensions: int) -> None:
        """Store the parameters; of each vector ``codes`` holds its scale and then its components."""
        stored = np.frombuffer(codes, [("scale", "<f4"), ("code", "i1", (dimensions,))])
        super().__init__(rows, np.ascontiguousarray(stored["code"]), stored["scale"].astype(np.float32))


class FetchedRows:
    """The vectors of a generation in full, fetched by number; the last ones are remembered.

    One question asks for the same vectors up to three times: to rank them, to score what other sources found, and to
    leave out near duplicates. Safe to use from several threads.
    """

    def __init__(self, server: Server, table: str, count: int, dimensions: int) -> None:
        """Store the parameters; the table is a constant of the caller."""
        self._server = server
        self._statement = f"select chunk_no, vector_send(vector) from {table} where chunk_no = any(%s)"
        self._count = count
        self._dimensions = dimensions
        self._most = CACHE_BYTES // (dimensions * 4 + _ROW_BYTES)
        self._lock = threading.Lock()
        self._remembered: OrderedDict[int, Vectors] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks, in their order; what is not remembered in one round trip."""
        asked: list[int] = np.asarray(numbers).tolist()
        if not asked:
            return np.zeros((0, self._dimensions), np.float32)
        with self._lock:
            known = {number: self._remembered[number] for number in set(asked) if number in self._remembered}
        if missing := [number for number in set(asked) if number not in known]:
            known |= self._fetch(missing)
        return np.stack([known[number] for number in asked])

    def _fetch(self, numbers: list[int]) -> dict[int, Vectors]:
        # In front of its components, which are big-endian, a vector says in four bytes how many they are.
        rows = self._server.rows(self._statement, [numbers])
        fetched = {number: np.frombuffer(sent, ">f4", offset=4).astype(np.float32) for number, sent in rows}
        with self._lock:
            self._remembered |= fetched
            while len(self._remembered) > self._most:
                self._remembered.popitem(last=False)
        return fetched


def coded(vectors: Vectors) -> bytes:
    """Return what ``CodedVectors`` reads."""
    codes, scales = encoded(vectors)
    stored = np.empty(len(vectors), [("scale", "<f4"), ("code", "i1", (vectors.shape[1],))])
    stored["scale"], stored["code"] = scales, codes
    return stored.tobytes()


def prepare(connection: Connection) -> None:
    """Teach a connection the types of pgvector, once."""
    if not getattr(connection, "_nornweave_vectors", False):
        register_vector(connection)
        connection._nornweave_vectors = True  # type: ignore[attr-defined]


def _bits(numbers: Numbers, count: int) -> bytes:
    mask = np.zeros(count, np.bool_)
    mask[numbers] = True
    return np.packbits(mask, bitorder="little").tobytes()
