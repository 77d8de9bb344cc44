"""Read the leases of Dagster's runs without Dagster, for ``status``, ``doctor`` and the page.

A run renews its lease every few seconds (``orchestration.leases``): a row of the key-value table that Dagster keeps
beside its runs, in ``data_dir/dagster`` or in PostgreSQL.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nornweave.carry.lease import CONNECT_S, DATABASE_VARIABLE, plain_address
from nornweave.core.errors import NornWeaveError
from nornweave.core.installation import optional
from nornweave.core.types import Domain, present

log = logging.getLogger(__name__)

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
