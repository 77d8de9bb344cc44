"""What a mirror holds of one document, and how it goes: rows, and the bytes of deleted rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from nornweave.core.errors import SourceUnavailableError

_PATIENCE_S = 10.0


def copies_in(file: Path, path: str) -> int:
    """Count the records of a document; 0 without a file.

    Raises:
        SourceUnavailableError: the file cannot be read.
    """
    if not file.is_file():
        return 0
    try:
        with closing(sqlite3.connect(file, timeout=_PATIENCE_S)) as connection:
            count = "select (select count(*) from records where document = ?) + count(*) from documents where path = ?"
            return int(connection.execute(count, (path, path)).fetchone()[0])
    except sqlite3.Error as error:
        raise SourceUnavailableError(f"{file} cannot be read: {error}; sync again") from error


def forget(file: Path, path: str) -> None:
    """Delete the records of a document and write the file anew, without what was ever deleted from it.

    Raises:
        SourceUnavailableError: the file cannot be written; a sync may be reading the source.
    """
    if not file.is_file():
        return
    try:
        with closing(sqlite3.connect(file, timeout=_PATIENCE_S, isolation_level=None)) as connection:
            connection.execute("delete from records where document = ?", (path,))
            connection.execute("delete from documents where path = ?", (path,))
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    except sqlite3.Error as error:
        raise SourceUnavailableError(f"{file} cannot be written: {error}; try again after the sync") from error
