"""``python -m orchestration``: prepare the Dagster instance, then become ``dagster dev``."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from nornweave.errors import NornWeaveError
from orchestration.definitions import settings_from_environment
from orchestration.instance import open_instance, write_instance


def main() -> None:
    """Start the Dagster UI with its daemon; this process becomes it, so that signals reach it."""
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=main.__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=3000)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        settings = settings_from_environment()
        home = write_instance(settings)
        with open_instance(settings):
            pass  # makes its tables before several processes need them, and ends what was abandoned
    except NornWeaveError as error:
        sys.exit(str(error))
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(home / "workspace.yaml")]
    command += ["-h", options.host, "-p", str(options.port), "--log-level", "error"]
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "NORNWEAVE_CONFIG": str(settings.file),
        # "Use dg dev": that needs a project of its own layout, and workspace.yaml is what was asked for.
        "PYTHONWARNINGS": "ignore:Function `dev_command` is superseded",
    }
    os.execve(sys.executable, command, environment)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
