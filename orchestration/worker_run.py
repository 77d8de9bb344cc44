"""``python -m orchestration.worker_run RUN_ID``: execute one run that the broker handed to this machine.

A process of its own: what a run takes of memory goes with it, and the worker survives it.
"""

from __future__ import annotations

import logging
import os
import sys

import dagster as dg
from dagster._cli.api import _execute_run_command_body

from nornweave.core.errors import NornWeaveError
from orchestration.definitions import CONFIG_VARIABLE, settings_from_environment
from orchestration.instance import write_instance


def main(run_id: str) -> int:
    """Execute a run; return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        settings = settings_from_environment()
        os.environ |= {"DAGSTER_HOME": str(write_instance(settings)), CONFIG_VARIABLE: str(settings.file)}
    except NornWeaveError as error:
        sys.exit(str(error))
    with dg.DagsterInstance.get() as instance:
        return _execute_run_command_body(run_id, instance, lambda _event: None, set_exit_code_on_failure=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
