"""Runs on workers of other machines: a Celery task each, and a lease that says whether its process lives."""

from __future__ import annotations

from typing import Any

from dagster import DagsterRun
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher

from nornweave.core.errors import StoreError
from nornweave.index.leases.wiring import run_lease
from nornweave.share.workers.wiring import workers_of
from orchestration.definitions import settings_from_environment


class WorkerRunLauncher(CeleryRunLauncher):
    """Dagster's launcher for Celery, without its result backend.

    A result backend tells that a task has begun and never that its worker was killed since. The process of a run holds
    a lease instead (``orchestration.worker_run``).
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._expired: set[str] = set()

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Tell whether the process of a run has died: its lease has ended at two looks in a row.

        One look is not enough: after PostgreSQL was away, every lease has ended until its holder renews it.
        """
        try:
            expired = run_lease(workers_of(settings_from_environment()), run.run_id).is_abandoned()
        except StoreError as error:
            return CheckRunHealthResult(WorkerStatus.RUNNING, str(error))  # Dagster fails a run of unknown health
        was_expired = run.run_id in self._expired
        self._expired.discard(run.run_id)
        if not expired:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        if was_expired:
            return CheckRunHealthResult(WorkerStatus.FAILED, "Its worker is gone: killed, or cut off from PostgreSQL.")
        self._expired.add(run.run_id)
        return CheckRunHealthResult(WorkerStatus.RUNNING, "Its lease has ended; the next look tells.")

    def terminate(self, run_id: str) -> bool:  # noqa: ARG002
        """Return that it cannot be done from here: the UI can mark a run as canceled, and its worker finishes it."""
        return False

    def get_run_worker_debug_info(self, run: DagsterRun, include_container_logs: bool | None = True) -> str | None:  # noqa: ARG002
        """Return nothing: what a worker says is in its own log."""
        return None

    @property
    def supports_resume_run(self) -> bool:
        """A run that was lost is not resumed but tried again, as a new run."""
        return False
