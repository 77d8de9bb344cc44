"""One Dagster works while others of the same PostgreSQL database wait: two would run every schedule twice."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from nornweave.carry.lease import DATABASE_VARIABLE, Lease, plain_address
from nornweave.core.errors import DomainBusyError, StoreError

LEASE_S = 10.0
POLL_S = 1.0
HAS_TABLES = {"has_tables": True}


@contextmanager
def wait_until_alone(
    environment: Mapping[str, str],
    open_database: Callable[[], None],
    prepare: Callable[[], None],
    note: Callable[[], None],
) -> Iterator[threading.Event]:
    """Wait until no other Dagster uses the PostgreSQL database. Without a database, do not wait.

    Args:
        environment: may have the address of the database.
        open_database: creates the tables; called before the context begins.
        prepare: called once while another Dagster works, for work that can be done ahead.
        note: called every second while it waits.

    Yields:
        An event. It is set when another Dagster has taken over, because this process was paused or cut off. Then this
        process must end.

    Raises:
        StoreError: the server cannot be reached at the beginning. If it fails later, the lease is tried again.
    """
    address = environment.get(DATABASE_VARIABLE)
    if not address:
        open_database()
        yield threading.Event()
        return
    lease = Lease(plain_address(address), "dagster", purpose="dagster", seconds=LEASE_S)
    _take(lease, prepare, note)
    try:
        open_database()
        lease.commit(HAS_TABLES)
        yield lease.lost
    finally:
        lease.release()


def _take(lease: Lease, prepare: Callable[[], None], note: Callable[[], None]) -> None:
    is_reached = is_prepared = False
    while True:
        note()
        try:
            lease.take(0)
        except DomainBusyError as error:
            if not is_reached:
                sys.stderr.write(f"standby: another Dagster works, this one waits for its lease ({error})\n")
            is_reached = True
        except StoreError:
            if not is_reached:
                raise
        else:
            return
        if is_reached and not is_prepared and _has_tables(lease):
            prepare()
            is_prepared = True
        time.sleep(POLL_S)


def _has_tables(lease: Lease) -> bool:
    """Tell whether the database has its tables. Two processes must not create them at once."""
    with suppress(StoreError):
        return bool(lease.state())
    return False
