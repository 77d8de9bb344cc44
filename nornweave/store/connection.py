"""DuckDB connections, set up the same way everywhere."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TypeAlias

import duckdb

from nornweave.errors import StoreError

# Beyond this DuckDB spills to disk, so that a sync's memory does not grow with the corpus.
WRITER_MEMORY = "256MB"
READER_MEMORY = "512MB"

Connection: TypeAlias = duckdb.DuckDBPyConnection


def connect_writer(path: Path) -> Connection:
    """Open a working file for reading and writing, creating it if needed."""
    spill = path.parent / "spill"
    return _connect(path, read_only=False, memory=WRITER_MEMORY, spill=spill)


def connect_reader(path: Path) -> Connection:
    """Open a generation for reading; any number of processes may."""
    return _connect(path, read_only=True, memory=READER_MEMORY, spill=None)


def _connect(path: Path, *, read_only: bool, memory: str, spill: Path | None) -> Connection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": 2,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "preserve_insertion_order": False,
        "temp_directory": str(spill) if spill else "",
    }
    try:
        connection = duckdb.connect(str(path), read_only=read_only, config=config)
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot be opened: {error}") from error
    connection.execute("set timezone = 'UTC'")
    return connection


def load_vss(connection: Connection) -> None:
    """Load the ``vss`` extension from the pinned package; nothing is downloaded.

    Raises:
        StoreError: the package and DuckDB do not fit each other.
    """
    version = duckdb.__version__
    file = resources.files("duckdb_extension_vss") / "extensions" / f"v{version}" / "vss.duckdb_extension"
    try:
        connection.execute(f"load {quote(str(file))}")
    except duckdb.Error as error:
        raise StoreError(f"vss extension for duckdb {version} cannot be loaded from {file}: {error}") from error


def quote(text: str) -> str:
    """Quote a string for the few statements that take no parameters (``attach``, ``load``)."""
    return "'" + text.replace("'", "''") + "'"


def statement_file(name: str) -> str:
    """Return the text of ``sql/<name>.sql``."""
    return (resources.files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
