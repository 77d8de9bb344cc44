"""Deleted rows of a working file: DuckDB leaves their bytes where they were, until the file is written anew.

DuckDB 1.5.5 marks deleted rows in their row group and keeps the group; blocks that it frees keep their bytes, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from nornweave.core.errors import StoreError
from nornweave.core.files.atomic_write import sync_path
from nornweave.index.connection import WRITER_MEMORY, attach, connect_memory, explain, quote

TABLES = {
    "documents": "document_id", "chunks": "chunk_id", "embeddings": "embedding_key", "not_stored": "document_id",
    "published": "document_id", "publications": "generation",
}  # fmt: skip


def deleted_rows(rows: Callable[[str], list[tuple[Any, ...]]]) -> int:
    """Count the deleted rows that row groups still have, and the free blocks; all changes are checkpointed."""
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
    """Write a working file anew, so that deleted rows leave no bytes; nobody has it open.

    Raises:
        StoreError: it is damaged, or the disk is full; it stays as it was.
    """
    fresh = file.with_name(f".{file.name}.overwrite")
    try:
        for left in (fresh, fresh.with_name(f"{fresh.name}.wal")):
            left.unlink(missing_ok=True)
        with connect_memory(WRITER_MEMORY, spill=file.parent / "spill") as connection:
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
