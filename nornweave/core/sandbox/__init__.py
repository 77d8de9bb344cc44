"""Run work on untrusted bytes in separate processes with limits of time and memory.

``run_apart`` hands a function and its arguments to such a process; ``child`` is what runs in it. If a document makes a
parser loop, crash or exhaust the memory, that process ends and the caller gets a ``ReaderLostError``. The processes are
started on demand, reused, and replaced when they die.
"""

from __future__ import annotations

import atexit
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from nornweave.core.errors import DocumentError, DocumentSkipped, ReaderLostError, TransientDocumentError
from nornweave.core.process import WALL_FACTOR
from nornweave.core.sandbox.frames import PACKAGE, address_of, receive, send
from nornweave.core.types import JsonValue

logger = logging.getLogger(__name__)

Task: TypeAlias = Callable[[Mapping[str, JsonValue], bytes], object]
"""A function of a module. It takes values and raw bytes, and returns what ``frames.send`` can send."""

START_S = 60.0
"""What a process may take to load what it needs."""
IDLE_SHARE = 0.02
"""Of its processor time: who uses less in a whole period of waiting hangs."""
KEPT = 4
"""Processes that wait for the next task at most: as many as read at once."""
# What a program needs to run; tokens and keys stay with the parent.
_ENVIRONMENT = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ"),
    *("TESSDATA_PREFIX", "NORNWEAVE_PDF_LIBRARY"),
)
_ERRORS = {error.__name__: error for error in (DocumentError, DocumentSkipped, TransientDocumentError)}


class _Child:
    """A process and the connection to it."""

    def __init__(self, package: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: nothing is imported from the working directory.
            command = [sys.executable, "-P", "-m", "nornweave.core.sandbox.child", str(theirs.fileno()), package]
            self.process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        self.connection = ours
        self.is_leaving = False

    def ask(self, request: Mapping[str, object], raw: bytes, cpu_s: float) -> Mapping[str, JsonValue]:
        """Send a request. Return the answer, and wait for it as long as the process uses processor time.

        Only the CPU limit ends a process that works. A limit by the clock would mean that a busy machine cannot read
        some documents.

        Raises:
            TimeoutError: the process used almost no processor time.
        """
        patience_s = WALL_FACTOR * cpu_s
        self.connection.settimeout(patience_s)
        send(self.connection, request, raw)
        worked_s = self._cpu_s()
        while not select.select([self.connection], [], [], patience_s)[0]:
            before_s, worked_s = worked_s, self._cpu_s()
            if worked_s - before_s < IDLE_SHARE * cpu_s:
                raise TimeoutError
        answer, _ = receive(self.connection, time.monotonic() + patience_s)
        if not isinstance(answer, dict):
            raise ValueError(f"an answer that is a {type(answer).__name__}")  # noqa: TRY004 - as of other bad answers
        self.is_leaving = bool(answer.get("is_leaving"))
        return answer

    def _cpu_s(self) -> float:
        """Return the processor time that the process has used; 0 if it is unknown."""
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        with suppress(ImportError):  # macOS; an installation of drift alone has no psutil
            import psutil

            with suppress(psutil.Error):
                return float(sum(psutil.Process(self.process.pid).cpu_times()[:2]))
        return 0.0

    def end(self) -> int:
        """End the process. Return its exit status, which is a negative signal number if a signal ended it."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.05)  # keeps its own exit status if it has ended
        self.process.kill()
        self.connection.close()
        return self.process.wait()


class Pool:
    """Processes that run the functions of one package, so that this process does not load it."""

    def __init__(self, package: str = PACKAGE) -> None:
        self._package = package
        self._lock = threading.Lock()
        self._waiting: list[_Child] = []

    def run(
        self,
        task: Task,
        values: Mapping[str, object],
        raw: bytes,
        *,
        cpu_s: float,
        uses: tuple[Callable[..., object], ...] = (),
    ) -> JsonValue:
        """Run a function in one of the processes, and return its result.

        Args:
            task: a function of a module of the package.
            values: JSON for the task, which may contain records of ``types``.
            raw: bytes for the task.
            cpu_s: seconds of processor time that the task may take. A task counts as stuck if it uses less than
                ``IDLE_SHARE`` of them in ``WALL_FACTOR`` times as many seconds by the clock.
            uses: functions that ``values`` name. They are loaded before the time counts, as the task is.

        Raises:
            DocumentError: the task raised an error or has a defect.
            ReaderLostError: the task took too long or too much memory, or ended its process.
            TransientDocumentError: no process can be started.
        """
        addresses = [address_of(function) for function in uses]
        request = {"task": address_of(task), "uses": addresses, "values": values, "cpu_s": cpu_s}
        child = self._take()
        answer: Mapping[str, JsonValue] = {}
        try:
            answer = child.ask(request, raw, cpu_s)
        except TimeoutError as error:
            raise ReaderLostError(_too_slow(cpu_s), cpu_s) from error
        except (EOFError, OSError, ValueError) as error:
            raise ReaderLostError(_how_it_ended(child.end(), cpu_s, error), cpu_s) from error
        finally:
            self._give_back(child, is_fit="result" in answer or "error" in answer)
        return _result(answer)

    def _take(self) -> _Child:
        """Return an idle process, or start one."""
        with self._lock:
            while self._waiting:
                child = self._waiting.pop()
                if child.process.poll() is None:
                    return child
                child.end()
        try:
            child = _Child(self._package)
        except OSError as error:
            raise TransientDocumentError(f"no process to read it can be started: {error.strerror}") from error
        try:
            receive(child.connection, time.monotonic() + START_S)
        except (EOFError, OSError, ValueError) as error:
            ended = child.end()
            raise TransientDocumentError(f"no process to read it can be started: it ended with {ended}") from error
        return child

    def _give_back(self, child: _Child, *, is_fit: bool) -> None:
        with self._lock:
            if is_fit and not child.is_leaving and len(self._waiting) < KEPT:
                self._waiting.append(child)
                return
        child.end()

    def close(self) -> None:
        """End the idle processes."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for child in waiting:
            child.process.kill()
            child.end()

    def forget(self) -> None:
        """After a fork, forget the processes in the child, because they belong to the parent."""
        self._lock, self._waiting = threading.Lock(), []


def _environment() -> dict[str, str]:
    """Return the environment of a pool process. It holds the import path and allows one computing thread."""
    here = str(Path(__file__).resolve().parents[3])
    inherited = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    path = os.pathsep.join(filter(None, (here, inherited.get("PYTHONPATH"))))
    return inherited | {"PYTHONPATH": path, "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _result(answer: Mapping[str, JsonValue]) -> JsonValue:
    """Return the task's result, or raise its error."""
    if "result" in answer:
        return answer["result"]
    reason = str(answer.get("reason") or answer.get("lost"))
    if "lost" in answer:
        raise ReaderLostError(f"{reason}; {_REMEDY}")
    kind = str(answer.get("error"))
    if kind in _ERRORS:
        raise _ERRORS[kind](reason)
    logger.error("a defect of the parser: %s\n%s", reason, answer.get("trace", ""))
    raise DocumentError(f"a defect of the parser ({reason}); exclude the document and report it")


_REMEDY = "split or exclude the document; it is tried again when it changes"


def _too_slow(cpu_s: float) -> str:
    return f"too slow: it takes more than {cpu_s:.0f} s to read; {_REMEDY}"


def _how_it_ended(code: int, cpu_s: float, error: Exception) -> str:
    if code == -signal.SIGXCPU:
        return _too_slow(cpu_s)
    if isinstance(error, ValueError):
        return f"the process that read it answered with {error}; {_REMEDY}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"code {code}"
    return f"reading it ended the process that did ({name}); {_REMEDY}"


_pool = Pool()
atexit.register(_pool.close)
os.register_at_fork(after_in_child=_pool.forget)

run_apart = _pool.run
