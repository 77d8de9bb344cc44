"""Sync the sources that webhooks report, with ``nornweave sync``, one process at a time for each domain.

It starts within a second. What comes meanwhile waits for the next one, however many events that are. An event is
forgotten when a sync that began after it has ended well; one that fails is tried again, then left to the schedule.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nornweave.config import Settings
from nornweave.connect.hooks import HookQueue
from nornweave.core.errors import NornWeaveError
from nornweave.core.types import Domain
from orchestration.definitions import settings_from_environment

log = logging.getLogger(__name__)

POLL_S = 0.5
WAIT_S = 300
"""For so long a sync waits for another one of its domain."""
TRIES = 3
AGAIN_S = 60.0


@dataclass(slots=True)
class _Started:
    process: subprocess.Popen[bytes]
    taken: Mapping[str, int]
    log: Path


@dataclass(slots=True)
class HookSyncs:
    """Starts syncs of sources that webhooks report."""

    data_dir: Path
    _running: dict[Domain, _Started] = field(default_factory=dict)
    _failures: dict[Domain, int] = field(default_factory=dict)
    _rests_until: dict[Domain, float] = field(default_factory=dict)

    def run(self, stopping: threading.Event) -> None:
        """Call ``look`` regularly until ``stopping`` is set."""
        while not stopping.wait(POLL_S):
            try:
                self.look()
            except (NornWeaveError, OSError) as error:  # a configuration that is being edited, a full disk
                log.warning("what webhooks tell is not synced now: %s", error)
                stopping.wait(AGAIN_S)

    def look(self) -> None:
        """Record syncs that have ended, and start syncs that are due.

        Raises:
            ConfigError: the configuration is wrong.
            StoreError: the queue of events cannot be read.
            OSError: a sync cannot be started.
        """
        for domain in [each for each, started in self._running.items() if started.process.poll() is not None]:
            self._end(domain, self._running.pop(domain))
        queue = HookQueue(self.data_dir)
        if not (waiting := queue.waiting()):
            return
        settings = settings_from_environment()
        domains = {source.id: source.domain for source in settings.sources}
        queue.done({source: events for source, events in waiting.items() if source not in domains})
        for domain in sorted(set(domains.values()) - self._running.keys()):
            taken = {source: events for source, events in waiting.items() if domains.get(source) is domain}
            if taken and time.monotonic() >= self._rests_until.get(domain, 0):
                self._running[domain] = self._start(settings, domain, taken)

    def stop(self) -> None:
        """End the running syncs. What they stored stays, and their events wait for the next start."""
        for started in self._running.values():
            started.process.terminate()

    def _start(self, settings: Settings, domain: Domain, taken: Mapping[str, int]) -> _Started:
        said = self.data_dir / "syncs" / f"{domain.value}.hooks.log"
        said.parent.mkdir(parents=True, exist_ok=True)
        named = [word for source in taken for word in ("--source", source)]
        command = ["--config", str(settings.file), "sync", "--domain", domain.value, *named, "--wait", str(WAIT_S)]
        with said.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "nornweave.cli", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stream,
            )
        return _Started(process, taken, said)

    def _end(self, domain: Domain, started: _Started) -> None:
        if started.process.returncode:
            self._failures[domain] = self._failures.get(domain, 0) + 1
            lines = started.log.read_text(encoding="utf-8", errors="replace").split("\n")
            why = next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")
            left = f"tried again in {AGAIN_S:g} s" if self._failures[domain] < TRIES else "left to the schedule"
            log.warning("%s: a sync that webhooks asked for failed, %s: %s", domain.value, left, why)
            self._rests_until[domain] = time.monotonic() + AGAIN_S
            if self._failures[domain] < TRIES:
                return
        self._failures.pop(domain, None)
        HookQueue(self.data_dir).done(started.taken)
