"""A worker that executes Dagster runs: one at a time, each in a process of its own."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import unpack_value
from dagster_celery.config import TASK_EXECUTE_JOB_NAME
from dagster_celery.make_app import make_app

from nornweave.share.workers.app import CONFIGURATION, work
from orchestration.instance import RUNS_QUEUE

log = logging.getLogger(__name__)


def run_runs_worker(broker: str, *, name: str) -> int:
    """Work until SIGTERM, which lets the run in hand finish; return the exit code."""
    app: Any = make_app({"broker": broker, "set_as_current": False})  # type: ignore[no-untyped-call]
    # A run is acknowledged when it begins: it may take hours, and its lease says whether it lives.
    app.conf.update(**CONFIGURATION, task_acks_late=False)
    app.task(execute, name=TASK_EXECUTE_JOB_NAME)
    return work(app, name=name, pool="solo", processes=1, queues=[RUNS_QUEUE])


def execute(execute_job_args_packed: Any) -> None:
    """Execute the run that a message names; what it runs is in Dagster's storage, not in the message."""
    run_id = unpack_value(execute_job_args_packed, as_type=ExecuteRunArgs).run_id
    log.info("run %s begins", run_id)
    ended = subprocess.run([sys.executable, "-m", "orchestration.worker_run", run_id], check=False)
    log.info("run %s ended with exit code %d", run_id, ended.returncode)
