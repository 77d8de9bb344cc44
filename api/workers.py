"""Several serving processes on one socket: a question is computation under Python's lock, so one keeps one CPU busy.

All of them accept from one socket, which each inherits (``worker.py``). The process that starts them serves nothing
itself: it replaces those that die. The socket stays open meanwhile, so that what waits to be accepted is not lost.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nornweave.config import Settings
from nornweave.core.sandbox.limits import cpu_count
from nornweave.core.types import Domain

log = logging.getLogger(__name__)

MOST_BY_ITSELF = 4
# Every worker holds what a query touches; of larger indexes one process has enough unless somebody says otherwise.
SMALL_INDEX_BYTES = 512 << 20
STOP_WITHIN_S = 7.0
HAS_WORKERS = os.name == "posix"  # elsewhere processes do not inherit sockets
POLL_S = 0.2
# A process that dies is replaced at once. If the next one lasts for less than a minute, replacing it waits for 1 s,
# then 2, 4 … 30 s: what kills each process (memory, a damaged library) is not made worse by starting them without end.
LASTING_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder through which processes add their metrics up; prometheus_client reads it when it is imported."""

Start = Callable[[], "subprocess.Popen[bytes]"]


def usual_workers(settings: Settings) -> int:
    """Return how many processes serve unless somebody says: one a CPU, four at most, of a large index one."""
    size = sum(_published_bytes(settings, domain) for domain in settings.served_domains)
    return min(cpu_count(), MOST_BY_ITSELF) if HAS_WORKERS and size < SMALL_INDEX_BYTES else 1


def _published_bytes(settings: Settings, domain: Domain) -> int:
    from nornweave.index.wiring import store_of  # DuckDB and more, which who watches over others does not need

    store = store_of(settings, domain)
    current = store.current()
    return store.files.size_bytes(current) if current else 0


def starting(config: Path, host: str, listener: socket.socket, agent: Domain | None, metrics: Path) -> Start:
    """Return what starts a serving process that accepts from ``listener`` and keeps its metrics in a shared folder."""
    shared = listener.fileno()
    command = [sys.executable, "-m", "api.worker", str(config), host, str(shared), *([agent.value] if agent else [])]
    environment = {**os.environ, METRICS_FOLDER: str(metrics)}
    return lambda: subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[shared], env=environment
    )


def supervise(
    start: Start,
    count: int,
    announce: Callable[[], None],
    received: Sequence[int],
    forget: Callable[[int], None] = lambda _: None,
    drain: Callable[[], None] = lambda: None,
    is_outdated: Callable[[], bool] = lambda: False,
) -> int:
    """Keep ``count`` serving processes running until a signal comes, then let them end.

    Args:
        start: starts one; it writes to its standard output once it serves, and ends when its standard input does.
        count: of processes.
        announce: called when the first of them serves.
        received: the signals so far.
        forget: told the number of each process that died.
        drain: called at the end, while the processes still serve.
        is_outdated: asked all the time; when it says so, each process in turn gives its place to a new one that serves.

    Returns:
        The exit code: 1 when a process failed while it ended or before any of them served, otherwise 0.
    """
    places = [WorkerPlace(start) for _ in range(count)]
    outdated: deque[WorkerPlace] = deque()
    is_serving = False
    try:
        while not received:
            for place in places:
                place.fill()
                place.let_go(forget)
            if is_outdated():
                outdated = deque(places)
            serving = _wait(places)
            if outdated and outdated[0].renew(serving):
                outdated.popleft()
            if serving and not is_serving:
                is_serving = True
                announce()
            died = [place for place in places if place.has_died and not received]
            if not is_serving and any(place.has_failed for place in died):  # it has said why
                break
            for place in died:
                if place.process:
                    forget(place.process.pid)
                place.take_note()
    finally:
        try:
            drain()
        finally:
            _stop(places)
    return max(place.code for place in places)


@dataclass(slots=True, eq=False)
class WorkerPlace:
    """A place for a serving process, and when the next one may take it.

    Attributes:
        start: starts one.
        process: the one that has the place, if any.
        successor: the one that takes it as soon as it serves.
        leaving: those that had it and end what they are answering.
        now: the clock, in seconds.
    """

    start: Start
    process: subprocess.Popen[bytes] | None = None
    successor: subprocess.Popen[bytes] | None = None
    leaving: list[subprocess.Popen[bytes]] = field(default_factory=list)
    now: Callable[[], float] = time.monotonic
    _started_at: float = 0.0
    _not_before: float = 0.0
    _pause_s: float = 0.0

    @property
    def processes(self) -> tuple[subprocess.Popen[bytes], ...]:
        """Return all that were started for the place and have not been let go."""
        return tuple(process for process in (self.process, self.successor, *self.leaving) if process)

    @property
    def has_died(self) -> bool:
        """Tell whether the process that has the place has ended."""
        return self.process is not None and self.process.poll() is not None

    @property
    def has_failed(self) -> bool:
        """Tell whether the process ended by itself with an exit code other than 0."""
        return self.process is not None and (self.process.poll() or 0) > 0

    @property
    def code(self) -> int:
        """Return the exit code of a process that was let end: 0 also where the signal came before it was handled."""
        code = self.process.poll() if self.process else 0
        return 0 if code in {None, 0, -signal.SIGTERM, -signal.SIGINT} else 1

    def fill(self) -> None:
        """Start a process if none has the place and its time has come."""
        if self.process is None and self.now() >= self._not_before:
            try:
                self.process = self.start()
            except OSError as error:  # no memory, no descriptors
                log.error("no serving process can be started: %s", error)
                self._wait_longer()
            else:
                self._started_at = self.now()
                log.info("serving process %d started", self.process.pid)

    def renew(self, serving: Collection[subprocess.Popen[bytes]]) -> bool:
        """Give the place to a new process; return whether it has it, or will never have it.

        Args:
            serving: the processes that said a moment ago that they serve.
        """
        if self.successor is None:
            try:
                self.successor = self.start()
            except OSError as error:
                log.error("no serving process can be started to take over new settings: %s", error)
                return True
        if self.successor.poll() is not None:
            log.error("serving process %d does not take over new settings: it ended", self.successor.pid)
            _close(self.successor)
            self.successor = None
            return True
        if self.successor not in serving:
            return False
        if self.process:
            _let_end(self.process)
            self.leaving.append(self.process)
        self.process, self.successor, self._started_at = self.successor, None, self.now()
        return True

    def let_go(self, forget: Callable[[int], None]) -> None:
        """Forget those that have left."""
        for process in [each for each in self.leaving if each.poll() is not None]:
            forget(process.pid)
            _close(process)
            self.leaving.remove(process)

    def take_note(self) -> None:
        """Log how the process ended and let another one take its place, the later the more often that happened."""
        if self.process is None:
            return
        lasted_s = self.now() - self._started_at
        if lasted_s >= LASTING_S:
            self._pause_s = 0.0
        said = f"serving process {self.process.pid} {_ending(self.process.returncode)} after {lasted_s:.0f} s"
        _close(self.process)
        self.process = None
        pause_s = self._pause_s
        self._wait_longer()
        log.error("%s; another one takes its place %s", said, f"in {pause_s:g} s" if pause_s else "now")

    def _wait_longer(self) -> None:
        self._not_before = self.now() + self._pause_s
        self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)


def _ending(code: int) -> str:
    """Return how a process ended, for people."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _wait(places: Sequence[WorkerPlace]) -> list[subprocess.Popen[bytes]]:
    """Wait a moment, less when a process says or ends something; return those that said that they serve."""
    with selectors.DefaultSelector() as selector:
        for process in (each for place in places for each in (place.process, place.successor) if each):
            if process.stdout:
                selector.register(process.stdout, selectors.EVENT_READ, process)
        return [key.data for key, _ in selector.select(POLL_S) if os.read(key.fd, 1024)]


def _stop(places: Sequence[WorkerPlace]) -> None:
    """Let all processes end, and end those that do not."""
    processes = [process for place in places for process in place.processes]
    for process in processes:
        _let_end(process)
    deadline = time.monotonic() + STOP_WITHIN_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _close(process)


def _let_end(process: subprocess.Popen[bytes]) -> None:
    """Let a process answer what it is being asked, then end: it does when its standard input does."""
    if process.stdin:
        process.stdin.close()


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
