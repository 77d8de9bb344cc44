"""The ``git`` program: run without hooks, prompts, network or the user's configuration, and with a deadline."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
import weakref
from collections.abc import Generator
from pathlib import Path

from nornweave.errors import SourceUnavailableError, TransientDocumentError

# A repository's own configuration may name programs to run. ``safe.directory`` is what git asks before it trusts any of
# it; a source's repository often belongs to another user, so all it could start is switched off here instead.
_CONFIGURATION = (
    "safe.directory=*",
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    f"core.attributesFile={os.devnull}",
    "core.commitGraph=true",
    "core.quotePath=false",
    "protocol.allow=never",  # partial clones would fetch what is missing, through whatever transport they name
    "log.showSignature=false",  # would run gpg.program
    "log.showRoot=true",
    "log.mailmap=true",
    "i18n.logOutputEncoding=UTF-8",
    f"diff.orderFile={os.devnull}",
)
_READ_BYTES = 1 << 20


class GitFailedError(Exception):
    """Git answered with an error; ``str(error)`` is its first line. Stays inside ``ingest``."""


def git_command(root: Path, *arguments: str) -> list[str]:
    """Return the command line that runs git in ``root``."""
    settings = [part for setting in _CONFIGURATION for part in ("-c", setting)]
    return ["git", "--no-pager", "--literal-pathspecs", "-C", str(root), *settings, *arguments]


def git_environment() -> dict[str, str]:
    """Return the environment for git: nothing of the caller's ``GIT_*`` variables, no prompts, no locks."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return inherited | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def run_git(root: Path, *arguments: str, timeout_s: float) -> bytes:
    """Run git and return what it prints.

    Raises:
        GitFailedError: it exits with an error.
        SourceUnavailableError: it is not installed or takes longer than ``timeout_s``.
    """
    try:
        done = subprocess.run(
            git_command(root, *arguments),
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceUnavailableError(
            f"git {arguments[0]} in {str(root)!r} took longer than {timeout_s:g} s; raise timeout_s or try again"
        ) from error
    except OSError as error:
        raise no_git(error) from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitFailedError(lines[0] if lines else f"git {arguments[0]} ended with {done.returncode}")
    return done.stdout


def stream_git(root: Path, *arguments: str, timeout_s: float) -> Generator[bytes]:
    """Run git and yield what it prints as it comes; closing the iterator ends the program.

    The output just ends when git fails or the deadline passes: for what is good to know and not needed.
    """
    deadline = time.monotonic() + timeout_s
    process = _start(root, *arguments)
    try:
        while chunk := _read(_descriptor_of(process), _READ_BYTES, deadline):
            yield chunk
    except TimeoutError:
        return
    finally:
        _stop(process)


class Blobs:
    """Reads blobs through one lasting ``git cat-file``; safe to use from several threads."""

    def __init__(self, root: Path, *, timeout_s: float) -> None:
        self._root = root
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[..., Blobs] | None = None
        self._unread = b""

    def read(self, blob: str) -> bytes | None:
        """Return the blob with this object id, ``None`` when the repository does not have it.

        Raises:
            TransientDocumentError: git ended or did not answer in time; the next call starts it again.
            SourceUnavailableError: git is not installed.
        """
        with self._lock:
            deadline = time.monotonic() + self._timeout_s
            try:
                return self._read(blob, deadline)
            except (TimeoutError, OSError, ValueError) as error:
                self._close()
                raise TransientDocumentError(
                    f"git did not deliver blob {blob} ({error or 'no answer in time'}); the next sync tries again"
                ) from error

    def close(self) -> None:
        """End the program; a later ``read`` starts another."""
        with self._lock:
            self._close()

    def _read(self, blob: str, deadline: float) -> bytes | None:
        process = self._process or self._open()
        if process.stdin is None:
            raise OSError("git has no input")
        process.stdin.write(f"{blob}\n".encode("ascii"))
        process.stdin.flush()
        header = self._take_line(deadline).split()
        if header[1:] == [b"missing"]:
            return None
        _, kind, size = header  # ValueError when it is anything else
        content = self._take(int(size) + 1, deadline)[:-1]
        if kind != b"blob":
            raise ValueError(f"it is a {kind.decode('ascii', 'replace')}")
        return content

    def _open(self) -> subprocess.Popen[bytes]:
        process = _start(self._root, "cat-file", "--batch")
        self._process, self._unread = process, b""
        self._finalizer = weakref.finalize(self, _stop, process)
        return process

    def _close(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._process, self._finalizer, self._unread = None, None, b""

    def _take_line(self, deadline: float) -> bytes:
        while b"\n" not in self._unread:
            self._unread += self._more(deadline)
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _take(self, size: int, deadline: float) -> bytes:
        parts, missing = [self._unread[:size]], size - len(self._unread)
        self._unread = self._unread[size:]
        while missing > 0:
            chunk = self._more(deadline)
            parts.append(chunk[:missing])
            self._unread = chunk[missing:]
            missing -= len(chunk)
        return b"".join(parts)

    def _more(self, deadline: float) -> bytes:
        if self._process is None:
            raise OSError("git is not running")
        chunk = _read(_descriptor_of(self._process), _READ_BYTES, deadline)
        if not chunk:
            raise OSError("git ended")
        return chunk


def no_git(error: OSError) -> SourceUnavailableError:
    """Return what to say when git cannot be started."""
    return SourceUnavailableError(
        f"the git program cannot be started: {error.strerror}; install git, or use a source of type files"
    )


def _start(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            git_command(root, *arguments),
            env=git_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=-1,
        )
    except OSError as error:
        raise no_git(error) from error


def _descriptor_of(process: subprocess.Popen[bytes]) -> int:
    if process.stdout is None:
        raise OSError("git has no output")
    return process.stdout.fileno()


def _read(descriptor: int, size: int, deadline: float) -> bytes:
    """Read what is there, at most ``size`` bytes; ``b""`` at the end.

    Raises:
        TimeoutError: nothing came until the deadline.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    left_ms = max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(left_ms):
        raise TimeoutError
    return os.read(descriptor, size)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a program that only reads and wait for it, so that neither pipes nor a zombie stay behind."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    process.wait()
