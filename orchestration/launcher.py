"""Runs on workers of other machines: a Celery task each, and a lease that says whether its process lives."""

from __future__ import annotations

from dagster import DagsterRun
from dagster_celery.launcher import CeleryRunLauncher

from orchestration.leases import LeasedRuns


class WorkerRunLauncher(LeasedRuns, CeleryRunLauncher):
    """Dagster's launcher for Celery, without its result backend.

    A result backend tells that a task has begun and never that its worker was killed since; the lease does.
    """

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
