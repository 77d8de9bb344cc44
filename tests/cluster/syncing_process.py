# ruff: noqa: T201
"""A sync of one domain in a process of its own; it stops before the publication until a line comes on its input.

``python syncing_process.py CONFIG WAIT_S`` prints ``measuring``, then ``published``, ``nothing`` or the error.
"""

import os
import subprocess
import sys
from pathlib import Path

import forked

ROOT = Path(__file__).parents[2]


class SyncingProcess:
    def __init__(self, config: Path, environment: dict[str, str], *, wait_s: float = 60) -> None:
        self.process = forked.Popen(
            [sys.executable, "-m", "syncing_process", config, wait_s],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def main(config: str, wait_s: str) -> None:
    from nornweave.connect.connectors import load_settings
    from nornweave.core.errors import NornWeaveError
    from nornweave.core.types import Domain
    from nornweave.ingest.records import SyncOptions, no_progress
    from nornweave.ingest.wiring import domain_sync

    def gate(candidate, **_):
        print("measuring", flush=True)
        sys.stdin.readline()

    options = SyncOptions(wait_s=float(wait_s))
    try:
        with domain_sync(load_settings(Path(config)), Domain.DOCUMENTATION, options, no_progress, gate=gate) as sync:
            sync.store_changes()
            sync.embed()
            published = sync.publish()
            print("published " + published.generation if published else "nothing", flush=True)
    except NornWeaveError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
