"""A worker that executes Dagster runs: one at a time, each in a process of its own."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from typing import Any

from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import unpack_value
from dagster_celery.config import TASK_EXECUTE_JOB_NAME
from dagster_celery.make_app import make_app

from nornweave.cluster.app import keep_logging
from orchestration.instance import RUNS_QUEUE

log = logging.getLogger(__name__)


def run_runs_worker(broker: str, *, name: str) -> int:
    """Work until SIGTERM, which lets the run in hand finish; return the exit code."""
    app: Any = make_app({"broker": broker, "set_as_current": False})  # type: ignore[no-untyped-call]
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        result_backend=None,
        task_ignore_result=True,
        # A run is acknowledged when it begins: it may take hours, and its lease says whether it lives.
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    app.task(execute, name=TASK_EXECUTE_JOB_NAME)
    keep_logging()
    worker: Any = app.Worker(
        hostname=f"{name}@{socket.gethostname()}",
        concurrency=1,
        pool="solo",
        queues=[RUNS_QUEUE],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def execute(execute_job_args_packed: Any) -> None:
    """Execute the run that a message names; what it runs is in Dagster's storage, not in the message."""
    run_id = unpack_value(execute_job_args_packed, as_type=ExecuteRunArgs).run_id
    log.info("run %s begins", run_id)
    ended = subprocess.run([sys.executable, "-m", "orchestration.worker_run", run_id], check=False)
    log.info("run %s ended with exit code %d", run_id, ended.returncode)
