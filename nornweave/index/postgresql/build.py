"""Build a generation file on this machine, as the other store does, and put it into PostgreSQL in parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
from pgvector import Vector

from nornweave.config import StorageSettings
from nornweave.core.access.rules import decode_rule, decode_source_rules, encode_rule
from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId
from nornweave.index.connection import Connection as FileConnection
from nornweave.index.connection import connect_reader, explain
from nornweave.index.generations.checksums import checksum_of
from nornweave.index.generations.kept import number_of
from nornweave.index.port import Candidate, Publication, Vectors
from nornweave.index.postgresql.copies import LocalCopies
from nornweave.index.postgresql.nearest import prepare
from nornweave.index.postgresql.pool import Connection
from nornweave.index.postgresql.schema import copy_rows, grant_generation, prefix_of, statement_text
from nornweave.index.searching.arrays import arrays_file, open_arrays
from nornweave.index.writing.build import Layout, build_generation
from nornweave.index.writing.rows import CHUNK_SCHEMA, DOCUMENT_SCHEMA, NOT_STORED_SCHEMA
from nornweave.index.writing.working_file import open_working_file

BUILDING = ".build-"
"""How folders begin in which a file is built; who was killed leaves one."""
_BATCH_ROWS = 2_000
# A reader fetches a part within the deadline of one statement; a value of PostgreSQL ends at 1 GB.
PART_BYTES = 8 << 20

_DOCUMENT = """
select document_no, document_id, source_id, path, gate, content_hash, format, title, updated_at, revision, url,
  metadata, "text", access, stale
from documents
"""
_CHUNK = """
select chunk_no, document_no, chunk_id, position, char_start, char_end, line_start, line_end, page, content, context,
  title, section, message_ids, token_count, metadata, facts
from chunks
"""


def build(
    connection: Connection,
    folder: Path,
    copies: LocalCopies,
    publication: Publication,
    layout: Layout,
    facts: Mapping[str, str],
) -> Candidate:
    """Build a generation and store it in one transaction; readers do not see it yet.

    Raises:
        StoreError, duckdb.Error, psycopg.Error, OSError: it was not built.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=BUILDING, dir=folder) as place:
        file = Path(place) / "generation.duckdb"
        built = _built(connection, file, publication, layout, facts)
        index = upload(connection, file, publication.generation, layout.settings)
        copies.add(file, publication.generation, checksum_of(file))
    return replace(built, vector_index=index)


def _built(
    connection: Connection, file: Path, publication: Publication, layout: Layout, facts: Mapping[str, str]
) -> Candidate:
    """Build the file from a copy of the working tables; an index over its vectors would be pgvector's."""
    working = open_working_file(file.with_name("working.duckdb"), int(facts["dimensions"]))
    try:
        _download(connection, working, int(facts["dimensions"]))
        exact = replace(layout, settings=layout.settings.model_copy(update={"vector_index": "exact"}))
        return build_generation(working, file, publication, exact, facts)
    except duckdb.Error as error:
        raise StoreError(f"{publication.generation} could not be built: {explain(error)}") from error
    finally:
        working.close()


def upload(
    connection: Connection, file: Path, generation: GenerationId, settings: StorageSettings
) -> Literal["exact", "hnsw"]:
    """Store a generation file under the name ``generation``, in one transaction; return its vector index.

    Raises:
        StoreError, duckdb.Error, psycopg.Error: nothing is stored then.
    """
    index: Literal["exact", "hnsw"] = "hnsw" if settings.vector_index == "hnsw" else "exact"
    prefix, tables = prefix_of(generation), ["file", "documents", "chunks"]
    reader = connect_reader(file)
    try:
        meta = dict(reader.execute("select key, value from meta").fetchall())
        meta |= {"generation": generation, "built_with": index, "checksum": checksum_of(file)}
        with connection.transaction():
            for statement in _statements("generation", g=prefix):
                connection.execute(statement)
            _copy_files(connection, f"{prefix}file", (file, arrays_file(file)))
            rules: dict[int, str] = {}  # document → its rule
            copy_rows(connection, f"{prefix}documents", _document_rows(reader, meta["access"], rules))
            copy_rows(connection, f"{prefix}chunks", ([*row, rules[row[1]]] for row in _rows(reader, _CHUNK)))
            for statement in _statements("generation_indexes", g=prefix):
                connection.execute(statement)
            if index == "hnsw":
                tables.append("vectors")
                _index_vectors(connection, f"{prefix}vectors", open_arrays(file, meta["arrays"])["vectors"], settings)
            grant_generation(connection, prefix, tables)
            connection.execute(
                "insert into generations (number, complete, meta) values (%s, false, %s)",
                [number_of(generation), json.dumps(meta)],
            )
    finally:
        reader.close()
    return index


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
        used = "embedding_key in (select embedding_key from chunks)"
        for rows in _batches(connection, f"select embedding_key, vector, tokens from embeddings where {used}"):
            flat = np.frombuffer(b"".join(vector for _, vector, _ in rows), "<f4")
            batch = pa.table(  # noqa: F841
                {
                    "embedding_key": pa.array([key for key, _, _ in rows]),
                    "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat), dimensions),
                    "tokens": pa.array([tokens for _, _, tokens in rows], type=pa.binary()),
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


def _copy_files(connection: Connection, table: str, files: Sequence[Path]) -> None:
    """Store files one after the other; a part is of one file alone."""
    number = 0
    for file in files:
        with file.open("rb") as stream:
            while part := stream.read(PART_BYTES):
                connection.execute(f"insert into {table} values (%b, %b)", [number, part])
                number += 1


def _index_vectors(connection: Connection, table: str, vectors: Vectors, settings: StorageSettings) -> None:
    prepare(connection)
    dimensions = vectors.shape[1]
    connection.execute(f"create table {table} (chunk_no integer primary key, vector vector({dimensions:d}) not null)")
    with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin with (format binary)") as copied:
        copied.set_types(["int4", "vector"])
        for number, vector in enumerate(vectors):
            copied.write_row((number, Vector(vector)))
    width = max(settings.hnsw_ef_construction, 2 * settings.hnsw_m)  # pgvector takes no less
    connection.execute("set local maintenance_work_mem = '512MB'")
    connection.execute(
        f"create index on {table} using hnsw ((vector::halfvec({dimensions:d})) halfvec_cosine_ops) "
        f"with (m = {settings.hnsw_m:d}, ef_construction = {width:d})"
    )


def _statements(name: str, **values: object) -> list[str]:
    return [each for each in statement_text(name).format(**values).split(";\n") if each.strip()]


def _rows(reader: FileConnection, statement: str) -> Iterator[list[Any]]:
    for batch in reader.execute(statement).to_arrow_reader(_BATCH_ROWS):
        yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _document_rows(reader: FileConnection, sources: str, rules: dict[int, str]) -> Iterator[list[Any]]:
    """Yield documents, each with its whole rule (what is stated about it and about its source), and note the rules."""
    stated = decode_source_rules(sources)
    for row in _rows(reader, _DOCUMENT):
        source_id, own = row[2], decode_rule(row[13])
        rules[row[0]] = encode_rule((*own, *((stated[source_id],) if source_id in stated else ()))) or "[]"
        yield [*row, rules[row[0]]]
