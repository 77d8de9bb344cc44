"""Python programs as processes that start at once: forked from a server that has imported what nearly all of them need.

A fresh interpreter takes up to three seconds of processor time until it has imported NornWeave and Dagster. What a
program does not import, and how the installed commands start, is tested with ``subprocess`` all the same.
"""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import psutil

from lab.campaigns.processes import CONTEXT

STREAMS = ("stdin", "stdout", "stderr")
# Tests run in several processes: each has ports of its own.
PORTS = iter(range(20_000 + os.getpid() % 120 * 100, 20_100 + os.getpid() % 120 * 100))


class Popen:
    """A process with the interface of ``subprocess.Popen``.

    Args:
        command: as there, of this interpreter: ``[sys.executable, "-c", program, …]`` or ``[…, "-m", module, …]``.
        text: whether pipes are of text.
        env: the environment; this process's unless given. Modules are found where this process finds them.
        streams: ``stdin``, ``stdout`` and ``stderr``: a file, a descriptor or ``subprocess.PIPE``.
    """

    stdin: IO[Any] | None = None
    stdout: IO[Any] | None = None
    stderr: IO[Any] | None = None

    def __init__(
        self,
        command: Sequence[object],
        *,
        text: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        start_new_session: bool = False,
        preexec_fn: Callable[[], object] | None = None,
        **streams: Any,
    ) -> None:
        assert command[0] == sys.executable and command[1] in {"-c", "-m"}, command
        self.args = [str(each) for each in command]
        ends: dict[int, Connection] = {}
        for number, name in enumerate(STREAMS):
            given = streams.pop(name, None)
            if given == subprocess.PIPE:
                reading, writing = os.pipe()
                ours, theirs = (writing, reading) if number == 0 else (reading, writing)
                setattr(self, name, os.fdopen(ours, ("w" if number == 0 else "r") + ("" if text else "b")))
                ends[number] = Connection(theirs)
            elif given == subprocess.DEVNULL:
                ends[number] = Connection(os.open(os.devnull, os.O_RDWR))
            elif given is not None or number:
                ends[number] = Connection(
                    os.dup(given if isinstance(given, int) else given.fileno() if given else number)
                )
        assert not streams, streams
        environment = dict(os.environ if env is None else env)
        options = (str(cwd or Path.cwd()), environment, list(sys.path), start_new_session, preexec_fn)
        started, starting = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_run, args=(self.args[1:], ends, starting, *options))
        self._process.start()
        for end in (*ends.values(), starting):
            end.close()
        self.pid: int = self._process.pid or 0
        with started:  # as with ``subprocess``, the session is there when this returns: a signal reaches the group
            started.poll(None)

    @property
    def returncode(self) -> int | None:
        """The exit code, negative after a signal; ``None`` while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code if there is one; its server may report it a moment after the end."""
        if self.returncode is None and not psutil.pid_exists(self.pid):
            self._process.join()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return the exit code."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def communicate(self, told: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Close its input, after what it is told, and wait for its end; return what it said."""
        if self.stdin and not self.stdin.closed:
            with suppress(BrokenPipeError), self.stdin:
                if told:
                    self.stdin.write(told)
        with ThreadPoolExecutor(2) as threads:
            open_ones = [one if one and not one.closed else None for one in (self.stdout, self.stderr)]
            said = [threads.submit(stream.read) if stream else None for stream in open_ones]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            output, errors = (each.result() if each else None for each in said)
        self._close()
        return output, errors

    def send_signal(self, number: int) -> None:
        """Send a signal if it still runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                stream.close()

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()


def run(
    command: Sequence[object], *, timeout: float | None = None, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end and return what it said, as ``subprocess.run`` with ``capture_output``."""
    process = Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    output, errors = process.communicate(timeout=timeout)
    done = subprocess.CompletedProcess(process.args, process.returncode or 0, output, errors)
    if check:
        done.check_returncode()
    return done


def free_port() -> int:
    """Return a port that nothing uses, that was not returned before, and that nobody gets who asks for any port.

    Systems give those from 32,768 up, to connections too: one may be taken before a program listens there.
    """
    for port in PORTS:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port of this process is free")


def _run(
    arguments: Sequence[str],
    ends: Mapping[int, Connection],
    starting: Connection,
    folder: str,
    environment: Mapping[str, str],
    path: list[str],
    is_leader: bool,
    before: Callable[[], object] | None,
) -> None:
    for number, end in ends.items():
        os.dup2(end.fileno(), number)
        end.close()
    if 0 in ends:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if is_leader:
        os.setsid()
    starting.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if before:
        before()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    added = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*(each for each in added if each), *path]
    kind, what, *rest = arguments
    # A process whose main module has no file is an interactive one for DuckDB, which draws progress bars there.
    sys.modules["__main__"].__file__ = __file__
    sys.argv = [kind, *rest]
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<program>", "exec"), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out
