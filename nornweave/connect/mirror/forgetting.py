"""What a mirror holds of one document, and how it goes: rows, and the bytes of deleted rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from nornweave.core.errors import SourceUnavailableError

_PATIENCE_S = 10.0
_COUNT = "select (select count(*) from records where document = ?) + count(*) from documents where path = ?"


def copies_in(file: Path, path: str) -> int:
    """Count the records of a document; 0 without a file."""
    if not file.is_file():
        return 0
    with _opened(file) as connection:
        return int(connection.execute(_COUNT, (path, path)).fetchone()[0])


def forget(file: Path, path: str) -> None:
    """Delete the records of a document and write the file anew, without what was ever deleted from it."""
    if not file.is_file():
        return
    with _opened(file) as connection:
        connection.execute("delete from records where document = ?", (path,))
        connection.execute("delete from documents where path = ?", (path,))
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a mirror.

    Raises:
        SourceUnavailableError: it cannot be read or written now.
    """
    try:
        with closing(sqlite3.connect(file, timeout=_PATIENCE_S, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise SourceUnavailableError(f"{file} cannot be used: {error}; try again after the sync") from error
