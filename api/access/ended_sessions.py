"""Sessions that people ended: a cookie that somebody copied is worth nothing after its owner logged out."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from api.sessions import LASTS_S

NAME = "sessions.sqlite"


class EndedSessions:
    """Hashes of sessions in a small SQLite file, which all serving processes of a machine share."""

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / NAME

    def end(self, session: str) -> None:
        """Remember that a session ended; forget those that have expired since.

        Raises:
            sqlite3.Error: it cannot be written.
            OSError: the folder cannot be made.
        """
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._file, timeout=5)) as connection, connection:
            connection.execute("create table if not exists ended (session text primary key, at real)")
            connection.execute("delete from ended where at < ?", [time.time() - LASTS_S])
            connection.execute("insert or ignore into ended values (?, ?)", [_hash(session), time.time()])

    def has_ended(self, session: str) -> bool:
        """Tell whether somebody logged out of a session; a file that cannot be read ends none."""
        if not self._file.exists():
            return False
        try:
            with closing(sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                found = connection.execute("select 1 from ended where session = ?", [_hash(session)])
                return found.fetchone() is not None
        except sqlite3.OperationalError:
            return False


def _hash(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()
