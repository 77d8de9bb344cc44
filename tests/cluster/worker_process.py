"""``nornweave worker`` as a process of its own, with a configuration and a data folder of its own."""

import os
import signal
import sys
from pathlib import Path

import forked
import yaml

ROOT = Path(__file__).parents[2]


def write_config(folder: Path, *, broker: str, objects: str, model: str = "hash:64", **workers: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "data_dir": "./var",
        "domains": {"documentation": {"embedding": {"model": model}}},
        "workers": {"broker": broker, "objects": objects, **workers},
    }
    file = folder / "nornweave.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


class WorkerProcess:
    def __init__(self, config: Path) -> None:
        self.log = config.parent / "worker.log"
        with self.log.open("ab") as log:
            self.process = forked.Popen(
                [sys.executable, "-m", "nornweave.cli", "--config", str(config), "worker"],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT), "LOG_LEVEL": "INFO"},
                start_new_session=True,
            )

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def kill(self) -> None:
        """End it and its children as a machine that loses power does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
