"""Run a program in its own process group, and end it when it takes too much time or disk."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from nornweave.core.errors import SourceUnavailableError

LOOK_S = 0.3
"""How often the size of what it writes is looked at."""
END_S = 5.0
_READ_BYTES = 1 << 20
_COMPLAINT_BYTES = 1 << 14
MEGABYTE = 1_000_000


class TooLargeError(SourceUnavailableError):
    """The output of a fetch is larger than the limit."""


class OutOfTimeError(SourceUnavailableError):
    """A program exceeds its time limit."""


def no_git(error: OSError) -> SourceUnavailableError:
    """Return the error to raise if git cannot be started."""
    return SourceUnavailableError(
        f"the git program cannot be started: {error.strerror}; install git, or use a source of type files"
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits for running a program.

    Attributes:
        seconds: the time limit.
        folder: the folder to which the program writes; ``None`` if it writes no files.
        inherited: file descriptors that the program inherits. A lock on such a file is held until the last process with
            the descriptor ends.
    """

    seconds: float
    folder: Path | None = None
    max_bytes: int = 0
    max_answer_bytes: int = 16 << 20
    given: IO[bytes] | None = None
    inherited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GitEnded:
    """The end of a program: exit code, output, and the last part of its error output."""

    code: int
    said: bytes
    complaint: str


def stream(
    command: Sequence[str], environment: Mapping[str, str], bounds: Bounds, name: str
) -> Generator[bytes, None, tuple[int, str]]:
    """Run a program and yield its output as it comes. Closing the iterator ends the program.

    The program has no terminal, so it cannot prompt. If this process is killed, the program ends when it next writes
    output. If it exceeds one of the ``bounds``, it is ended, and an error with its ``name`` is raised.

    Returns:
        The exit code, and the last part of the error output.

    Raises:
        OutOfTimeError: the program took too long.
        SourceUnavailableError: the program cannot be started. It is a ``TooLargeError`` if the program wrote too much.
    """
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd="/",
            stdin=bounds.given or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=bounds.inherited,
            start_new_session=True,
        )
    except OSError as error:
        raise no_git(error) from error
    try:
        complaint = yield from _watch(process, bounds, name)
        code = process.wait(END_S)
    except subprocess.TimeoutExpired as error:
        raise OutOfTimeError(f"{name}: git does not end; the next sync tries again") from error
    finally:
        _end(process)
    if bounds.folder:
        _check_size(bounds, name)
    return code, complaint.decode("utf-8", "replace").replace("\r", "\n")


def run_watched(command: Sequence[str], environment: Mapping[str, str], bounds: Bounds, name: str) -> GitEnded:
    """Run a program to its end and return how it ended, with all that it printed.

    Args:
        name: the program's name in errors.

    Raises:
        SourceUnavailableError: the program passes a bound, or prints more than an answer may have.
    """
    said = bytearray()
    with closing(stream(command, environment, bounds, name)) as running:
        while True:
            try:
                said += next(running)
            except StopIteration as ended:
                code, complaint = ended.value
                return GitEnded(code, bytes(said), complaint)
            if len(said) > bounds.max_answer_bytes:
                raise SourceUnavailableError(f"{name}: git prints more than {bounds.max_answer_bytes:,} bytes of names")


def size_of(folder: Path) -> int:
    """Return the total size of the files in a folder, in bytes. A file that vanishes meanwhile counts as 0."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(f"{place}/{file}").st_size
    return total


def _watch(process: subprocess.Popen[bytes], bounds: Bounds, name: str) -> Generator[bytes, None, bytes]:
    """Read both pipes to their end. Yield the output and return the last part of the error output."""
    deadline, look_at = time.monotonic() + bounds.seconds, 0.0
    pipes = {pipe.fileno(): pipe is process.stdout for pipe in (process.stdout, process.stderr) if pipe}
    complaint = b""
    poll = select.poll()
    for descriptor in pipes:
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    while pipes:
        left_s = max(0.0, deadline - time.monotonic())
        for descriptor, _ in poll.poll(min(LOOK_S, left_s) * 1000):
            chunk = os.read(descriptor, _READ_BYTES)
            if not chunk:
                poll.unregister(descriptor)
                del pipes[descriptor]
            elif pipes[descriptor]:
                yield chunk
            else:
                complaint = (complaint + chunk)[-_COMPLAINT_BYTES:]
        now = time.monotonic()
        if now > deadline:
            raise OutOfTimeError(f"{name}: no end within {bounds.seconds:g} s; the next sync tries again")
        if bounds.folder and now > look_at:
            look_at = now + LOOK_S
            _check_size(bounds, name)
    return complaint


def _check_size(bounds: Bounds, name: str) -> None:
    if bounds.folder and size_of(bounds.folder) > bounds.max_bytes:
        raise TooLargeError(
            f"{name}: more than {bounds.max_bytes / MEGABYTE:,.0f} MB; raise 'max_megabytes', or narrow 'include' (a "
            "server that cannot leave files out sends all of them)"
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process group. First ask it to end, so that git removes unfinished files; then kill it."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    _signal(process.pid, signal.SIGKILL)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
