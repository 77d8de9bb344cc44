"""Copy the documents, chunks and facts of a generation into a DuckDB file, for what reads all of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import psycopg
import pyarrow as pa

from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId
from nornweave.index.connection import WRITER_MEMORY, attach, connect_memory, explain
from nornweave.index.postgresql.names import prefix_of
from nornweave.index.postgresql.server import Connection, Server

_BATCH_ROWS = 2_000
_TEXT, _NUMBER = pa.string(), pa.int32()
_TABLES = {
    "documents": {
        "document_no": _NUMBER, "document_id": _TEXT, "source_id": _TEXT, "path": _TEXT, "gate": _TEXT,
        "content_hash": _TEXT, "format": _TEXT, "title": _TEXT, "updated_at": pa.timestamp("us", tz="UTC"),
        "revision": _TEXT, "url": _TEXT, "metadata": _TEXT, "text": _TEXT, "access": _TEXT, "stale": pa.bool_(),
    },
    "chunks": {
        "chunk_no": _NUMBER, "document_no": _NUMBER, "chunk_id": _TEXT, "position": _NUMBER, "char_start": _NUMBER,
        "char_end": _NUMBER, "line_start": _NUMBER, "line_end": _NUMBER, "page": _NUMBER, "content": _TEXT,
        "context": _TEXT, "title": _TEXT, "section": _TEXT, "message_ids": pa.list_(_TEXT), "token_count": _NUMBER,
        "metadata": _TEXT, "facts": _TEXT,
    },
    "fact_keys": {"key": _TEXT, "chunk_no": _NUMBER, "position": pa.uint16(), "side": _TEXT, "attribute": _TEXT},
}  # fmt: skip
_copying = threading.Lock()


def copied(server: Server, generation: GenerationId, meta: Mapping[str, str], folder: Path) -> Path:
    """Return the file of a generation, copied unless it is there; older copies are removed.

    Raises:
        StoreError: the server cannot be asked, or the file cannot be written.
    """
    file = folder / f"{generation}.duckdb"
    with _copying:
        if file.is_file():
            return file
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".copy-", dir=folder) as place:
                built = Path(place) / file.name
                server.read(lambda connection: _copy(connection, generation, meta, built))
                for older in folder.glob("gen-*.duckdb"):
                    older.unlink(missing_ok=True)
                built.rename(file)
        except (OSError, duckdb.Error) as error:
            said = explain(error) if isinstance(error, duckdb.Error) else str(error)
            raise StoreError(f"{file}: {generation} could not be copied: {said}") from error
    return file


def _copy(connection: Connection, generation: GenerationId, meta: Mapping[str, str], built: Path) -> None:
    file = connect_memory(WRITER_MEMORY, spill=built.parent)
    try:
        attach(file, built, "generation")
        for table, columns in _TABLES.items():
            schema = pa.schema(list(columns.items()))
            rows = schema.empty_table()
            file.execute(f"create table generation.{table} as from rows")
            names = ", ".join(f'"{name}"' for name in columns)
            statement = f"select {names} from {prefix_of(generation)}{table} order by 1, 2"
            with connection.transaction(), psycopg.ServerCursor(connection, "copied") as cursor:
                cursor.execute(statement, binary=True)
                while found := cursor.fetchmany(_BATCH_ROWS):
                    named = [dict(zip(columns, row, strict=True)) for row in found]
                    rows = pa.Table.from_pylist(named, schema=schema)
                    file.execute(f"insert into generation.{table} from rows")
            del rows
        file.execute("create table generation.meta (key varchar, value varchar)")
        file.executemany("insert into generation.meta values (?, ?)", list(meta.items()))
        file.execute("checkpoint generation")
        file.execute("detach generation")
    finally:
        file.close()
