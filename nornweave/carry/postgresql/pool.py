"""Connections of this process to one database: a bounded number, shared by all schemas of it."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

# Of a reader that waits for a connection: a query has other domains to answer from.
POOL_WAIT_S = 3.0
IDLE_S = 60.0
# A server that refused is not asked again so soon: it would be asked by every thread, and lock the account in the end.
REFUSED_S = 1.0


class PoolBusyError(psycopg.OperationalError):
    """All connections are in use."""


@dataclass(frozen=True, slots=True)
class _Idle:
    options: str
    connection: Connection
    since: float


class ConnectionPool:
    """At most ``size`` connections, idle ones included; safe to use from several threads.

    A connection is opened by the thread that needs it, which therefore gets the error that says why there is none.
    """

    def __init__(self, conninfo: str, size: int) -> None:
        self._conninfo = conninfo
        self._size = size
        self._turns = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._used = 0
        self._idle: list[_Idle] = []
        self._refused = ""
        self._refused_until = 0.0

    @contextmanager
    def borrowed(self, options: str) -> Iterator[Connection]:
        """Lend a connection that was opened with these options, in autocommit.

        Raises:
            PoolBusyError: all are in use, and none came back in time.
            psycopg.OperationalError: no connection comes about.
        """
        if not self._turns.acquire(timeout=POOL_WAIT_S):
            raise PoolBusyError(f"all {self._size} connections are in use; raise storage.connections")
        try:
            with self._lock:
                self._used += 1
                idle = self._idle_with(options)
            connection = idle or self._open(options)
            try:
                yield connection
            finally:
                self._give_back(options, connection)
        finally:
            with self._lock:
                self._used -= 1
            self._turns.release()

    def _idle_with(self, options: str) -> Connection | None:
        """Return an idle connection, the newest; without one, close the oldest of another schema if the bound asks."""
        for place in reversed(range(len(self._idle))):
            if self._idle[place].options == options:
                return self._idle.pop(place).connection
        if self._used + len(self._idle) > self._size:
            self._idle.pop(0).connection.close()
        return None

    def _open(self, options: str) -> Connection:
        if time.monotonic() < self._refused_until:
            raise psycopg.OperationalError(self._refused)
        try:
            return psycopg.connect(self._conninfo, autocommit=True, options=options)
        except psycopg.Error as error:
            self._refused, self._refused_until = str(error), time.monotonic() + REFUSED_S
            raise

    def _give_back(self, options: str, connection: Connection) -> None:
        now = time.monotonic()
        if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
        with self._lock:
            old = [each for each in self._idle if now - each.since > IDLE_S]
            self._idle = [each for each in self._idle if now - each.since <= IDLE_S]
            if not connection.closed:
                self._idle.append(_Idle(options, connection, now))
        for each in old:
            each.connection.close()

    def close_idle(self) -> None:
        """Close what nobody uses; the next query opens others."""
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.connection.close()


_pools: dict[tuple[int, str], ConnectionPool] = {}
_pools_lock = threading.Lock()


def pool_of(conninfo: str, size: int) -> ConnectionPool:
    """Return the pool of this process for a database; a forked process never uses the connections of its parent."""
    with _pools_lock:
        return _pools.setdefault((os.getpid(), conninfo), ConnectionPool(conninfo, size))


def close_idle() -> None:
    """Close the idle connections of this process to every database."""
    with _pools_lock:
        pools = [pool for (process, _), pool in _pools.items() if process == os.getpid()]
    for pool in pools:
        pool.close_idle()


atexit.register(close_idle)
