"""Sessions that people ended: a cookie that somebody copied is worth nothing after its owner logged out."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from api.access.sessions import LASTS_S
from api.access.token_file import FileState, state_of
from nornweave.core.access.tokens import hash_of
from nornweave.core.errors import StoreError

log = logging.getLogger(__name__)

NAME = "sessions.sqlite"
SETTLED_NS = 1_000_000_000


class EndedSessions:
    """Hashes of sessions in a small SQLite file, which all serving processes of a machine share.

    The file is read when it has changed, not with every request. Every method may be called from any thread.
    """

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / NAME
        self._lock = threading.Lock()
        self._state: FileState | None = None
        self._ended: frozenset[str] = frozenset()

    def end(self, session: str) -> None:
        """Remember that a session ended; forget those that have expired since.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=5)) as connection, connection:
                connection.execute("create table if not exists ended (session text primary key, at real)")
                connection.execute("delete from ended where at < ?", [time.time() - LASTS_S])
                connection.execute("insert or ignore into ended values (?, ?)", [hash_of(session), time.time()])
        except (OSError, sqlite3.Error) as error:
            detail = f"the session could not be ended here, it lasts {LASTS_S // 3600} hours: {error}"
            raise StoreError(detail) from error

    def has_ended(self, session: str) -> bool:
        """Tell whether somebody logged out of a session, as far as the file can be read."""
        state = state_of(self._file)
        with self._lock:
            if state is not None and state != self._state:
                self._read(state)
            return hash_of(session) in self._ended

    def _read(self, state: FileState) -> None:
        try:
            with closing(sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                self._ended = frozenset(session for (session,) in connection.execute("select session from ended"))
            # Clocks of files tick every few milliseconds: another change may have the same time.
            is_settled = time.time_ns() - state[0] > SETTLED_NS
            self._state = state if is_settled else None
        except sqlite3.Error as error:
            log.error("which sessions have ended cannot be read, those known stay: %s", error)
