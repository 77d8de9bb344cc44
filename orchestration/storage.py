"""Dagster's SQLite storage with connections that stay open.

Dagster 1.13 opens a new connection for every event and keeps one file per run. SQLite syncs the disk whenever the last
connection to a write-ahead log closes, so that a run of 20 steps over an unchanged corpus took 10 s on a slow disk, and
0.6 s with the two classes below. They change nothing but the connections (and keep all runs in one file).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.event_log.polling_event_watcher import SqlPollingEventWatcher
from dagster._core.storage.runs import SqliteRunStorage
from dagster._serdes import ConfigurableClassData

from nornweave.core.files.full_disk import disk_full_said
from nornweave.core.files.lock import held

# The webserver, the daemon and a run write the same files; each write takes milliseconds.
BUSY_TIMEOUT_S = 30


class KeptEventLogStorage(ConsolidatedSqliteEventLogStorage):
    """The event log of all runs in one file."""

    _engine: sa.Engine | None = None
    _tables: frozenset[str] | None = None
    _watcher: SqlPollingEventWatcher | None = None

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        # Dagster's class creates its tables without a lock, and several processes start together.
        with disk_full_said(Path(base_dir)), held(Path(base_dir) / ".creating"):
            super().__init__(base_dir, inst_data)

    @contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        if self._engine is None:
            self._engine = _open(self._conn_string)
        with disk_full_said(Path(self._base_dir)), self._engine.begin() as connection:
            yield connection

    def has_table(self, table_name: str) -> bool:
        """Tell whether a table exists; asked twice per event, and the answer does not change."""
        if self._tables is None or table_name not in self._tables:
            with self._connect() as connection:
                self._tables = frozenset(sa.inspect(connection).get_table_names())
        return table_name in self._tables

    def watch(self, run_id: str, cursor: str | None, callback: Callable[..., Any]) -> None:
        """Follow a run by polling: Dagster's class watches the main file, which a write-ahead log leaves alone."""
        if self._watcher is None:
            self._watcher = SqlPollingEventWatcher(self)
        self._watcher.watch_run(run_id, cursor, callback)

    def end_watch(self, run_id: str, handler: Callable[..., Any]) -> None:
        """Stop following a run."""
        if self._watcher is not None:
            self._watcher.unwatch_run(run_id, handler)

    def dispose(self) -> None:
        """Close everything."""
        if self._watcher is not None:
            self._watcher.close()
        _close(self._engine)
        self._watcher = self._engine = None


class KeptRunStorage(SqliteRunStorage):
    """The runs."""

    _engine: sa.Engine | None = None

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Open the storage; Dagster's class always makes one of its own kind."""
        folder = Path(config_value["base_dir"])
        with disk_full_said(folder), held(folder / ".creating"):
            return cls.from_local(str(folder), inst_data=inst_data)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """Open a transaction."""
        if self._engine is None:
            self._engine = _open(self._conn_string)
        folder = Path(self._engine.url.database or "/").parent
        with disk_full_said(folder), self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close everything."""
        _close(self._engine)
        self._engine = None


def _open(url: str) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S})
    sa.event.listen(engine, "connect", _relax)
    return engine


def _relax(connection: sqlite3.Connection, _record: object) -> None:
    # With a write-ahead log a power cut may lose the last events, never the file.
    connection.execute("pragma synchronous = normal")


def _close(engine: sa.Engine | None) -> None:
    if engine is not None:
        engine.dispose()
