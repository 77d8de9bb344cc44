"""Ask pgvector's HNSW index for the chunks that are nearest to a query, among all chunks of a generation.

It is for domains with ``vector_index: hnsw``. Searches under a filter and for restricted viewers use the vectors of the
local copy, and so does every search while the server is away.
"""

from __future__ import annotations

import logging
import time

import numpy as np
from pgvector import Vector
from pgvector.psycopg import register_vector

from nornweave.core.errors import StoreError
from nornweave.index.port import Numbers, Vectors
from nornweave.index.postgresql.pool import Connection
from nornweave.index.postgresql.server import Server

log = logging.getLogger(__name__)

# pgvector's largest.
MOST_EF_SEARCH = 1_000
# So many more than are wanted are ranked by the full vectors: half precision is off by a few places.
_SPARE = 50
# A server that is away costs one query its wait; the next ones are searched here at once.
_LOOK_AGAIN_S = 10.0


class ServerIndex:
    """The index of one generation; implements ``vectors.Nearest``; safe to use from several threads."""

    def __init__(self, server: Server, table: str, dimensions: int, width: int) -> None:
        """Store the parameters.

        Args:
            table: of the vectors, a constant of the caller.
            width: candidates that a search of the index keeps (``hnsw_ef_search``).
        """
        self._server = server
        self._width = min(width, MOST_EF_SEARCH)
        half = f"halfvec({dimensions:d})"
        self._statement = f"select chunk_no from {table} order by vector::{half} <=> %s::{half} limit %s"
        self._look_at = 0.0

    def __call__(self, query: Vectors, k: int) -> Numbers | None:
        """Return the nearest chunks, some more than ``k``, in any order; ``None`` while the server is away."""
        if time.monotonic() < self._look_at:
            return None
        wanted = k + max(k, _SPARE)
        width = max(self._width, min(wanted, MOST_EF_SEARCH))

        def search(connection: Connection) -> list[tuple[int]]:
            prepare(connection)
            with connection.pipeline(), connection.transaction():  # one round trip
                # The planner would compare all vectors of a few thousand and sort them.
                connection.execute(
                    "select set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', "
                    "'relaxed_order', true), set_config('enable_seqscan', 'off', true), "
                    "set_config('enable_sort', 'off', true)",
                    [str(width)],
                )
                nearest = connection.execute(
                    self._statement, [Vector(np.asarray(query, np.float32)), wanted], binary=True
                )
            return nearest.fetchall()

        try:
            return np.array([number for (number,) in self._server.read(search)], np.int32)
        except StoreError as error:
            self._look_at = time.monotonic() + _LOOK_AGAIN_S
            log.warning("vectors are searched without the index for %g s: %s", _LOOK_AGAIN_S, error)
            return None


def prepare(connection: Connection) -> None:
    """Teach a connection the types of pgvector, once."""
    if not getattr(connection, "_nornweave_vectors", False):
        register_vector(connection)
        connection._nornweave_vectors = True  # type: ignore[attr-defined]
