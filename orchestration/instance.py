"""The Dagster instance: the place of runs, events and ticks (``data_dir/dagster``, or PostgreSQL)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

# ``InstanceRef`` is not public; there is no other way to say where the instance lives without ``DAGSTER_HOME``.
from dagster._core.instance.ref import InstanceRef

from nornweave.carry.lease import DATABASE_VARIABLE as POSTGRES_VARIABLE
from nornweave.carry.lease import DOMAIN_TAG
from nornweave.config import Settings
from nornweave.core.deletion import Deleted, Place, Search
from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import write_whole
from nornweave.core.installation import bundled_folder, optional
from orchestration.history import translate_history_errors
from orchestration.leases import BEGUN, LOOK_S, fail_abandoned_runs, forget_lease

COMMAND_TAG = "nornweave/command"

# What workspace.yaml at the top of the repository says; an installed package has no such file beside it.
# Dagster puts the working directory first on the path of the code location: it must not be the user's.
WORKSPACE = {
    "load_from": [
        {
            "python_module": {
                "module_name": "orchestration.definitions",
                "location_name": "nornweave",
                "working_directory": str(bundled_folder()),
            }
        }
    ]
}
# SQLite serves two writers well; PostgreSQL is for more.
MAX_CONCURRENT_RUNS = 2
START_S, START_ELSEWHERE_S = 100, 180
"""Seconds from a run's launch to its first step; elsewhere it may wait for a worker or a node."""
KEEP_TICKS_DAYS = 7
KEEP_RUNS_DAYS = 90
FORGET_AT_ONCE = 200
UNFINISHED = (*BEGUN, dg.DagsterRunStatus.QUEUED)
FINISHED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


IN_MEMORY: dict[str, Any] = {
    "telemetry": {"enabled": False},
    # Dagster tells every event on stderr at level DEBUG; the UI has them all the same.
    "python_logs": {"python_log_level": "INFO"},
}
"""What holds of an instance in memory as well."""


def home_of(settings: Settings) -> Path:
    """Return the folder for ``DAGSTER_HOME``."""
    return settings.data_dir / "dagster"


def write_instance(settings: Settings, environment: MutableMapping[str, str] | None = None) -> Path:
    """Write ``dagster.yaml`` and ``workspace.yaml`` from settings and environment. Return their folder.

    The address of a PostgreSQL server stays in the environment, because it holds a password.

    Raises:
        ConfigError: the address is not valid, or the packages for PostgreSQL are not installed.
    """
    environment = os.environ if environment is None else environment
    home = home_of(settings)
    home.mkdir(parents=True, exist_ok=True)
    if address := environment.get(POSTGRES_VARIABLE):
        environment[POSTGRES_VARIABLE] = postgres_url(address)
        with optional("postgresql", POSTGRES_VARIABLE):
            import dagster_postgres  # noqa: F401 - Dagster imports it by name
    content = instance_config(home, postgres=bool(address))
    if (workers := settings.workers) and workers.run_launcher:
        if not address:
            raise ConfigError(f"workers.run_launcher: needs PostgreSQL; set {POSTGRES_VARIABLE} to its address")
        content |= {
            "run_launcher": workers.run_launcher.model_dump(by_alias=True),
            "run_monitoring": {**content["run_monitoring"], "start_timeout_seconds": START_ELSEWHERE_S},
        }
    _write(home / "dagster.yaml", content)
    _write(home / "workspace.yaml", WORKSPACE)
    return home


def _write(file: Path, content: Mapping[str, Any]) -> None:
    """Write a file if its content differs. The write is atomic, because other processes may be reading the file."""
    text = yaml.safe_dump(content, sort_keys=False)
    if not file.exists() or file.read_bytes() != text.encode():
        write_whole(file, text)


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Open the instance for runs in this process; a context manager.

    The output of runs is not captured, because that would redirect this process's own stderr.

    Raises:
        ConfigError: as ``write_instance``.
        StoreError: the server that records runs does not answer.
        HistoryError: the files that record runs cannot be read or written.
    """
    silent = {
        "compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
    }
    with translate_history_errors(home_of(settings)):
        home = write_instance(settings)
        if address := os.environ.get(POSTGRES_VARIABLE):  # Dagster tries for half a minute, and ends in a trace
            with optional("postgresql", POSTGRES_VARIABLE):
                from nornweave.carry.postgresql.server import check_answers
            check_answers(address, POSTGRES_VARIABLE)
        instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=silent))
        fail_abandoned_runs(instance)
    return instance


def instance_config(home: Path, *, postgres: bool) -> dict[str, Any]:
    """Return the contents of ``dagster.yaml``, with runs recorded in PostgreSQL or in files below ``home``."""
    return {
        **IN_MEMORY,
        "nux": {"enabled": False},
        **(_POSTGRES if postgres else _sqlite(home)),
        "concurrency": {
            "runs": {
                "max_concurrent_runs": MAX_CONCURRENT_RUNS,
                # Queued runs of one domain wait for each other. This is politeness: what protects the domain is the
                # writer's lock, which runs outside the queue (the command line) respect as well.
                "tag_concurrency_limits": [
                    {"key": DOMAIN_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
                ],
            }
        },
        "run_queue": {"dequeue_interval_seconds": 1},
        # A run whose process died is tried once more. Retries of a step are separate.
        "run_retries": {"enabled": True, "max_retries": 1, "retry_on_asset_or_op_failure": False},
        "run_launcher": {"module": "orchestration.leases", "class": "HereRunLauncher"},
        "run_monitoring": {
            "enabled": True,
            "poll_interval_seconds": LOOK_S,
            "start_timeout_seconds": START_S,
            "cancel_timeout_seconds": 60,
        },
        "retention": {
            "schedule": {"purge_after_days": KEEP_TICKS_DAYS},
            "sensor": {
                "purge_after_days": {"skipped": 1, **dict.fromkeys(("success", "failure", "started"), KEEP_TICKS_DAYS)}
            },
        },
    }


_POSTGRES: Mapping[str, Any] = {"storage": {"postgres": {"postgres_url": {"env": POSTGRES_VARIABLE}}}}


def _sqlite(home: Path) -> dict[str, Any]:
    def storage(name: str, folder: str) -> dict[str, Any]:
        return {"module": "orchestration.storage", "class": name, "config": {"base_dir": str(home / folder)}}

    return {
        "run_storage": storage("KeptRunStorage", "runs"),
        "event_log_storage": storage("KeptEventLogStorage", "events"),
        "schedule_storage": storage("KeptScheduleStorage", "schedules"),
    }


def postgres_url(address: str) -> str:
    """Return an address for SQLAlchemy, which no longer accepts ``postgres://``.

    Raises:
        ConfigError: it is not a PostgreSQL address. The message does not repeat it, because it may hold a password.
    """
    scheme, separator, rest = address.strip().partition("://")
    if not separator or not re.fullmatch(r"postgres(ql)?(\+psycopg2)?", scheme):
        raise ConfigError(f"{POSTGRES_VARIABLE}: expected postgresql://user:password@host:port/database")
    return f"postgresql+psycopg2://{rest}"


def forget_old_runs(instance: dg.DagsterInstance, *, now: datetime | None = None) -> int:
    """Delete at most ``FORGET_AT_ONCE`` runs older than ``KEEP_RUNS_DAYS``, with their events. Return their number.

    If no runs were deleted, the history would grow for ever. An hourly refresh alone is 35,000 runs a year.
    """
    before = (now or datetime.now(UTC)) - timedelta(days=KEEP_RUNS_DAYS)
    runs = instance.get_runs(dg.RunsFilter(statuses=list(FINISHED), created_before=before), limit=FORGET_AT_ONCE)
    for run in runs:
        instance.delete_run(run.run_id)
        forget_lease(instance, run.run_id)
    return len(runs)


def runs_place(settings: Settings) -> Place:
    """Return Dagster's runs as a place to search for a deleted document. A purge deletes the runs that quote it."""

    def search(deleted: Deleted) -> Search:
        with open_instance(settings) as instance:
            runs = _quoting(instance, deleted)
        return Search(len(runs), "events of all runs in Dagster", tuple(runs[:10]))

    def purge(deleted: Deleted) -> None:
        with open_instance(settings) as instance:
            for run in _quoting(instance, deleted):
                instance.delete_run(run)

    return Place(name="runs", search=search, purge=purge)


def _quoting(instance: dg.DagsterInstance, deleted: Deleted) -> list[str]:
    runs = instance.get_run_ids() if deleted.passages else []
    return [
        run
        for run in runs
        if any(deleted.is_in(dg.serialize_value(event).encode()) for event in instance.all_logs(run))
    ]
