"""Runs on workers of other machines: a Celery task each, and a lease that says whether its process lives."""

from __future__ import annotations

from dagster import DagsterRun
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher

from nornweave.core.errors import StoreError
from nornweave.index.leases.domain_lease import run_lease
from nornweave.share.workers.wiring import workers_of
from orchestration.definitions import settings_from_environment


class WorkerRunLauncher(CeleryRunLauncher):
    """Dagster's launcher for Celery, without its result backend.

    A result backend tells that a task has begun and never that its worker was killed since. The process of a run holds
    a lease instead (``orchestration.worker_run``).
    """

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Tell whether the process of a run has died."""
        try:
            dead = run_lease(workers_of(settings_from_environment()), run.run_id).is_abandoned()
        except StoreError as error:
            return CheckRunHealthResult(WorkerStatus.UNKNOWN, str(error))
        if dead:
            return CheckRunHealthResult(WorkerStatus.FAILED, "Its worker is gone: killed, or cut off from PostgreSQL.")
        return CheckRunHealthResult(WorkerStatus.RUNNING)

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
