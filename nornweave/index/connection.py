"""Open DuckDB connections with the same settings everywhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources, util
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import duckdb
import psutil

from nornweave.core.errors import StoreError
from nornweave.index.generations.checksums import check

# Beyond this DuckDB spills to disk, so that a sync's memory does not grow with the corpus.
# 40 documents of 4 MB, checkpointed together, need more than 128 MB.
WRITER_MEMORY = "512MB"
# The memory of a reader: queries use mapped arrays, except for a few texts.
READER_MEMORY = "128MB"
# DuckDB keeps the row group that it is filling in memory, outside its limit: at the default of 122,880 rows of 384
# dimensions that is 190 MB. Smaller groups also let a reader skip more of the postings.
ROW_GROUP_SIZE = 16_384

REBUILT = "the next sync rebuilds it from the sources"
# DuckDB 1.5.5 has no type for damage.
_DAMAGED = ("Corrupt database file", "Could not read enough bytes", "Failed to load metadata", "INTERNAL Error")
_WITHOUT_VSS = (
    "install the extra 'hnsw' with versions of duckdb and duckdb-extension-vss that fit each other, "
    "or search exactly, with 'vector_index: auto' in the domain's 'storage'"
)

# Rows become Arrow by `connection.sql(query)` without parameters, which reads them as they are wanted. DuckDB 2.0
# copies all rows of `execute` first, and warns; 1.5.5 runs `sql` with parameters at once: 1.4 GB for 300 MB of vectors.
Connection: TypeAlias = duckdb.DuckDBPyConnection


def _spare_searching_for_pandas() -> None:
    """Let DuckDB look for pandas only once when it is not installed.

    DuckDB 1.5.5 imports pandas twice for each parameter of a statement until an import succeeds. A failed import
    searches the whole path, which takes longer than most small statements. DuckDB keeps the empty module that it gets
    here. No other code sees this module.
    """
    if util.find_spec("pandas") is None:
        sys.modules["pandas"] = ModuleType("pandas")
        try:
            duckdb.ConstantExpression(0)
        finally:
            del sys.modules["pandas"]


_spare_searching_for_pandas()


def connect_writer(path: Path) -> Connection:
    """Open a working file for reading and writing, creating it if needed.

    Raises:
        StoreError: the file cannot be opened, because another process has it open or it is damaged.
    """
    connection = connect_memory(spill=path.parent / "spill")
    try:
        attach(connection, path, "working")
        connection.execute("use working")
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{path}: cannot be opened: {error}; if it is damaged, remove it: {REBUILT}") from error
    return connection


def connect_memory(*, spill: Path) -> Connection:
    """Open an in-memory database to attach files to. It spills to the folder ``spill`` when memory is full."""
    return _connect(":memory:", memory=WRITER_MEMORY, spill=spill)


def attach(connection: Connection, path: Path, name: str, *, is_small: bool = False) -> None:
    """Attach a file for writing as ``name`` (a constant in the code).

    With ``is_small``, the file has blocks of 16 kB. With the usual blocks of 256 kB, a file of twenty tables has at
    least 5 MB, because each table takes several blocks.
    """
    size = ", block_size 16384" if is_small else ""
    connection.execute(f"attach {quote(str(path))} as {name} (row_group_size {ROW_GROUP_SIZE:d}{size})")


def connect_reader(path: Path, *, searches_vectors: bool = False) -> Connection:
    """Open a generation for reading. Other processes may open it, too. Its views cannot read other files.

    Args:
        searches_vectors: load ``vss`` if the generation has an index of vectors. If ``vss`` cannot be loaded, nothing
            happens here; ``require_vss`` raises the error.

    Raises:
        StoreError: the generation is damaged, or cannot be opened.
    """
    check(path)
    try:
        connection = _connect(str(path), read_only=True, memory=READER_MEMORY)
        if searches_vectors and connection.execute("from duckdb_indexes() where sql like '% HNSW %'").fetchall():
            with suppress(StoreError):
                load_vss(connection)
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot be opened: {error}") from error
    seal(connection)
    return connection


def connect_readers(files: Mapping[str, Path], *, spill: Path) -> Connection:
    """Open several generations like ``connect_reader``, each under its name (a constant in the code).

    Raises:
        StoreError: a generation is missing, damaged, or cannot be opened.
    """
    for path in files.values():
        if not path.is_file():
            raise StoreError(f"{path}: no such generation")
        check(path)
    connection = connect_memory(spill=spill)
    try:
        for name, path in files.items():
            connection.execute(f"attach {quote(str(path))} as {name} (read_only)")
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"a generation cannot be opened: {error}; run `nornweave sync`") from error
    seal(connection)
    return connection


def seal(connection: Connection) -> None:
    """Forbid a connection to open further files, because a view in an attached file could otherwise read any file."""
    connection.execute("set enable_external_access = false")


def _connect(path: str, *, memory: str, read_only: bool = False, spill: Path | None = None) -> Connection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": 2,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        # Readers take tables as they were written; a writer sorts what it wants sorted.
        "preserve_insertion_order": read_only,
        "temp_directory": str(spill) if spill else "",
        # At the default of 16 MB every batch ends with a checkpoint, which rewrites the newest row group of 25 columns.
        "checkpoint_threshold": "64MB",
    }
    connection = duckdb.connect(path, read_only=read_only, config=config)
    connection.execute("set timezone = 'UTC'")
    return connection


def explain(error: duckdb.Error | OSError) -> str:
    """Return a message about an error of DuckDB or of a disk. For a damaged working file it names a remedy."""
    is_damaged = any(sign in str(error) for sign in _DAMAGED)
    return f"{error}; the file is damaged, remove it: {REBUILT}" if is_damaged else str(error)


def limit_memory(connection: Connection, memory: str) -> None:
    """Limit a connection's memory. If it needs more, it uses temporary files."""
    connection.execute(f"set memory_limit = {quote(memory)}")


def lift_memory_limit(connection: Connection) -> None:
    """Set a connection's memory limit to 80 % of the machine's memory, DuckDB's default."""
    limit_memory(connection, most_memory())


def most_memory() -> str:
    """Return 80 % of the machine's memory in DuckDB's notation."""
    return f"{psutil.virtual_memory().total * 8 // 10_000_000:d}MB"


def load_vss(connection: Connection) -> None:
    """Load the ``vss`` extension from its package. Nothing is downloaded.

    Raises:
        StoreError: the package is not installed, or has no extension for the installed DuckDB.
    """
    version = duckdb.__version__
    try:
        package = resources.files("duckdb_extension_vss")
    except ImportError as error:
        raise StoreError(f"duckdb-extension-vss is not installed; {_WITHOUT_VSS}") from error
    file = package / "extensions" / f"v{version}" / "vss.duckdb_extension"
    if not file.is_file():
        raise StoreError(f"duckdb-extension-vss has no extension for DuckDB {version}; {_WITHOUT_VSS}")
    try:
        connection.execute(f"load {quote(str(file))}")
    except duckdb.Error as error:
        raise StoreError(
            f"duckdb-extension-vss cannot be loaded into DuckDB {version} from {file}: {error}; {_WITHOUT_VSS}"
        ) from error


def require_vss(connection: Connection) -> None:
    """Check that a reader can search an index of vectors.

    Raises:
        StoreError: as ``load_vss``.
    """
    try:
        connection.execute("from pragma_hnsw_index_info() limit 0")
    except duckdb.Error as error:
        check_vss()
        raise StoreError(f"the vss extension is not loaded: {error}") from error


def check_vss() -> None:
    """Check that the ``vss`` extension can be loaded, in a new database.

    Raises:
        StoreError: as ``load_vss``.
    """
    with _connect(":memory:", memory=READER_MEMORY) as connection:
        load_vss(connection)


def quote(text: str) -> str:
    """Return a string in quotes, for statements that accept no parameters (``attach``, ``load``)."""
    return "'" + text.replace("'", "''") + "'"


def statement_file(name: str) -> str:
    """Return the text of ``sql/<name>.sql``."""
    return (resources.files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
