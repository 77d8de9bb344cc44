"""Several serving processes on one socket, which is opened once, before anything is loaded.

All accept from one socket, which each process inherits (``process.py``). The process that starts them serves nothing:
it replaces those that die. The socket stays open meanwhile, so that connections that wait to be accepted are not lost.

The first process accepts at once, so that clients learn that loading is under way. The others are started when it has
loaded everything, and accept when they have loaded too. So ``/ready`` never says no after it has said yes.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from nornweave.config import Settings
from nornweave.core.errors import ConfigError
from nornweave.core.process import cpu_count
from nornweave.core.supervisor import PortInUseError
from nornweave.core.types import Domain

log = logging.getLogger(__name__)

# Connections that wait to be accepted while every process is busy or being replaced.
BACKLOG = 512
# After each connection a process leaves the next to others for so long for each that is open here. From a crowd of
# connections on, shares are even enough by chance, and a pause would make the last of them wait for seconds.
PAUSE_S, LONGEST_ACCEPTING_PAUSE_S = 0.005, 0.025
CROWD = 16
RETRY_S = 0.1


def default_port(agent: Domain | None, environment: Mapping[str, str]) -> int:
    """Return the port of the API, or of an agent that is served alone.

    Raises:
        ConfigError: the variable does not hold a port.
    """
    variable, default = ("AGENT_PORT", "8081") if agent else ("FUSION_PORT", "8082")
    value = environment.get(variable) or default
    if not (value.isascii() and value.isdecimal() and int(value[:6]) <= 65535):
        raise ConfigError(f"{variable}: {value!r} is not a valid port (0 to 65535)")
    return int(value)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. A second server learns here that the port is taken, before anything is loaded.

    Args:
        host: a name or address of this machine.
        port: 0 takes a free one.

    Raises:
        ConfigError: ``host`` is not an address of this machine.
        PortInUseError: something else listens there.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"host {host!r}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} on {host} is in use; stop what listens there or choose another with --port"
            raise PortInUseError(message) from error
        raise ConfigError(f"{host}:{port} cannot be listened on: {error}") from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address at which a socket is reached."""
    return web_address("http", *listener.getsockname()[:2])


def web_address(scheme: str, host: str, port: int | None) -> str:
    """Return the URL of a server. An IPv6 address gets brackets. If ``port`` is ``None``, the URL has no port."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}" + (f":{port}" if port else "")


async def _readable(listener: socket.socket) -> None:
    """Wait for a connection without taking it."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(listener, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(listener)


async def _connect(protocol: Callable[[], asyncio.Protocol], connection: socket.socket) -> None:
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)
    except BaseException:
        connection.close()
        raise


async def accept_evenly(
    listener: socket.socket, protocol: Callable[[], asyncio.Protocol], connections: Callable[[], int]
) -> None:
    """Accept connections until cancelled. The more are open here, the slower they are accepted.

    The kernel gives a connection to whichever process takes it first, and clients keep theirs: of eight, one of two
    processes often gets six or seven. It then answers more slowly while the other is idle.

    Args:
        listener: a non-blocking socket; other processes may accept from it as well.
        protocol: makes the handler of a connection.
        connections: returns the number of open connections of this process.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            await _readable(listener)
            connection, _ = listener.accept()  # what is accepted is served, also when this is cancelled meanwhile
            await asyncio.shield(loop.create_task(_connect(protocol, connection)))
        except (BlockingIOError, ConnectionError):  # another process was quicker; the client has gone
            continue
        except Exception as error:  # usually no descriptors are left; whatever it is, the next one is accepted again
            log.error("no connection can be accepted: %s", error, exc_info=not isinstance(error, OSError))
            await asyncio.sleep(RETRY_S)
        count = connections()
        await asyncio.sleep(min(PAUSE_S * count, LONGEST_ACCEPTING_PAUSE_S) if count < CROWD else 0)


MOST_BY_DEFAULT = 4
# Every worker holds what a query touches. For larger indexes one process serves unless --workers says otherwise.
SMALL_INDEX_BYTES = 512 << 20
STOP_WITHIN_S = 7.0
POLL_S = 0.2
# A process that dies is replaced at once. If the next one lasts for less than a minute, replacing it waits for 1 s,
# then 2, 4 … 30 s: where every process is killed (memory, a damaged library), starting them without end makes it worse.
LASTING_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder through which processes add their metrics up; prometheus_client reads it when it is imported."""

# When a process accepts connections, and what it says once it has loaded everything.
AT_ONCE, AFTER_LOADING = "at-once", "after-loading"
LOADED = "loaded"

Worker: TypeAlias = "subprocess.Popen[bytes]"
Start = Callable[[bool], Worker]
"""Starts a process; tells it whether others serve meanwhile."""


def usual_workers(settings: Settings) -> int:
    """Return how many processes serve by default: one per CPU, but at most four, and only one if the index is large."""
    size = sum(_published_bytes(settings, domain) for domain in settings.served_domains)
    return min(cpu_count(), MOST_BY_DEFAULT) if size < SMALL_INDEX_BYTES else 1


def _published_bytes(settings: Settings, domain: Domain) -> int:
    """Return about how large the domain's index is: the size of all kept segments.

    The index is not asked, because that would load DuckDB (84 MB) into a process that only supervises others.
    """
    folder = settings.data_dir / "domains" / domain.value / "generations"
    return sum(file.stat().st_size for file in folder.glob("gen-*-*.duckdb"))


def starting(config: Path, host: str, listener: socket.socket, agent: Domain | None, metrics: Path) -> Start:
    """Return a function that starts a process which serves on ``listener``: all domains, or only ``agent``.

    The processes share their metrics in the folder ``metrics``.
    """
    shared = listener.fileno()
    command = [sys.executable, "-m", "api.server.process", str(config), host, str(shared)]
    alone = [agent.value] if agent else []
    # glibc gives each thread an arena of its own, which keeps what it once used: 60 MB a process under eight clients.
    environment = {"MALLOC_ARENA_MAX": "2", **os.environ, METRICS_FOLDER: str(metrics)}

    def start(others_serve: bool) -> Worker:
        return subprocess.Popen(
            [*command, AFTER_LOADING if others_serve else AT_ONCE, *alone],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[shared], env=environment,
        )  # fmt: skip

    return start


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

    A process writes to its standard output once it serves, and ends when its standard input closes.

    Args:
        start: starts a process.
        announce: called when the first process serves.
        received: the signals that have come. The list grows.
        forget: called with the pid of each process that has ended.
        drain: called at the end, while the processes still serve.
        is_outdated: tells whether each process must be replaced by a new one.

    Returns:
        The exit code: 1 if a process failed at its end, or before any process served; otherwise 0.
    """
    places = [WorkerPlace(start) for _ in range(count)]
    is_serving = is_loaded = False
    try:
        while not received:
            for place in places if is_loaded else places[:1]:
                place.fill(is_loaded and any(other.process for other in places if other is not place))
            said = _wait_for_output([place.process for place in places if place.process])
            is_loaded = is_loaded or LOADED.encode() in said
            if said and not is_serving:
                is_serving = True
                announce()
            ended = [place for place in places if not received and place.process and place.process.poll() is not None]
            if not is_serving and any(place.process and place.process.returncode > 0 for place in ended):
                return 1  # it has said why
            for place in ended:
                place.vacate(forget)
            for place in places if is_outdated() else ():
                place.renew(received, forget)
    finally:
        try:
            drain()
        finally:
            code = _end(*(place.process for place in places if place.process))
    return code


@dataclass(slots=True, eq=False)
class WorkerPlace:
    """A place for one serving process, and the time before which no new one may be started.

    Attributes:
        process: the process in this place, if any.
        now: the clock, in seconds.
    """

    start: Start
    process: Worker | None = None
    now: Callable[[], float] = time.monotonic
    _started_at: float = 0.0
    _not_before: float = 0.0
    _pause_s: float = 0.0

    def fill(self, others_serve: bool) -> None:
        """Start a process if the place is empty and the pause is over. It is told whether other processes serve."""
        if self.process is None and self.now() >= self._not_before:
            try:
                self.process, self._started_at = self.start(others_serve), self.now()
            except OSError as error:  # no memory, no descriptors
                log.error("no serving process can be started: %s", error)
                self._wait_longer()

    def vacate(self, forget: Callable[[int], None] = lambda _: None) -> None:
        """Log how the process ended. After each quick failure the pause before the next start is longer."""
        if self.process is None:
            return
        forget(self.process.pid)
        lasted_s = self.now() - self._started_at
        if lasted_s >= LASTING_S:
            self._pause_s = 0.0
        pause_s = self._pause_s
        when = f"in {pause_s:g} s" if pause_s else "now"
        ending = f"serving process {self.process.pid} {_ending(self.process.returncode)} after {lasted_s:.0f} s"
        log.error("%s; another one takes its place %s", ending, when)
        _end(self.process)
        self.process = None
        self._wait_longer()

    def renew(self, received: Sequence[int], forget: Callable[[int], None]) -> None:
        """Replace the process by a new one as soon as the new one serves.

        If the new process fails or a signal is received, keep the old one. ``forget`` gets the old process's pid.
        """
        try:
            successor = self.start(True)
        except OSError as error:
            log.error("no serving process can be started to take over new settings: %s", error)
            return
        while not _wait_for_output([successor]):
            if received or successor.poll() is not None:
                log.error("serving process %d does not take over new settings: it ended", successor.pid)
                _end(successor)
                return
        predecessor, self.process, self._started_at = self.process, successor, self.now()
        if predecessor:
            _end(predecessor)
            forget(predecessor.pid)

    def _wait_longer(self) -> None:
        self._not_before = self.now() + self._pause_s
        self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)


def _ending(code: int) -> str:
    """Return how a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _wait_for_output(processes: Sequence[Worker]) -> bytes:
    """Wait a moment for output of the processes, and return the output; empty if there is none."""
    readable, _, _ = select.select([process.stdout for process in processes if process.stdout], [], [], POLL_S)
    return b"".join([os.read(stdout.fileno(), 1024) for stdout in readable])


def _end(*processes: Worker) -> int:
    """Let processes finish their requests, for at most ``STOP_WITHIN_S``. Return 1 if a process failed, else 0."""
    for process in processes:
        if process.stdin:
            process.stdin.close()
        process.terminate()  # one that is still importing does not read its standard input
    deadline = time.monotonic() + STOP_WITHIN_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
    # A signal may have come before the process handled it.
    return int(any(process.returncode not in {0, -signal.SIGTERM, -signal.SIGINT} for process in processes))
