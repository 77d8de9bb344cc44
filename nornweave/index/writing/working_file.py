"""Open or create a working file. Replace it if its version or its model differs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from nornweave.core.errors import StoreError
from nornweave.core.files.writing import sync_path
from nornweave.index.connection import (
    Connection,
    attach,
    connect_memory,
    connect_writer,
    explain,
    quote,
    statement_file,
)

logger = logging.getLogger(__name__)

# Changes when the tables do; a working file of a schema that no migration leads from is rebuilt from the sources.
SCHEMA = "10"
# Schema → what makes it the next one. Vectors are worth keeping: encoding is nine tenths of a first sync.
# From schema 7 on, which is that of November 23rd, 2026.
MIGRATIONS = {
    "7": ("8", "alter table embeddings add column tokens blob"),
    # No document has a segment yet: the next sync writes all of them.
    "8": ("9", "alter table published add column segment varchar"),
    "9": (
        "10",
        'alter table chunks add column settings struct(position usmallint, "text" varchar, embedding_key varchar)[]',
    ),
}


def open_working_file(file: Path, dimensions: int) -> Connection:
    """Open a domain's working file for writing.

    Args:
        file: the path. The file is created if it is missing, and replaced if it has another schema.
        dimensions: the dimensions of the vectors. Stored vectors of other dimensions are deleted.

    Raises:
        StoreError: the file is damaged. The message says what to do.
    """
    connection = connect_writer(file)
    try:
        found = read_meta(connection)
        found = _migrate(connection, found)
        if found and found.get("schema") != SCHEMA:
            logger.warning("%s has schema %s, this version needs %s: rebuilding it from the sources", file,
                           found.get("schema"), SCHEMA)  # fmt: skip
            connection.close()
            file.unlink()
            connection, found = connect_writer(file), {}
        if not found:
            _create(connection, dimensions)
        elif int(found["dimensions"]) != dimensions:
            _replace_embeddings(connection, dimensions)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(
            f"{file}: is damaged ({error}); remove it: the next sync rebuilds it from the sources"
        ) from error
    return connection


def read_meta(connection: Connection) -> dict[str, str]:
    """Return the metadata of the file; empty if it is new."""
    exists = connection.execute("select 1 from duckdb_tables() where table_name = 'meta'").fetchone()
    return dict(connection.execute("select key, value from meta").fetchall()) if exists else {}


def _migrate(connection: Connection, meta: dict[str, str]) -> dict[str, str]:
    """Update an older working file step by step, as far as there are steps. Return its metadata."""
    while step := MIGRATIONS.get(meta.get("schema", "")):
        schema, statement = step
        connection.begin()
        connection.execute(statement)
        connection.execute("update meta set value = ? where key = 'schema'", [schema])
        connection.commit()
        meta = {**meta, "schema": schema}
    return meta


def _create(connection: Connection, dimensions: int) -> None:
    connection.begin()
    connection.execute(statement_file("working"))
    connection.execute("insert into meta values ('schema', ?)", [SCHEMA])
    connection.commit()
    _replace_embeddings(connection, dimensions)


def _replace_embeddings(connection: Connection, dimensions: int) -> None:
    """Replace the table of vectors. Vectors of another model are useless and differ in size."""
    connection.begin()
    connection.execute(
        f"create or replace table embeddings "
        f"(embedding_key varchar, vector float[{dimensions:d}], orphaned_in integer, tokens blob)"
    )
    connection.execute("delete from meta where key = 'dimensions'")
    connection.execute("insert into meta values ('dimensions', ?)", [str(dimensions)])
    connection.commit()


# DuckDB 1.5.5 marks deleted rows in their row group and keeps the group; blocks that it frees keep their bytes, too.
TABLES = {
    "documents": "document_id", "chunks": "chunk_id", "embeddings": "embedding_key", "not_stored": "document_id",
    "published": "document_id", "publications": "generation",
}  # fmt: skip


def deleted_rows(rows: Callable[[str], list[tuple[Any, ...]]]) -> int:
    """Return the number of deleted rows that are still stored, plus the number of free blocks.

    All changes must be checkpointed before. ``rows`` executes a query and returns its rows.
    """
    free = rows("select free_blocks from pragma_database_size() where database_name = current_database()")
    deleted = 0
    for table, column in TABLES.items():
        stored = rows(
            f"""
            select coalesce(sum(count), 0)
            from pragma_storage_info('{table}')
            where column_name = '{column}' and segment_type not in ('VALIDITY')
            """
        )
        deleted += int(stored[0][0]) - int(rows(f"select count(*) from {table}")[0][0])
    return deleted + sum(int(count) for (count,) in free)


def overwrite(file: Path) -> None:
    """Rewrite a closed working file without the bytes of deleted rows.

    Raises:
        StoreError: the file is damaged, or the disk is full. The file is unchanged.
    """
    fresh = file.with_name(f".{file.name}.overwrite")
    try:
        for left in (fresh, fresh.with_name(f"{fresh.name}.wal")):
            left.unlink(missing_ok=True)
        with connect_memory(spill=file.parent / "spill") as connection:
            connection.execute(f"attach {quote(str(file))} as before")
            attach(connection, fresh, "after")
            connection.execute("copy from database before to after")
            connection.execute("checkpoint after")
        sync_path(fresh)
        fresh.replace(file)
        sync_path(file.parent)
    except (duckdb.Error, OSError) as error:
        fresh.unlink(missing_ok=True)
        reason = explain(error) if isinstance(error, duckdb.Error) else error
        raise StoreError(f"{file}: cannot be written anew: {reason}") from error
