"""``nornweave up``: start the API and the Dagster UI, print their addresses, and stop them.

Every child leads a process group of its own: Ctrl-C reaches the supervisor alone, which then asks the children to stop
and ends what is left of their groups. When the supervisor itself is killed, Linux sends its children SIGTERM
(``PR_SET_PDEATHSIG``); Dagster stops its own processes on that. Elsewhere a killed supervisor leaves them running.
"""

from __future__ import annotations

import ctypes
import errno
import http.client
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from nornweave.core.errors import DomainBusyError, NornWeaveError
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.writing import check_folder

LOOPBACK = "127.0.0.1"
READY_WITHIN_S = 120.0
STOP_WITHIN_S = 8.0
GROUP_STOP_S = 1.0
POLL_S = 0.2
PR_SET_PDEATHSIG = 1

Say = Callable[[str], None]


class PortInUseError(NornWeaveError):
    """The port of a child is in use."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Child:
    """A program that the supervisor runs.

    Attributes:
        name: the name to show to people.
        command: the program and its arguments.
        host: the host on which the program listens.
        port: the port on which the program listens.
        environment: variables to add to the supervisor's environment.
        path: the path of a URL that answers with a status below 500 once the program is ready.
        option: the option of ``nornweave up`` that sets the port.
    """

    name: str
    command: tuple[str, ...]
    host: str
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)
    path: str = "/"
    option: str = "--port"

    @property
    def url(self) -> str:
        """Return the address of the program's page."""
        return f"http://{self.host}:{self.port}"


def up(config: Path, data_dir: Path, *, host: str = LOOPBACK, port: int = 8082, dagster_port: int = 3000) -> int:
    """Run the API (where it is installed) and the Dagster UI until Ctrl-C or SIGTERM.

    Returns:
        The exit code: 0 after Ctrl-C or SIGTERM, 1 when a child ended by itself.

    Raises:
        PortInUseError: a port is in use. Nothing was started.
        DomainBusyError: another ``nornweave up`` works on the same files. Nothing was started.
    """
    check_folder(data_dir, make=True)
    children = children_of(config, host=host, port=port, dagster_port=dagster_port)
    try:
        with hold_lock(data_dir / "up.lock", wait=False):  # two schedules would do everything twice
            return supervise(children, _say)
    except BlockingIOError as error:
        busy = f"another `nornweave up` works on {str(data_dir)!r}; stop it, or set data_dir to another folder"
        raise DomainBusyError(busy) from error


def children_of(config: Path, *, host: str, port: int, dagster_port: int) -> tuple[Child, ...]:
    """Return the programs for ``up`` to start."""
    dagster = Child(
        name="Dagster UI",
        command=(sys.executable, "-m", "orchestration", "--port", str(dagster_port)),
        host=LOOPBACK,
        port=dagster_port,
        environment={"NORNWEAVE_CONFIG": str(config)},
        path="/server_info",
        option="--dagster-port",
    )
    if not _is_installed("api.app"):
        return (dagster,)
    serve = ("-m", "nornweave.cli", "--config", str(config), "serve", "--host", host, "--port", str(port))
    api = Child(
        name="Page and API",
        command=(sys.executable, *serve),
        host=host,
        port=port,
        environment={"NORNWEAVE_DAGSTER_URL": os.environ.get("NORNWEAVE_DAGSTER_URL", "").strip() or dagster.url},
        path="/health",
    )
    return (api, dagster)


def supervise(children: Sequence[Child], say: Say) -> int:
    """Start the children, wait for a signal or the end of one of them, and stop them all.

    Return the exit code: 0 after a signal, 1 if a child ended by itself.

    Raises:
        PortInUseError: a port is taken; nothing was started.
    """
    for child in children:
        _require_free_port(child)
    running: dict[Child, subprocess.Popen[bytes]] = {}
    with signals_received() as received:
        try:
            for child in children:
                running[child] = _start(child)
                say(f"{child.name}: starting")
            ended = _watch(running, received, say)
        finally:
            _stop(running, say)
    if ended is None:
        say("stopped")
        return 0
    say(f"{ended.name} ended by itself with exit code {running[ended].returncode}; everything else was stopped")
    return 1


def _watch(running: Mapping[Child, subprocess.Popen[bytes]], received: Sequence[int], say: Say) -> Child | None:
    """Return the child that ended, or ``None`` after a signal."""
    waiting, deadline = list(running), time.monotonic() + READY_WITHIN_S
    while not received:
        for child, process in running.items():
            if process.poll() is not None:
                return child
        for child in [child for child in waiting if _answers(child)]:
            say(f"{child.name}: {child.url}")
            waiting.remove(child)
            if not waiting:
                say("Ctrl-C stops everything")
        if waiting and time.monotonic() > deadline:
            say(f"still no answer from {', '.join(child.url for child in waiting)} after {READY_WITHIN_S:.0f} s")
            waiting.clear()
        time.sleep(POLL_S)
    return None


def _start(child: Child) -> subprocess.Popen[bytes]:
    supervisor = os.getpid()
    return subprocess.Popen(
        child.command,
        env={**os.environ, **child.environment},
        stdin=subprocess.DEVNULL,
        process_group=0,
        preexec_fn=lambda: _in_child(supervisor),  # noqa: PLW1509 - the supervisor has no threads
    )


def _in_child(supervisor: int) -> None:
    # A program started with & from a script ignores SIGINT, and so would its children: Dagster could not be stopped.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != supervisor:  # it died before the line above
            os._exit(1)


def _stop(running: Mapping[Child, subprocess.Popen[bytes]], say: Say) -> None:
    """Ask the children to stop, and kill children that do not stop. Documents that a sync has stored are not lost."""
    for process in running.values():
        # To the whole group at once: Dagster's processes then stop side by side. Not SIGINT, as a terminal does on
        # Ctrl-C: a process that still imports what it needs would print where it was.
        _signal_group(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_WITHIN_S
    for child, process in running.items():
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            say(f"{child.name}: does not stop by itself, ending it")
    _end_groups(tuple(running.values()))


def _end_groups(leaders: Sequence[subprocess.Popen[bytes]]) -> None:
    """Kill all processes left in the children's process groups."""
    left = [process for process in leaders if _signal_group(process.pid, signal.SIGTERM)]
    deadline = time.monotonic() + GROUP_STOP_S
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [process for process in left if _signal_group(process.pid, 0)]
    for process in leaders:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group that has ended and waits for us
        return False
    return True


@contextmanager
def signals_received() -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a list instead of ending the process. Restore the handlers at the end."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _require_free_port(child: Child) -> None:
    family = socket.AF_INET6 if ":" in child.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((child.host, child.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = f"is in use; stop what listens there or choose another with {child.option}"
            else:
                reason = f"cannot be listened on: {error}"
            raise PortInUseError(f"{child.name}: port {child.port} on {child.host} {reason}") from error


def _answers(child: Child) -> bool:
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(child.host, child.host)  # noqa: S104 - to ask, not to listen
    connection = http.client.HTTPConnection(host, child.port, timeout=2)
    try:
        connection.request("GET", child.path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
