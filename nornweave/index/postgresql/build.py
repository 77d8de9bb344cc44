"""Build a generation: in a DuckDB file on this machine, by the statements of the other store, then copied by ``COPY``.

The same statements number the chunks, count the terms and read the filters of both stores, so that both answer alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray
from pgvector import Vector
from psycopg import sql

from nornweave.config import StorageSettings
from nornweave.core.access.rules import decode_rule, decode_source_rules, encode_rule
from nornweave.core.errors import StoreError
from nornweave.core.types import FIELDS, GenerationId
from nornweave.index.build import build_generation
from nornweave.index.connection import Connection as FileConnection
from nornweave.index.connection import connect_reader, explain
from nornweave.index.declared import DeclaredFilters
from nornweave.index.port import Candidate, Publication
from nornweave.index.postgresql.dense import coded, prepare
from nornweave.index.postgresql.names import prefix_of
from nornweave.index.postgresql.roles import grant_generation
from nornweave.index.postgresql.schema import statement_text
from nornweave.index.postgresql.server import Connection
from nornweave.index.publish import number_of
from nornweave.index.rows import CHUNK_SCHEMA, DOCUMENT_SCHEMA, NOT_STORED_SCHEMA
from nornweave.index.working_file import open_working_file

# A reader holds 388 bytes a chunk to search vectors of 384 dimensions itself, 39 MB of so many; above, the index does.
HNSW_FROM_CHUNKS = 100_000
_BATCH_ROWS = 2_000

_DOCUMENT = """
select document_no, document_id, source_id, path, gate, content_hash, format, title, updated_at, revision, url,
  metadata, "text", access, stale
from documents
"""
_COPIED = {
    "chunks": "chunk_no, document_no, chunk_id, position, char_start, char_end, line_start, line_end, page, content, "
    "context, title, section, message_ids, token_count, metadata, facts",
    "cards": "chunk_no, card",
    "fact_keys": "key, chunk_no, position, side, attribute",
    "facet_values": "field, part, value_no, value",
    "moments": '"field", "first", "last", chunk_no',
    "quantities": "field, value, chunk_no",
    "unread_values": "field, document_no, said, problem",
}


def build(
    connection: Connection,
    folder: Path,
    publication: Publication,
    settings: StorageSettings,
    facts: Mapping[str, str],
    declared: DeclaredFilters,
) -> Candidate:
    """Build a generation's tables in one transaction; readers do not see them yet.

    Args:
        connection: the writer's.
        folder: for the file, which is gone afterwards.
        publication: names the generation.
        settings: of the domain.
        facts: what a reader must know of how it was made.
        declared: filters of the domain.

    Raises:
        StoreError, duckdb.Error, psycopg.Error, OSError: it was not built.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".build-", dir=folder) as place:
        file = Path(place) / "generation.duckdb"
        working = open_working_file(Path(place) / "working.duckdb", int(facts["dimensions"]))
        try:
            _download(connection, working, int(facts["dimensions"]))
            # The index is pgvector's; the file has none.
            exact = settings.model_copy(update={"vector_index": "exact"})
            built = build_generation(working, file, publication, exact, facts, declared)
        except duckdb.Error as error:
            raise StoreError(f"{publication.generation} could not be built: {explain(error)}") from error
        finally:
            working.close()
        index = upload(connection, file, publication.generation, settings)
    return Candidate(
        generation=publication.generation,
        counts=built.counts,
        vector_index=index,
        size_bytes=built.size_bytes,
        publication=publication,
        facts=facts,
    )


def upload(
    connection: Connection, file: Path, generation: GenerationId, settings: StorageSettings
) -> Literal["exact", "hnsw"]:
    """Copy a generation file into tables of the name ``generation``, in one transaction; return its vector index.

    Raises:
        StoreError, duckdb.Error, psycopg.Error: there are no such tables then.
    """
    reader = connect_reader(file)
    try:
        index = _vector_index(settings, _count_vectors(reader))
        meta = dict(reader.execute("select key, value from meta").fetchall())
        with connection.transaction():
            _upload(connection, reader, generation, {**meta, "generation": generation, "built_with": index}, settings)
    finally:
        reader.close()
    return index


def _vector_index(settings: StorageSettings, vectors: int) -> Literal["exact", "hnsw"]:
    if settings.vector_index != "auto":
        return settings.vector_index
    return "hnsw" if vectors >= HNSW_FROM_CHUNKS else "exact"


def _download(connection: Connection, working: FileConnection, dimensions: int) -> None:
    """Copy the working tables into a working file, as one moment shows them."""
    tables = {"documents": DOCUMENT_SCHEMA, "chunks": CHUNK_SCHEMA, "not_stored": NOT_STORED_SCHEMA}
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        for table, schema in tables.items():
            for rows in _batches(connection, f"select {', '.join(map(_quoted, schema.names))} from {table}"):
                batch = pa.Table.from_pylist(
                    [_as_stored(dict(zip(schema.names, row, strict=True))) for row in rows], schema=schema
                )
                working.execute(f"insert into {table} by name select * from batch")
        used = "select embedding_key, vector from embeddings where embedding_key in (select embedding_key from chunks)"
        for rows in _batches(connection, used):
            flat = np.frombuffer(b"".join(vector for _, vector in rows), "<f4")
            batch = pa.table(  # noqa: F841
                {
                    "embedding_key": pa.array([key for key, _ in rows]),
                    "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat), dimensions),
                }
            )
            working.execute("insert into embeddings by name select * from batch")


def _as_stored(row: dict[str, Any]) -> dict[str, Any]:
    if "fact_keys" in row:
        row["fact_keys"] = json.loads(row["fact_keys"])
    return row


def _batches(connection: Connection, statement: str) -> Iterator[list[tuple[Any, ...]]]:
    with psycopg.ServerCursor(connection, "copied") as cursor:
        cursor.execute(statement, binary=True)
        while rows := cursor.fetchmany(_BATCH_ROWS):
            yield rows


def _quoted(name: str) -> str:
    return f'"{name}"'


def _upload(
    connection: Connection,
    reader: FileConnection,
    generation: GenerationId,
    meta: Mapping[str, str],
    settings: StorageSettings,
) -> None:
    prefix, dimensions = prefix_of(generation), int(meta["dimensions"])
    for statement in _statements("generation", g=prefix, dimensions=dimensions):
        connection.execute(statement)
    _copy(connection, f"{prefix}documents", _document_rows(reader, meta["access"]))
    for table, columns in _COPIED.items():
        _copy(connection, f"{prefix}{table}", _rows(reader, f"select {columns} from {table}"))
    _copy(connection, f"{prefix}terms", _term_rows(reader))
    _copy(connection, f"{prefix}pairs", _list_rows(reader, "select pair, chunk_no from pairs", "pair"))
    named = "select name, chunk_no from chunk_names join names using (name_id)"
    _copy(connection, f"{prefix}names", _list_rows(reader, named, "name"))
    _copy(connection, f"{prefix}facets", _list_rows(reader, "select value_no, chunk_no from facets", "value_no"))
    _copy(connection, f"{prefix}arrays", _array_rows(reader))
    if meta["built_with"] == "exact" and _count_vectors(reader) <= HNSW_FROM_CHUNKS:
        _copy(connection, f"{prefix}arrays", [("codes", b"".join(map(coded, _vectors(reader, dimensions))))])
    _copy_vectors(connection, f"{prefix}vectors", reader, dimensions)
    for statement in _statements("generation_indexes", g=prefix):
        connection.execute(statement)
    if meta["built_with"] == "hnsw":
        _index_vectors(connection, f"{prefix}vectors", dimensions, settings)
    grant_generation(connection, prefix)
    connection.execute(
        "insert into generations (number, complete, meta) values (%s, false, %s)",
        [number_of(generation), json.dumps(dict(meta))],
    )


def _index_vectors(connection: Connection, table: str, dimensions: int, settings: StorageSettings) -> None:
    width = max(settings.hnsw_ef_construction, 2 * settings.hnsw_m)  # pgvector takes no less
    connection.execute("set local maintenance_work_mem = '512MB'")
    connection.execute(
        f"create index on {table} using hnsw ((vector::halfvec({dimensions:d})) halfvec_cosine_ops) "
        f"with (m = {settings.hnsw_m:d}, ef_construction = {width:d})"
    )


def _statements(name: str, **values: object) -> list[str]:
    return [each for each in statement_text(name).format(**values).split(";\n") if each.strip()]


def _copy(connection: Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("copy {} from stdin").format(sql.Identifier(table))) as copied,
    ):
        for row in rows:
            copied.write_row(row)


def _count_vectors(reader: FileConnection) -> int:
    row = reader.execute("select count(*) from vectors").fetchone()
    return int(row[0]) if row else 0


def _vectors(reader: FileConnection, dimensions: int) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors in the order of their chunks, some at a time."""
    for batch in reader.execute("select vector from vectors order by chunk_no").to_arrow_reader(_BATCH_ROWS):
        yield batch.column("vector").flatten().to_numpy().reshape(-1, dimensions)


def _copy_vectors(connection: Connection, table: str, reader: FileConnection, dimensions: int) -> None:
    prepare(connection)
    statement = sql.SQL("copy {} (chunk_no, vector) from stdin with (format binary)").format(sql.Identifier(table))
    with connection.cursor() as cursor, cursor.copy(statement) as copied:
        copied.set_types(["int4", "vector"])
        for batch in reader.execute("select chunk_no, vector from vectors").to_arrow_reader(_BATCH_ROWS):
            vectors = batch.column("vector").flatten().to_numpy().reshape(-1, dimensions)
            for number, vector in zip(batch.column("chunk_no").to_pylist(), vectors, strict=True):
                copied.write_row((number, Vector(vector)))


def _rows(reader: FileConnection, statement: str) -> Iterator[list[Any]]:
    for batch in reader.execute(statement).to_arrow_reader(_BATCH_ROWS):
        yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _document_rows(reader: FileConnection, sources: str) -> Iterator[list[Any]]:
    """Yield documents, each with its whole rule: what is stated about it and about its source."""
    stated = decode_source_rules(sources)
    for row in _rows(reader, _DOCUMENT):
        source_id, own = row[2], decode_rule(row[13])
        yield [*row, encode_rule((*own, *((stated[source_id],) if source_id in stated else ()))) or "[]"]


def _list_rows(reader: FileConnection, statement: str, key: str) -> Iterator[tuple[Any, bytes]]:
    """Yield each key with the chunks that have it, as bytes."""
    table = reader.execute(f"{statement} order by {key}, chunk_no").to_arrow_table()
    keys = table.column(key).combine_chunks()
    chunks = table.column("chunk_no").to_numpy().astype("<i4")
    for start, end in _runs(keys):
        yield keys[start].as_py(), chunks[start:end].tobytes()


def _term_rows(reader: FileConnection) -> Iterator[tuple[Any, ...]]:
    names = reader.execute("select term from terms order by term_id").to_arrow_table().column("term").to_pylist()
    columns = ", ".join(f"in_{field}" for field in FIELDS)
    table = reader.execute(f"select term_id, chunk_no, {columns} from postings order by 1, 2").to_arrow_table()
    chunks = table.column("chunk_no").to_numpy().astype("<i4")
    counts = [table.column(f"in_{field}").to_numpy().astype("<u2") for field in FIELDS]
    identifiers = table.column("term_id").combine_chunks()
    for start, end in _runs(identifiers):
        yield (
            names[identifiers[start].as_py()],
            chunks[start:end].tobytes(),
            *(each[start:end].tobytes() for each in counts),
        )


def _runs(keys: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield where the runs of equal keys begin and end."""
    lengths = np.asarray(pa.compute.run_end_encode(keys).run_ends.to_numpy()) if len(keys) else np.empty(0, np.int64)
    start = 0
    for end in lengths.tolist():
        yield start, end
        start = end


def _array_rows(reader: FileConnection) -> Iterator[tuple[str, bytes]]:
    documents = reader.execute("select document_no from chunks order by chunk_no").fetchnumpy()["document_no"]
    yield "documents", documents.astype("<i4").tobytes()
    columns = ", ".join(f"in_{field}" for field in FIELDS)
    lengths = reader.execute(f"select {columns} from lengths order by chunk_no").fetchnumpy()
    stacked: NDArray[np.int32] = np.column_stack([lengths[f"in_{field}"] for field in FIELDS]).astype("<i4")
    yield "lengths", stacked.tobytes()
