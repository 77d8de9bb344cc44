"""Dagster's SQLite storage with connections that stay open, over files that are made whole.

Dagster 1.13 opens a new connection for every event and keeps one file per run. SQLite syncs the disk whenever the last
connection to a write-ahead log closes, so that a run of 20 steps over an unchanged corpus took 10 s on a slow disk, and
0.6 s with the classes below. They change nothing but the connections (and keep all runs in one file).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from dagster._core.scheduler.instigation import TickStatus
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.event_log.polling_event_watcher import SqlPollingEventWatcher
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.schedules import SqliteScheduleStorage
from dagster._core.storage.schedules.schema import JobTickTable
from dagster._core.storage.sqlite import create_db_conn_string
from dagster._serdes import ConfigurableClassData

from nornweave.carry.lease import BUSY_TIMEOUT_S
from nornweave.core.files.writing import translate_full_disk
from orchestration.history import make_whole

FORGET_AT_ONCE = 2_000


class _Kept:
    """The connections to one file. They stay open between transactions."""

    _conn_string: str
    _engine: sa.Engine | None = None

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """Open a transaction."""
        if self._engine is None:
            self._engine = sa.create_engine(self._conn_string, connect_args={"timeout": BUSY_TIMEOUT_S})
            sa.event.listen(self._engine, "connect", _relax)
        folder = Path(self._engine.url.database or "/").parent
        with translate_full_disk(folder), self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close the connections."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()


def _relax(connection: sqlite3.Connection, _record: object) -> None:
    # With a write-ahead log a power cut may lose the last events, never the file.
    connection.execute("pragma synchronous = normal")


class KeptEventLogStorage(_Kept, ConsolidatedSqliteEventLogStorage):
    """The event log of all runs in one file."""

    _tables: frozenset[str] | None = None
    _watcher: SqlPollingEventWatcher | None = None
    _connect = _Kept.connect

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        make_whole(Path(base_dir) / "event_log.db", ConsolidatedSqliteEventLogStorage)
        super().__init__(base_dir, inst_data)

    def has_table(self, table_name: str) -> bool:
        """Tell whether a table exists. Dagster calls this twice per event, so the result is kept."""
        if self._tables is None or table_name not in self._tables:
            with self._connect() as connection:
                self._tables = frozenset(sa.inspect(connection).get_table_names())
        return table_name in self._tables

    def watch(self, run_id: str, cursor: str | None, callback: Callable[..., Any]) -> None:
        """Follow a run by polling. Dagster's class watches the main file, but new events are in the write-ahead log."""
        if self._watcher is None:
            self._watcher = SqlPollingEventWatcher(self)
        self._watcher.watch_run(run_id, cursor, callback)

    def end_watch(self, run_id: str, handler: Callable[..., Any]) -> None:
        """Stop following a run."""
        if self._watcher is not None:
            self._watcher.unwatch_run(run_id, handler)

    def dispose(self) -> None:
        """Close the connections."""
        if self._watcher is not None:
            self._watcher.close()
        self._watcher = None
        super().dispose()


class KeptRunStorage(_Kept, SqliteRunStorage):
    """The storage of runs."""

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Create the storage. Dagster's method would create its own class."""
        folder = config_value["base_dir"]
        make_whole(Path(folder) / "runs.db", SqliteRunStorage.from_local)
        return cls(create_db_conn_string(folder, "runs"), inst_data)


class KeptScheduleStorage(_Kept, SqliteScheduleStorage):
    """The storage of the ticks of schedules and sensors.

    Dagster's own queries allow for ticks without a selector, which its old versions made. For such a query SQLite sorts
    all ticks of a sensor. With 500,000 ticks, reading the newest one took 7 s and a page of the UI 25 s.
    """

    supports_batch_queries = False  # Dagster's batch queries rank all ticks

    def _ticks_query(  # type: ignore[override]
        self, columns: Sequence[Any], _origin_id: str, selector_id: str, **bounds: Any
    ) -> Any:
        ticks = sa.select(*columns).where(JobTickTable.c.selector_id == selector_id)
        return self._add_filter_limit(ticks.order_by(JobTickTable.c.timestamp.desc()), **bounds)

    def purge_ticks(
        self, origin_id: str, selector_id: str, before: float, tick_statuses: Sequence[TickStatus] | None = None
    ) -> None:
        """Delete only a few old ticks each time, because a large deletion would block other writers."""
        bounds = {"before": before, "limit": FORGET_AT_ONCE, "statuses": tick_statuses}
        old = self._ticks_query([JobTickTable.c.id], origin_id, selector_id, **bounds)
        with self.connect() as connection:
            connection.execute(JobTickTable.delete().where(JobTickTable.c.id.in_(old)))

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Create the storage. Dagster's method would create its own class."""
        folder = config_value["base_dir"]
        make_whole(Path(folder) / "schedules.db", SqliteScheduleStorage.from_local)
        return cls(create_db_conn_string(folder, "schedules"), inst_data)
