"""Build a segment from the working file: chunks, BM25 tables, the ``vss`` index, and arrays."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

import duckdb

from nornweave.config import StorageSettings
from nornweave.core.errors import StoreError
from nornweave.core.types import FIELDS
from nornweave.index.connection import (
    WRITER_MEMORY,
    Connection,
    attach,
    check_vss,
    limit_memory,
    load_vss,
    most_memory,
    statement_file,
)
from nornweave.index.port import Candidate, GenerationCounts, Publication
from nornweave.index.searching.arrays import ArrayWriter, arrays_file, writing_arrays
from nornweave.index.searching.cards import write_cards
from nornweave.index.searching.inverted import write_names, write_pairs
from nornweave.index.searching.terms import write_terms
from nornweave.index.searching.vectors import write_settings, write_token_vectors, write_vectors
from nornweave.index.writing.declared import NO_DECLARED_FILTERS, DeclaredFilters, fill_declared
from nornweave.index.writing.rows import publication_row

log = logging.getLogger(__name__)

GENERATION_SCHEMA = "10"
# DuckDB reads a column 2,048 rows at a time, which is more than a writer may hold where documents are megabytes long.
LARGE_MEMORY = "4GB"
# Sorting the word pairs of 375,000 chunks fits into a writer's memory, of 672,000 it does not.
_MANY = 300_000
# Chunks of a file with small blocks, which vss 1.5.5 does not know how to fill.
_SMALL = 4_096


@dataclass(frozen=True, slots=True)
class Layout:
    """The settings for a domain's tables.

    Attributes:
        dimensions: the dimensions of the vectors. Only writers need it.
        token_vectors: the version of the token vectors; empty if there are none.
    """

    settings: StorageSettings
    dimensions: int
    declared: DeclaredFilters = NO_DECLARED_FILTERS
    token_vectors: str = ""

    @property
    def built_with(self) -> Literal["exact", "hnsw"]:
        """Return how a segment's vectors are searched: one by one, or with an HNSW index."""
        return "hnsw" if self.settings.vector_index == "hnsw" else "exact"

    def facts(self) -> dict[str, str]:
        """Return the versions that affect a build. If they change, the published generation is outdated."""
        return {
            "generation_schema": GENERATION_SCHEMA,
            "vector_index": self.settings.vector_index,
            "hnsw_ef_search": str(self.settings.hnsw_ef_search),
            "dimensions": str(self.dimensions),
            "filters": self.declared.version,
            "token_vectors": self.token_vectors,
        }


def build_generation(
    connection: Connection,
    file: Path,
    publication: Publication,
    layout: Layout,
    facts: Mapping[str, str],
    picked: str = "select document_id from documents",
) -> Candidate:
    """Build ``file`` from the open working file, with the documents that ``picked`` selects.

    The index over the vectors is created last and never changed, because ``vss`` 1.5.5 silently loses deletes and
    updates of a persisted index.

    Raises:
        StoreError: the file still has a write-ahead log, or ``vss`` is needed and cannot be loaded.
        duckdb.Error: the disk is full, or the working file is damaged.
    """
    if layout.built_with == "hnsw":
        check_vss()
    connection.execute(f"create or replace temp table picked as {picked}")
    chunks = _integer(connection, "select count(*) from chunks where document_id in (select document_id from picked)")
    build = partial(_build, connection, file, publication, layout, facts, chunks)
    # A build of 1.2 million chunks of code ran out of 4 GB.
    limits = [*([] if chunks > _MANY else [WRITER_MEMORY]), LARGE_MEMORY, most_memory()]
    try:
        for limit, next_limit in pairwise(limits):
            limit_memory(connection, limit)
            try:
                return build()
            except duckdb.OutOfMemoryException:
                log.warning("%s: too much for %s of memory, building with %s", file.name, limit, next_limit)
        limit_memory(connection, limits[-1])
        return build()
    finally:
        connection.execute("drop table if exists temp.picked")
        limit_memory(connection, WRITER_MEMORY)


def _build(
    connection: Connection, file: Path, publication: Publication, layout: Layout, facts: Mapping[str, str], chunks: int
) -> Candidate:
    file.unlink(missing_ok=True)
    attach(connection, file, "generation", is_small=chunks <= _SMALL and layout.built_with != "hnsw")
    try:
        connection.execute(statement_file("generation"))
        fill_declared(connection, layout.declared)
        connection.execute(statement_file("declared") + statement_file("facets"))
        if layout.built_with == "hnsw":
            connection.execute("create table generation.vectors as select chunk_no, vector from vectors")
            index_vectors(connection, layout.settings)
        counts = _count(connection)
        described = {
            **facts,
            "generation": publication.generation,
            "built_at": publication.created_at.isoformat(),
            "built_with": layout.built_with,
            "arrays": secrets.token_hex(8),
        }
        connection.executemany("insert into generation.meta values (?, ?)", list(described.items()))
        with writing_arrays(file, described["arrays"]) as arrays:
            _write_arrays(connection, arrays, counts.chunks, layout.dimensions)
        connection.execute("checkpoint generation")
    finally:
        connection.execute("detach generation")
        _drop_temporary_tables(connection)
    if file.with_name(f"{file.name}.wal").exists():
        raise StoreError(f"{file}: still has a write-ahead log after its checkpoint")
    return Candidate(
        generation=publication.generation,
        counts=counts,
        vector_index=layout.built_with,
        size_bytes=file.stat().st_size + arrays_file(file).stat().st_size,
        publication=publication,
        facts=facts,
    )


def insert_publication(connection: Connection, publication: Publication) -> None:
    """Append the event of a publication."""
    row = publication_row(publication)
    connection.register("publication_row", row)
    connection.execute("insert into publications by name from publication_row")
    connection.unregister("publication_row")


def _write_arrays(connection: Connection, arrays: ArrayWriter, count: int, dimensions: int) -> None:
    """Write the arrays for queries from the views of ``generation.sql``, in the order of its BM25 tables."""
    connection.execute("set preserve_insertion_order = true")
    try:
        write_vectors(connection, arrays, count, dimensions)
        write_token_vectors(connection, arrays, count)
        write_settings(connection, arrays, count, dimensions)
        write_terms(connection, arrays)
        write_pairs(connection, arrays)
        write_names(connection, arrays)
        write_cards(connection, arrays, count)
    finally:
        connection.execute("set preserve_insertion_order = false")


def index_vectors(connection: Connection, settings: StorageSettings) -> None:
    """Build the ``vss`` index over ``generation.vectors``, once and as the last step.

    It takes 94 % of the build time and, in each process, 4 kB of memory per chunk. It saves a few milliseconds per
    query.
    """
    load_vss(connection)
    connection.execute("set hnsw_enable_experimental_persistence = true")
    connection.execute(
        f"""
        create index vectors_hnsw on generation.vectors using hnsw (vector)
        with (metric = 'cosine', m = {settings.hnsw_m:d}, ef_construction = {settings.hnsw_ef_construction:d})
        """
    )


def _count(connection: Connection) -> GenerationCounts:
    return GenerationCounts(
        documents=_integer(connection, "select count(*) from generation.documents"),
        chunks=_integer(connection, "select count(*) from generation.chunks"),
        vectors=_integer(connection, "select count(*) from embedded"),
        indexed_chunks=_integer(
            connection,
            "select (select count(distinct chunk_no) from postings)"
            " + (select count(*) from chunks where rowid in (select place from numbered) and len(terms) = 0)",
        ),
        orphans=_integer(
            connection,
            """
            select
              (select count(*) from embedded anti join generation.chunks using (chunk_no))
              + (select count(*) from postings anti join generation.chunks using (chunk_no))
              + (select count(*) from generation.chunks anti join generation.documents using (document_no))
            """,
        ),
        terms=_terms(connection),
    )


def _terms(connection: Connection) -> tuple[int, ...]:
    columns = ", ".join(f"coalesce(sum(in_{field}), 0)::bigint" for field in FIELDS)
    (terms,) = connection.execute(f"select {columns} from generation.lengths").fetchall()
    return tuple(terms)


def _drop_temporary_tables(connection: Connection) -> None:
    for view in ("cards", "vectors", "settings", "pairs", "named", "lengths"):
        connection.execute(f"drop view if exists temp.{view}")
    for table in ("numbered_documents", "numbered", "embedded", "described", "occurrences", "terms", "postings",
                  "declared_said", "declared_values"):  # fmt: skip
        connection.execute(f"drop table if exists temp.{table}")


def _integer(connection: Connection, query: str) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0
