"""Ask pgvector's HNSW index for the chunks that are nearest to a query, among all chunks of a segment.

It is for domains with ``vector_index: hnsw``. Searches under a filter and for restricted viewers use the vectors of the
local copy, and so does every search while the server is away.
"""

from __future__ import annotations

import logging
import time

import numpy as np
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg import sql

from nornweave.config import StorageSettings
from nornweave.core.errors import StoreError
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.port import Numbers, Vectors
from nornweave.index.postgresql.pool import Connection
from nornweave.index.postgresql.schema import need_pgvector
from nornweave.index.postgresql.server import Server
from nornweave.index.searching.arrays import arrays_file, open_arrays
from nornweave.index.searching.generation_file import facts_of

log = logging.getLogger(__name__)

# pgvector's largest.
MOST_EF_SEARCH = 1_000
# So many more than are wanted are ranked by the full vectors: half precision is off by a few places.
_SPARE = 50
# A server that is away costs one query its wait; the next ones are searched here at once.
_LOOK_AGAIN_S = 10.0


class ServerIndex:
    """The index of one segment; implements ``vectors.Nearest``; safe to use from several threads."""

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


def table_of(segment: str) -> str:
    """Return the table with the vectors of a segment, by the name of its file."""
    return f"vectors_{segment.removesuffix('.duckdb').removeprefix('gen-').replace('-', '_')}"


def index_segments(connection: Connection, server: Server, files: GenerationFiles, settings: StorageSettings) -> None:
    """Make an index for each published segment that is to have one; drop those of segments that are kept no more.

    Raises:
        StoreError, psycopg.Error: the server or a file cannot be read.
    """
    kept = {table_of(segment.name) for generation in files.all() for segment in files.manifest(generation).segments}
    statement = (
        "select relname from pg_class where relnamespace = to_regnamespace(%s) and relname ~ '^vectors_[0-9_]+$'"
    )
    there = {name for (name,) in connection.execute(statement, [server.schema]).fetchall()}
    current = files.current()
    for file in files.data_files(current) if current and settings.vector_index == "hnsw" else ():
        if (table := table_of(file.path.name)) not in there and facts_of(file.path)["built_with"] == "pgvector":
            files.bring(arrays_file(file.path))
            vectors = open_arrays(file.path, facts_of(file.path)["arrays"])["vectors"]
            with connection.transaction():
                _index(connection, server, table, np.asarray(vectors, np.float32), settings)
    for table in there - kept:
        connection.execute(sql.SQL("drop table {}").format(sql.Identifier(table)))


def _index(connection: Connection, server: Server, table: str, vectors: Vectors, settings: StorageSettings) -> None:
    dimensions = vectors.shape[1]
    need_pgvector(connection, server)
    prepare(connection)
    connection.execute(f"create table {table} (chunk_no integer primary key, vector vector({dimensions:d}) not null)")
    with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin with (format binary)") as copied:
        copied.set_types(["int4", "vector"])
        for number, vector in enumerate(vectors):
            copied.write_row((number, Vector(vector)))
    connection.execute(
        "do $$ begin if exists (select from pg_roles where rolname = 'nornweave_reader') then "
        f"grant select on {table} to nornweave_reader; end if; end $$"
    )
    width = max(settings.hnsw_ef_construction, 2 * settings.hnsw_m)  # pgvector takes no less
    connection.execute("set local maintenance_work_mem = '512MB'")
    connection.execute(
        f"create index on {table} using hnsw ((vector::halfvec({dimensions:d})) halfvec_cosine_ops) "
        f"with (m = {settings.hnsw_m:d}, ef_construction = {width:d})"
    )
