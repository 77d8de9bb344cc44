"""Runs as Kubernetes jobs: one each, of the image that everything else runs from."""

from __future__ import annotations

from dagster import DagsterRun
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster_k8s.job import get_job_name_from_run_id
from dagster_k8s.launcher import K8sRunLauncher

from orchestration.leases import LeasedRuns, renew


class JobRunLauncher(LeasedRuns, K8sRunLauncher):
    """Dagster's launcher of Kubernetes jobs, with our own command.

    Dagster's command expects the instance's configuration and the code's place of the process that launches. Ours
    (``orchestration.worker_run``) reads ``nornweave.yaml``, as every other process does.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Create the job of a run."""
        run: DagsterRun = context.dagster_run
        renew(self._instance, run.run_id, executes=False)
        name: str = get_job_name_from_run_id(run.run_id)  # type: ignore[no-untyped-call]
        self._launch_k8s_job_with_args(name, ["worker", "--run", run.run_id], run)

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Ask Kubernetes first, which knows at once; of a run that is no job of its (a command's) the lease tells."""
        said: CheckRunHealthResult = K8sRunLauncher.check_run_worker_health(self, run)
        return super().check_run_worker_health(run) if said.status is WorkerStatus.UNKNOWN else said

    @property
    def supports_resume_run(self) -> bool:
        """A run that was lost is not resumed but tried again, as a new run."""
        return False
