"""Leases of Dagster's runs: the executing process renews a run's lease, and a run without renewals is over.

The lease is a row of the key-value table beside the runs: whoever shares a history shares it, on one machine's files
or in PostgreSQL. Dagster's monitor gives a run up whose lease was not renewed for ``LEASE_S``: it compares what it saw
at one look with what it sees at the next, so that neither host names nor clocks matter. A suspended machine suspends
both; after one that was paused alone, a gap between two looks counts as one look.

One Dagster works while others of the same PostgreSQL database wait: two would run every schedule twice.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg
import psutil
from dagster._core.events import DagsterEvent
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, LaunchRunContext, WorkerStatus
from dagster._core.storage.runs.schema import KeyValueStoreTable

from nornweave.carry.lease import DATABASE_VARIABLE, LEASE_KEY, SILENT_S, Lease, lease_value, plain_address, silence
from nornweave.core.errors import DomainBusyError, StoreError
from nornweave.core.types import present

log = logging.getLogger(__name__)

BEAT_S = 10.0
LEASE_S = 80.0
LOOK_S = 10
"""Seconds from one look of Dagster's monitor to the next."""
RUNNING = (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
BEGUN = (*RUNNING, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING)

STANDBY_LEASE_S = 10.0
POLL_S = 1.0
HAS_TABLES = {"has_tables": True}


def renew(instance: dg.DagsterInstance, run_id: str, *, executes: bool = True) -> None:
    """Renew a run's lease; ``executes`` tells whether this process executes the run."""
    process = f"pid {os.getpid()} on {socket.gethostname()}"
    value = lease_value(process, process_mark()) if executes else lease_value(f"launched by {process}", "")
    instance.daemon_cursor_storage.set_cursor_values({LEASE_KEY + run_id: value})


@contextmanager
def hold_lease(instance: dg.DagsterInstance, run_id: str) -> Iterator[None]:
    """Hold and renew a run's lease in a thread. The run need not exist yet. The lease is deleted at the end."""
    if not instance.is_persistent:
        yield
        return

    def keep() -> None:
        while not ended.wait(BEAT_S):
            try:
                renew(instance, run_id)
            except Exception as error:  # a full disk, a server that is away: the next may succeed
                log.info("the lease of run %s was not renewed: %s", run_id, error)

    ended = threading.Event()
    renew(instance, run_id)
    thread = threading.Thread(target=keep, name=f"lease of run {run_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        forget_lease(instance, run_id)


def forget_lease(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run's lease. Errors are ignored, because an old lease does no harm."""
    with suppress(Exception), instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
        connection.execute(KeyValueStoreTable.delete().where(KeyValueStoreTable.c.key == LEASE_KEY + run_id))


class _LeasedExecutor(InProcessExecutor):
    def execute(self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan) -> Iterator[DagsterEvent]:
        with hold_lease(plan_context.instance, plan_context.run_id):
            yield from super().execute(plan_context, execution_plan)


@dg.executor(name="in_process")
def leased_executor(_: dg.InitExecutorContext) -> _LeasedExecutor:
    """Return the executor that executes all steps in the run's own process, under the run's lease."""
    return _LeasedExecutor(RetryMode.ENABLED)


class LeaseWatch:
    """Measures how long leases were not renewed."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str | None, float, float]] = {}

    def silence(self, run_id: str, lease: str | None, now: float) -> float:
        """Return the seconds since a lease last changed or disappeared.

        Args:
            lease: the lease as it is now; ``None`` if there is none.
            now: the time of a monotonic clock.
        """
        seen, silent, looked_at = self._seen.get(run_id, ("", 0.0, now))
        silent = silent + min(now - looked_at, 2 * LOOK_S) if seen == lease else 0.0
        self._seen = {key: each for key, each in self._seen.items() if now - each[2] < SILENT_S}
        self._seen[run_id] = (lease, silent, now)
        return silent


class HereRunLauncher(DefaultRunLauncher):
    """Dagster's launcher of local processes, with leases. A run whose lease is not renewed counts as dead."""

    _watch: LeaseWatch | None = None

    def launch_run(self, context: LaunchRunContext) -> None:
        """Create the run's lease, then launch the run."""
        renew(self._instance, context.dagster_run.run_id, executes=False)
        super().launch_run(context)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Let Dagster check every running run each ``LOOK_S``."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Report whether a run is alive. If its lease cannot be read, it counts as alive."""
        self._watch = self._watch or LeaseWatch()
        try:
            lease = _lease_of(self._instance, run.run_id)
        except Exception as error:
            return CheckRunHealthResult(WorkerStatus.RUNNING, str(error))
        silent = self._watch.silence(run.run_id, lease, time.monotonic())
        if silent < LEASE_S and not _is_gone(lease):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, _end_message(lease))


def fail_abandoned_runs(instance: dg.DagsterInstance) -> int:
    """Mark dead runs as failed. Return their number.

    A killed process cannot end its run, and a run that never ends blocks its domain's queue. A run of this machine is
    dead if its process has ended. A run of another machine is dead if its lease was not renewed for ``SILENT_S``.
    """
    now, failed = present(), 0
    for run in instance.get_runs(dg.RunsFilter(statuses=list(BEGUN))):
        lease = _lease_of(instance, run.run_id)
        is_silent = lease is not None and run.status in RUNNING and silence(lease, now) > SILENT_S
        if is_silent or _is_gone(lease):
            instance.report_run_failed(run, message=_end_message(lease))
            forget_lease(instance, run.run_id)
            failed += 1
    return failed


def _lease_of(instance: dg.DagsterInstance, run_id: str) -> str | None:
    key = LEASE_KEY + run_id
    return instance.daemon_cursor_storage.get_cursor_values({key}).get(key)


def _end_message(lease: str | None) -> str:
    said = json.loads(lease) if lease else {"by": "nobody said that it executes it", "at": "it was made"}
    return f"It is over: no sign of life since {said['at']} ({said['by']}). It was killed, or its machine went down."


def _is_gone(lease: str | None) -> bool:
    return lease is not None and is_gone(json.loads(lease)["mark"])


def process_mark() -> str:
    """Return a text that identifies this process even after its id is used again."""
    pid = os.getpid()
    return f"{pid}@{_kernel()}@{_start_time(pid)}"


def is_gone(mark: str) -> bool:
    """Tell whether a marked process has ended; ``False`` for other machines and containers."""
    pid, _, rest = mark.partition("@")
    kernel, _, started = rest.rpartition("@")
    if kernel != _kernel() or not (pid.isdecimal() and started.isdecimal()):
        return False  # this machine cannot know
    try:
        return _start_time(int(pid)) != int(started)
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return True


def _kernel() -> str:
    """Return a name for the system in which a process id is unique: the host, or on Linux its boot and namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def _start_time(pid: int) -> int:
    """Return when a process started, in seconds since 1970; on Linux in ticks since the boot."""
    if Path("/proc/self/stat").exists():
        return int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        )
    return int(psutil.Process(pid).create_time())


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
    lease = Lease(plain_address(address), "dagster", purpose="dagster", seconds=STANDBY_LEASE_S)
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
