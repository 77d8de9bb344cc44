"""Files that all serving processes of a machine share: the file of tokens, and rows of small SQLite files.

Each is read again whenever it changes, so a removed token is refused at once.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from api.errors import ProblemError, unavailable
from nornweave.core.access import TokenEntry, hash_of, read_tokens
from nornweave.core.errors import ConfigError, StoreError
from nornweave.core.types import present

log = logging.getLogger(__name__)

RETRY_S = 5
FileState: TypeAlias = tuple[int, int, int]
"""When a file was changed, in nanoseconds, its size and its inode."""

T = TypeVar("T")

WAIT_S = 5
SETTLED_NS = 1_000_000_000


class TokenFile:
    """Finds the entries of tokens in the file of tokens. Every method may be called from any thread."""

    def __init__(self, file: Path) -> None:
        """Read the file. A broken file admits nobody until it is corrected.

        A server checks the file before it starts (``check_listening``); a process restarted later must not fail.
        """
        self._file = file
        self._lock = threading.Lock()
        self._version = state_of(file)
        self._entries = self._read()

    def find(self, token: str) -> TokenEntry | None:
        """Return the entry of a token; ``None`` if it is unknown or has expired.

        Raises:
            ProblemError: 503, the file cannot be read now.
        """
        return self.entry(hash_of(token))

    def entry(self, hashed: str) -> TokenEntry | None:
        """Return the entry of a token by its hash; ``None`` if it is unknown or has expired. Raises as ``find``."""
        # The time that it takes may tell how much of a hash is right; that says nothing about a token with this hash.
        entry = self._current().get(hashed)
        return entry if entry and entry.is_valid(present()) else None

    def _current(self) -> Mapping[str, TokenEntry]:
        """Return the entries of the file by hash.

        Raises:
            ProblemError: 503, the file is broken, so nobody knows which tokens were removed from it.
        """
        state = state_of(self._file)
        with self._lock:
            if state != self._version:
                self._version, self._entries = state, self._read()
            if self._entries is None:
                raise broken_access()
            return self._entries

    def _read(self) -> Mapping[str, TokenEntry] | None:
        try:
            return read_tokens(self._file)
        except ConfigError as error:
            log.error("no token of the file is accepted until it is mended: %s", error)
            return None


def state_of(file: Path) -> FileState | None:
    """Return values that change whenever a file changes; ``None`` if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def broken_access() -> ProblemError:
    """Return a 503 which says that access rights cannot be looked up now."""
    detail = "who may ask cannot be looked up now; the log of the server says why"
    return unavailable("access-unavailable", detail, RETRY_S)


class SharedRows(Generic[T]):
    """One table of a file, and the value made of its rows. Every method may be called from any thread."""

    def __init__(self, file: Path, schema: str, query: str, make: Callable[[Sequence[Any]], T], failure: str) -> None:
        """Store the parameters. The file is neither read nor written.

        Args:
            schema: the statement that makes the table if there is none.
            query: the statement that reads the rows.
            make: makes the value of the rows.
            failure: the message when the rows cannot be changed.
        """
        self._file, self._schema, self._query, self._make, self._failure = file, schema, query, make, failure
        self._lock = threading.Lock()
        self._state: FileState | None = None
        self._made = make(())

    @property
    def last(self) -> T:
        """Return the value that was read last."""
        return self._made

    def current(self) -> T:
        """Return the current value. Without a file, it is the value made of no rows.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        state = state_of(self._file)
        with self._lock:
            if state is None:
                self._state, self._made = None, self._make(())
            elif state != self._state:
                with closing(sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                    self._made = self._make(connection.execute(self._query).fetchall())
                # Clocks of files tick every few milliseconds: another change may have the same time.
                is_settled = time.time_ns() - state[0] > SETTLED_NS
                self._state = state if is_settled else None
            return self._made

    def change(self, *statements: tuple[str, Sequence[Any]]) -> int:
        """Execute statements in one transaction. Return how many rows the last statement changed.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=WAIT_S, isolation_level=None)) as connection:
                connection.execute(self._schema)
                connection.execute("begin immediate")
                changed = [connection.execute(statement, values).rowcount for statement, values in statements]
                connection.execute("commit")
                return changed[-1]
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._failure}: {error}") from error
