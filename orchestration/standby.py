"""One Dagster works, others of the same PostgreSQL database wait for its lease: two would do every schedule twice."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from nornweave.core.errors import DomainBusyError, StoreError
from nornweave.index.leases.lease import DATABASE_VARIABLE, Lease, plain_address

LEASE_S = 10.0
POLL_S = 1.0


@contextmanager
def alone(environment: Mapping[str, str]) -> Iterator[threading.Event]:
    """Wait until no other Dagster uses the database; on one machine's files there is no other.

    Yields:
        What is set once another Dagster has taken over, because this one was paused or cut off: it has to end.

    Raises:
        StoreError: the server cannot be reached at the beginning; later it is waited for.
    """
    address = environment.get(DATABASE_VARIABLE)
    if not address:
        yield threading.Event()
        return
    lease = Lease(plain_address(address), "dagster", purpose="dagster", seconds=LEASE_S)
    _take(lease)
    try:
        yield lease.lost
    finally:
        lease.release()


def _take(lease: Lease) -> None:
    is_reached = False
    while True:
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
        time.sleep(POLL_S)
