"""Syncs that a person starts on the status page, each a process ``nornweave sync``; one per domain at a time.

The server itself does not load the orchestration. A file for each domain records its running sync, so that all
serving processes know it.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from nornweave.config import Settings
from nornweave.core.errors import DomainBusyError, StoreError
from nornweave.core.files.lock import WriterLock
from nornweave.core.files.writing import write_whole
from nornweave.core.types import Domain, present

log = logging.getLogger(__name__)

STOP_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A sync that is under way.

    Attributes:
        step: the current step; empty before the first report.
        done: how much of ``total`` is done, in units of the step. The total of a listing is 0 if it is unknown.
        pace: ``done`` and ``total`` in words, with the rate and the remaining time.
    """

    since: datetime
    step: str = ""
    done: int = 0
    total: int = 0
    pace: str = ""


class Syncs:
    """Starts syncs and returns the running ones. Every method may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = settings.data_dir / "syncs"
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, domain: Domain, *, confirm_deletes: bool = False) -> bool:
        """Start a sync of a domain; return ``False`` if one that was started here still runs.

        Args:
            confirm_deletes: carry out the removals that were held back.

        Raises:
            StoreError: the sync cannot be started.
        """
        try:
            with WriterLock(self._file(domain, "lock"), purpose="start a sync", wait_s=5):
                if self.running(domain):
                    return False
                process = self._launch(domain, ["--confirm-deletes"] if confirm_deletes else [])
                made = {"pid": process.pid, "created": psutil.Process(process.pid).create_time()}
                write_whole(self._file(domain, "json"), json.dumps({**made, "since": present().isoformat()}))
        except (OSError, DomainBusyError, psutil.Error) as error:
            raise StoreError(f"a sync of {domain.value} cannot be started: {error}") from error
        self._started.append(process)
        threading.Thread(target=process.wait, name=f"sync {domain.value}", daemon=True).start()
        return True

    def running(self, domain: Domain) -> Running | None:
        """Return the running sync of a domain that was started here; ``None`` if there is none."""
        made = _read(self._file(domain, "json"))
        if not _is_alive(made):
            return None
        told = _read(self._file(domain, "progress"))
        since = datetime.fromisoformat(made["since"])
        return Running(since=since, **{name: told[name] for name in ("step", "done", "total", "pace") if name in told})

    def close(self) -> None:
        """End the syncs that this process started. Stored work stays, and the next sync finishes the rest."""
        for process in self._started:
            if process.poll() is None:
                process.terminate()
        for process in self._started:
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _launch(self, domain: Domain, options: Sequence[str]) -> subprocess.Popen[bytes]:
        progress = self._file(domain, "progress")
        progress.unlink(missing_ok=True)
        config = ["--config", str(self._settings.file)]
        what = ["sync", "--domain", domain.value, "--progress-file", str(progress), *options]
        with self._file(domain, "log").open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "nornweave.cli", *config, *what],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )

    def _file(self, domain: Domain, kind: str) -> Path:
        return self._folder / f"{domain.value}.{kind}"


def _read(file: Path) -> Mapping[str, Any]:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _is_alive(made: Mapping[str, Any]) -> bool:
    """Tell whether the recorded process still runs. Another process with the same number does not count."""
    try:
        process = psutil.Process(made["pid"])
        return process.create_time() == made["created"] and process.status() != psutil.STATUS_ZOMBIE
    except (KeyError, TypeError, ValueError, psutil.Error):
        return False
