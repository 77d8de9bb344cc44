"""Rows of a small SQLite file that all serving processes of a machine share; the file is read again after a change."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Generic, TypeVar

from api.access.token_file import FileState, state_of
from nornweave.core.errors import StoreError

T = TypeVar("T")

WAIT_S = 5
SETTLED_NS = 1_000_000_000


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
