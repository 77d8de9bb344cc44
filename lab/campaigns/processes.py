"""Commands of NornWeave in processes of their own: started in milliseconds, killed with everything they started."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Children are forked from a server that has imported everything and started nothing.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["lab.campaigns.preload"])
DEADLINE_S = 1800.0
GROUP_ENDS_S = 10.0
# Of what a process said, in what a campaign prints.
LINES, CHARACTERS = 12, 2_000


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """How a process ended.

    Attributes:
        code: the exit code; negative after a signal, ``None`` when it had to be ended after the deadline.
    """

    code: int | None
    said: str

    @property
    def defect(self) -> str:
        """Say what no command may do, whatever it meets; empty for a result and for a clear error."""
        if self.code is None:
            return "hang"
        if self.code < 0:
            return f"crash ({signal.Signals(-self.code).name})"
        return "traceback" if "Traceback (most recent call last)" in self.said else ""

    @property
    def last_line(self) -> str:
        """Return the last thing that it said."""
        return next((line for line in reversed(self.said.splitlines()) if line.strip()), "")[:300]

    @property
    def cause(self) -> str:
        """Say how it ended and what it said last: the error of a traceback often stands some lines above its end."""
        lines = [line.rstrip() for line in self.said.splitlines() if line.strip()]
        return f"ended with {self.code} {self.defect}".rstrip() + ": " + "\n    ".join(lines[-LINES:])[-CHARACTERS:]


class CampaignChild:
    """A function in a process group of its own; what it prints goes to a file."""

    def __init__(self, output: Path, target: Callable[..., object], *arguments: Any) -> None:
        self._output = output
        # The fork server has the environment of the moment it was started in.
        self._process = CONTEXT.Process(target=_run, args=(output, dict(os.environ), target, arguments))
        self._process.start()

    @property
    def pid(self) -> int:
        """Return its number; 0 before it has one."""
        return self._process.pid or 0

    @property
    def is_running(self) -> bool:
        """Tell whether it has not ended yet."""
        return self._process.is_alive()

    def kill(self) -> EndedProcess | None:
        """Kill it with its whole group; return how it had ended by itself, ``None`` when it was still running."""
        was_running = self.is_running
        try:
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        except ProcessLookupError:  # it has no group yet, or is gone
            self._process.kill()
        self._process.join()
        # What it had just started may die a moment later than it, and holds its locks until then.
        until(lambda: not _is_group_alive(self.pid), GROUP_ENDS_S)
        return None if was_running and self._process.exitcode == -signal.SIGKILL else self._ended()

    def stop(self) -> None:
        """Ask it to stop, as Ctrl-C does."""
        if self.is_running and self._process.pid:
            os.kill(self._process.pid, signal.SIGINT)

    def wait(self, seconds: float = DEADLINE_S) -> EndedProcess:
        """Wait for its end; kill it after the deadline."""
        self._process.join(seconds)
        return self.kill() or replace(self._ended(), code=None)

    def _ended(self) -> EndedProcess:
        said = self._output.read_text(encoding="utf-8", errors="replace") if self._output.exists() else ""
        return EndedProcess(self._process.exitcode, said)


def command(output: Path, config: Path, *arguments: str, largest_file: int | None = None) -> CampaignChild:
    """Start a command of ``nornweave``.

    Args:
        largest_file: in bytes; a write beyond fails as on a full disk.
    """
    return CampaignChild(output, _command, [f"--config={config}", *arguments], largest_file)


def until(condition: Callable[[], bool], seconds: float = DEADLINE_S, *, every_s: float = 0.02) -> bool:
    """Wait for something; return whether it came."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(every_s)
    return condition()


def _is_group_alive(group: int) -> bool:
    """Tell whether a process of a group still holds anything; one that only waits to be collected does not."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:  # as nearly always: no need to look at every process of the machine
        return False
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = status.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(its_group) == group and state not in {"Z", "X"}:
            return True
    return False


def _run(output: Path, environment: Mapping[str, str], target: Callable[..., object], arguments: Sequence[Any]) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    # A process whose main module has no file is an interactive one for DuckDB, which draws progress bars there.
    sys.modules["__main__"].__file__ = __file__
    target(*arguments)


def _command(arguments: Sequence[str], largest_file: int | None) -> None:
    from nornweave.cli.main import main

    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv = ["nornweave", *arguments]
    main()
