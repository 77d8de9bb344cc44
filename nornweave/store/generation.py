"""Read one generation: dense and sparse candidates, and the chunks behind them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import numpy as np

from nornweave.errors import StoreError
from nornweave.store.connection import Connection, connect_reader, load_vss
from nornweave.store.port import Vectors
from nornweave.types import ChunkId, Metadata, freeze

# vss 1.5.5 crashes the process when more HNSW searches run at once than there are CPUs; two is safe everywhere.
_HNSW_SEARCHES = threading.BoundedSemaphore(2)
_MATRIX_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a retrieval source found; higher scores are better."""

    chunk_no: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk as a generation keeps it, with its document's facts."""

    chunk_no: int
    chunk_id: ChunkId
    content: str
    source_id: str
    path: str
    title: str | None
    section: str | None
    page: int | None
    char_range: tuple[int, int]
    line_range: tuple[int, int]
    message_ids: tuple[str, ...]
    updated_at: datetime | None
    revision: str | None
    url: str | None
    stale: bool
    metadata: Metadata


class Generation:
    """One published file, open for reading; a context manager, safe to use from several threads.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise StoreError(f"{file}: no such generation")
        self._connection = connect_reader(file)
        self._threads = threading.local()
        try:
            self.meta: Mapping[str, str] = dict(self._connection.execute("select key, value from meta").fetchall())
            self.chunk_count = self._count()
            self._matrix: Vectors | None = None
            if self.meta.get("built_with") == "hnsw":
                load_vss(self._connection)
            else:
                self._matrix = self._load_matrix()
        except duckdb.Error as error:
            self._connection.close()
            raise StoreError(f"{file}: cannot be read, roll back or sync again: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def dense(self, query: Vectors, k: int) -> list[Hit]:
        """Return the ``k`` chunks of highest cosine similarity, in [-1, 1], best first, ties by number.

        Args:
            query: normalised vector of shape ``(dimensions,)``.
            k: how many.
        """
        if self._matrix is None:
            return self._dense_hnsw(query, k)
        scores = self._matrix @ query
        k = min(k, len(scores))
        if not k:
            return []
        best = np.argpartition(-scores, k - 1)[:k]
        return [Hit(int(number), float(scores[number])) for number in sorted(best, key=lambda n: (-scores[n], n))]

    def sparse(self, terms: Sequence[str], k: int) -> list[Hit]:
        """Return the ``k`` chunks of highest BM25 score, ≥ 0, best first, ties by number."""
        rows = self._cursor().execute(
            """
            select chunk_no, sum(weight) as score
            from postings
            where term_id in (select term_id from terms where term in (select unnest(?)))
            group by chunk_no
            order by score desc, chunk_no
            limit ?
            """,
            [list(terms), k],
        )
        return [Hit(number, score) for number, score in rows.fetchall()]

    def chunks(self, numbers: Sequence[int]) -> dict[int, StoredChunk]:
        """Return chunks with their documents' facts, by number."""
        rows = self._cursor().execute(
            """
            select
              c.chunk_no, c.chunk_id, c.content, d.source_id, d.path, coalesce(c.title, d.title), c.section, c.page,
              c.char_start, c.char_end, c.line_start, c.line_end, c.message_ids, d.updated_at, d.revision, d.url,
              d.stale, c.metadata
            from chunks c
            join documents d using (document_no)
            where c.chunk_no in (select unnest(?))
            """,
            [list(numbers)],
        )
        return {chunk.chunk_no: chunk for chunk in map(_stored_chunk, rows.fetchall())}

    def _dense_hnsw(self, query: Vectors, k: int) -> list[Hit]:
        literal = "[" + ",".join(f"{value:.6g}" for value in query) + "]"
        with _HNSW_SEARCHES:
            rows = (
                self._cursor()
                .execute(
                    f"""
                select chunk_no, 1 - array_cosine_distance(vector, ?::float[{len(query):d}]) as score
                from vectors
                order by array_cosine_distance(vector, ?::float[{len(query):d}])
                limit ?
                """,
                    [literal, literal, k],
                )
                .fetchall()
            )
        return sorted((Hit(number, score) for number, score in rows), key=lambda hit: (-hit.score, hit.chunk_no))

    def _load_matrix(self) -> Vectors:
        dimensions = int(self.meta["dimensions"])
        matrix = np.zeros((self.chunk_count, dimensions), dtype=np.float32)
        reader = self._connection.execute("select chunk_no, vector from vectors").to_arrow_reader(_MATRIX_ROWS)
        for batch in reader:
            numbers = batch.column("chunk_no").to_numpy()
            matrix[numbers] = batch.column("vector").flatten().to_numpy().reshape(-1, dimensions)
        return matrix

    def _count(self) -> int:
        row = self._connection.execute("select count(*) from chunks").fetchone()
        return int(row[0]) if row else 0

    def _cursor(self) -> Connection:
        """Return this thread's cursor: a DuckDB connection is not shared between threads."""
        cursor: Connection | None = getattr(self._threads, "cursor", None)
        if cursor is None:
            cursor = self._threads.cursor = self._connection.cursor()
        return cursor


def _stored_chunk(row: tuple) -> StoredChunk:  # type: ignore[type-arg]
    (number, chunk_id, content, source_id, path, title, section, page, start, end, first, last, message_ids,
     updated_at, revision, url, stale, metadata) = row  # fmt: skip
    return StoredChunk(
        chunk_no=number,
        chunk_id=chunk_id,
        content=content,
        source_id=source_id,
        path=path,
        title=title,
        section=section,
        page=page,
        char_range=(start, end),
        line_range=(first, last),
        message_ids=tuple(message_ids or ()),
        updated_at=updated_at,
        revision=revision,
        url=url,
        stale=stale,
        metadata=freeze(json.loads(metadata)),
    )
