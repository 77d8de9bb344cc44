"""A lease on a name: a row in PostgreSQL that one process holds until a time on the server's clock.

A holder renews its lease from a thread. One that is paused or cut off does not, and another takes the name: each taking
raises the row's ``fence``. What the holder wants others to see is written to the same row, in one statement that asks
for its own fence: whoever has lost the lease changes nothing, however late it wakes up.

Leases of Dagster's runs are read here without Dagster, for ``status``, ``doctor`` and the page. A run renews its lease
every few seconds (``orchestration.leases``): a row of the key-value table that Dagster keeps beside its runs, in
``data_dir/dagster`` or in PostgreSQL.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nornweave.core.errors import DomainBusyError, LeaseLostError, NornWeaveError, StoreError
from nornweave.core.installation import optional
from nornweave.core.types import Domain, present

if TYPE_CHECKING:
    from psycopg import Connection

log = logging.getLogger(__name__)

RENEWALS = 4
"""Renewals within the life of a lease: three may fail."""
POLL_S = 0.2
CONNECT_S = 5
STATEMENT_MS = 10_000
DATABASE_VARIABLE = "NORNWEAVE_DAGSTER_POSTGRES_URL"

LEASE_KEY = "nornweave/run/"
DOMAIN_TAG = "nornweave/domain"
SILENT_S = 120.0
"""A run that has not renewed its lease for so long is named: by clocks, which may differ by as much."""
BUSY_TIMEOUT_S = 30  # the webserver, the daemon and a run write the same files; each write takes milliseconds
_UNFINISHED = f"""
select r.run_id, r.status, k.value, t.value
from runs r
join kvs k on k.key = '{LEASE_KEY}' || r.run_id
left join run_tags t on t.run_id = r.run_id and t.key = '{DOMAIN_TAG}'
where r.status in ('NOT_STARTED', 'STARTING', 'STARTED', 'CANCELING')
order by r.id
"""


def plain_address(address: str) -> str:
    """Return an address for psycopg, without SQLAlchemy's driver name."""
    return f"postgresql://{address.partition('://')[2]}"


_TABLE = """
create table if not exists nornweave_leases (
  name text primary key,
  fence bigint not null default 0,
  holder text,
  expires_at timestamptz not null default '-infinity',
  state jsonb not null default '{}'
)
"""
_TAKE = """
update nornweave_leases
set fence = fence + 1, holder = %(holder)s, expires_at = clock_timestamp() + %(seconds)s * interval '1 second'
where name = %(name)s and expires_at < clock_timestamp()
returning fence, state
"""
_RENEW = """
update nornweave_leases
set expires_at = clock_timestamp() + %(seconds)s * interval '1 second'
where name = %(name)s and fence = %(fence)s
returning fence
"""
_COMMIT = "update nornweave_leases set state = %(state)s where name = %(name)s and fence = %(fence)s returning fence"
_STATE = "select state from nornweave_leases where name = %s"
_DESCRIBE = """
select holder, extract(epoch from expires_at - clock_timestamp())::int from nornweave_leases where name = %s
"""
_RELEASE = "update nornweave_leases set expires_at = '-infinity' where name = %(name)s and fence = %(fence)s"


def _make_table(connection: Connection[Any]) -> None:
    """Create the table under a lock. ``if not exists`` alone fails when two processes create it at once."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtext('nornweave_leases'))")
        connection.execute(_TABLE)


class Lease:
    """One lease: ``take`` it, then ``release`` it. Implements ``parts.Claim``.

    Args:
        database: the address of the PostgreSQL server. It is never shown, because it may hold a password.
        name: the name of the lease.
        purpose: what the lease is taken for. It is shown to people who wait for the lease.
        seconds: how long a lease lives without a renewal.
    """

    def __init__(self, database: str, name: str, *, purpose: str, seconds: float) -> None:
        self._database = database
        self._name = name
        self._holder = f"{purpose} (pid {os.getpid()} on {socket.gethostname()})"
        self._seconds = seconds
        self._fence = 0
        self._ended = threading.Event()
        self._renewer: threading.Thread | None = None
        self.lost = threading.Event()
        """Set by the thread that renews, once another has taken the lease."""

    def take(self, wait_s: float) -> Mapping[str, Any]:
        """Take the lease. Return the state that the last holder committed; empty if there was none.

        Raises:
            DomainBusyError: somebody still holds it after ``wait_s`` seconds.
            StoreError: the server cannot be reached.
        """
        deadline = time.monotonic() + wait_s
        with self._connected() as connection:
            _make_table(connection)
            connection.execute(
                "insert into nornweave_leases (name) values (%(name)s) on conflict do nothing", {"name": self._name}
            )
            while not (row := connection.execute(_TAKE, self._values()).fetchone()):
                if time.monotonic() >= deadline:
                    raise DomainBusyError(self._described(connection))
                time.sleep(POLL_S)
        self._fence, state = row
        self._ended.clear()
        self._renewer = threading.Thread(target=self._keep, name=f"lease of {self._name}", daemon=True)
        self._renewer.start()
        return dict(state)

    def state(self) -> Mapping[str, Any]:
        """Return the last committed state without taking the lease; empty if nobody has committed."""
        with self._connected() as connection:
            from psycopg.errors import UndefinedTable

            with suppress(UndefinedTable):  # before anybody took a lease
                row = connection.execute(_STATE, [self._name]).fetchone()
                return dict(row[0]) if row else {}
        return {}

    def confirm(self) -> None:
        """Renew the lease now.

        Raises:
            LeaseLostError: somebody else has taken the lease.
            StoreError: the server cannot be reached.
        """
        with self._connected() as connection:
            self._held(connection.execute(_RENEW, self._values()).fetchone())

    def commit(self, state: Mapping[str, Any]) -> None:
        """Store the state for the next holder, in one statement that fails if the lease is lost.

        Raises:
            LeaseLostError: somebody else has taken the lease. Nothing is written.
            StoreError: the server cannot be reached.
        """
        from psycopg.types.json import Jsonb

        with self._connected() as connection:
            self._held(connection.execute(_COMMIT, {**self._values(), "state": Jsonb(dict(state))}).fetchone())

    def release(self) -> None:
        """Release the lease. If that fails, the lease ends by itself."""
        self._ended.set()
        if self._renewer is not None:
            self._renewer.join(timeout=2 * CONNECT_S)
        with suppress(StoreError), self._connected() as connection:
            connection.execute(_RELEASE, self._values())

    @property
    def fence(self) -> int:
        """A number that is higher each time that the lease is taken."""
        return self._fence

    def _keep(self) -> None:
        while not self._ended.wait(self._seconds / RENEWALS):
            try:
                self.confirm()
            except LeaseLostError as error:
                log.error("%s", error)
                self.lost.set()
                return
            except StoreError as error:
                log.warning("the lease of %s was not renewed: %s", self._name, error)

    def _held(self, row: object) -> None:
        if row is None:
            raise LeaseLostError(
                f"{self._name}: another machine has taken over, because this process did not renew its lease for "
                f"{self._seconds:g} s (paused, or cut off from PostgreSQL); nothing more is published from here: "
                "sync again"
            )

    def _values(self) -> dict[str, object]:
        return {"name": self._name, "fence": self._fence, "holder": self._holder, "seconds": self._seconds}

    def _described(self, connection: Connection[Any]) -> str:
        row = connection.execute(_DESCRIBE, [self._name]).fetchone()
        holder, seconds = row or ("a process", 0)
        return (
            f"{self._name} is being written: {holder}, lease ends in {seconds} s unless renewed; wait, then try again"
        )

    @contextmanager
    def _connected(self) -> Iterator[Connection[Any]]:
        with optional("workers", "leases"):
            import psycopg

            from nornweave.carry.postgresql.server import cause_of
        try:
            with psycopg.connect(
                self._database,
                autocommit=True,
                connect_timeout=CONNECT_S,
                options=f"-c statement_timeout={STATEMENT_MS}",
                application_name="nornweave lease",
            ) as connection:
                yield connection
        except psycopg.Error as error:
            cause = cause_of(error, DATABASE_VARIABLE)
            raise StoreError(
                f"the lease of {self._name}: PostgreSQL cannot be asked ({type(error).__name__}); nobody can begin to "
                f"write the domain until it answers: {cause or f'check the server and {DATABASE_VARIABLE}'}"
            ) from error


@dataclass(frozen=True, slots=True)
class SilentRun:
    """An unfinished run that does not renew its lease.

    Attributes:
        domain: the domain that the run blocks; empty for a run of several domains, which blocks none.
        state: Dagster's state of the run, such as ``STARTED``.
        process: the process that last renewed the lease, for people.
        since: when the lease was last renewed, as ISO 8601 in UTC.
    """

    run_id: str
    domain: str
    state: str
    process: str
    since: str

    def said(self) -> str:
        """Return a sentence about the run."""
        return f"run {self.run_id[:8]} ({self.state}, {self.process}) has given no sign of life since {self.since}"


def silent_runs(data_dir: Path, domain: Domain, environment: Mapping[str, str] | None = None) -> list[SilentRun]:
    """Return the silent runs of a domain, and silent runs of several domains, oldest first.

    If the history cannot be read, the list is empty. ``nornweave doctor`` says why it cannot be read.
    """
    address = (os.environ if environment is None else environment).get(DATABASE_VARIABLE)
    file = data_dir / "dagster" / "runs" / "runs.db"
    try:
        rows = _rows_of_server(address) if address else _rows_of_file(file) if file.exists() else ()
    except (sqlite3.Error, OSError, NornWeaveError) as error:
        log.info("the leases of runs cannot be read: %s", error)
        return []
    now = present()
    found = []
    for run_id, state, value, of in rows:
        lease = json.loads(value)
        if of in (None, domain.value) and silence(value, now) > SILENT_S:
            found.append(SilentRun(run_id, of or "", state, lease["by"], lease["at"]))
    return found


def silence(lease: str, now: datetime) -> float:
    """Return the seconds since a lease was renewed; negative if a clock was set back."""
    return (now - datetime.fromisoformat(json.loads(lease)["at"])).total_seconds()


def lease_value(process: str, mark: str) -> str:
    """Return the value of a lease that is renewed now.

    Args:
        process: the process that renews the lease, for people.
        mark: the mark of the process that executes the run; empty until that process has started.
    """
    return json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "by": process, "mark": mark})


def open_history(file: Path) -> sqlite3.Connection:
    """Open a Dagster database for reading. Open it as immutable if this user cannot write to its folder."""
    is_ours = os.access(file.parent, os.W_OK)
    return sqlite3.connect(f"{file.as_uri()}?mode=ro{'' if is_ours else '&immutable=1'}", BUSY_TIMEOUT_S, uri=True)


def _rows_of_file(file: Path) -> Sequence[tuple[str, str, str, str | None]]:
    with closing(open_history(file.absolute())) as connection:
        return connection.execute(_UNFINISHED).fetchall()


def _rows_of_server(address: str) -> Sequence[tuple[str, str, str, str | None]]:
    with optional("postgresql", DATABASE_VARIABLE):
        import psycopg
    try:
        with psycopg.connect(plain_address(address), connect_timeout=CONNECT_S, autocommit=True) as connection:
            return connection.execute(_UNFINISHED).fetchall()
    except psycopg.Error as error:
        raise OSError(type(error).__name__) from error
