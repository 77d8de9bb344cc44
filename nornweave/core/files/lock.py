"""One writer per domain: the ``Lock`` port, and a ``flock`` on a file that names its holder.

The operating system releases a file's lock when its process ends, however it ends. The lock of several machines is
``nornweave.carry.shared_folder``.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from nornweave.core.errors import DomainBusyError

logger = logging.getLogger(__name__)

POLL_S = 0.1


@contextmanager
def hold_lock(file: Path, *, wait: bool = True) -> Iterator[None]:
    """Create a file if it is missing, and lock it against other threads and processes.

    Raises:
        BlockingIOError: another process holds the lock and ``wait`` is false.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


class Lock(Protocol):
    """A context manager that keeps other writers out of a domain."""

    shares_files: bool
    """Whether ``commit`` takes the domain's files to other machines: none of them may be open then."""

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            DomainBusyError: another process still holds it after the time to wait.
        """

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock."""

    def bring(self, file: Path) -> None:
        """Copy a file of the domain from the last holder of the lock, if it is not on this machine.

        Raises:
            StoreError: the file cannot be copied completely.
        """

    def confirm(self) -> None:
        """Check that the lock is still held.

        Raises:
            LeaseLostError: it is not held. This process must not write anything more.
        """

    def commit(self, *, overwriting: bool = False) -> None:
        """Save the domain's files as they are now, for the next holder of the lock.

        Args:
            overwriting: erase the bytes of replaced files.

        Raises:
            LeaseLostError: the lock is not held any more. The saved files are unchanged.
        """


class WriterLock:
    """An exclusive lock on ``file``, to use as a context manager.

    Raises:
        DomainBusyError: on entering, when another process still holds it after ``wait_s`` seconds.
    """

    shares_files = False

    def __init__(self, file: Path, *, purpose: str, wait_s: float = 0, waits_silently: bool = False) -> None:
        self._file = file
        self._purpose = purpose
        self._wait_s = wait_s
        self._waits_silently = waits_silently
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._acquire(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, holder_text(self._purpose).encode(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def descriptor(self) -> int:
        """The descriptor of the locked file. Child processes that inherit it also hold the lock."""
        return -1 if self._descriptor is None else self._descriptor

    def bring(self, file: Path) -> None:
        """Do nothing, because all files are on this machine."""

    def confirm(self) -> None:
        """Do nothing, because the operating system never takes this lock away."""

    def commit(self, *, overwriting: bool = False) -> None:
        """Do nothing, because the next holder reads the same disk."""

    def _acquire(self, descriptor: int) -> None:
        deadline = time.monotonic() + self._wait_s
        told = self._waits_silently
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise DomainBusyError(_describe_holder(descriptor, self._file)) from error
                if not told:
                    told = True
                    logger.warning("waiting up to %g s: %s", self._wait_s, _describe_holder(descriptor, self._file))
                time.sleep(POLL_S)
            else:
                return


def _describe_holder(descriptor: int, file: Path) -> str:
    return describe_holder(f"domain {file.parent.name!r}", os.pread(descriptor, 4096, 0))


def holder_text(purpose: str) -> str:
    """Return a description of this process as JSON, for processes that wait for its lock."""
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "purpose": purpose,
        "program": Path(sys.argv[0]).name,
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(holder)


def describe_holder(what: str, text: str | bytes) -> str:
    """Return a sentence which says that ``what`` is being written, and by which process.

    ``text`` is what ``holder_text`` returned in that process.
    """
    try:
        holder = json.loads(text)
        process = f"pid {holder['pid']} on {holder['host']}, since {holder['since']}"
        who = f"{holder['purpose']} by {holder['program']} ({process})"
    except (ValueError, KeyError, TypeError):
        who = "a process that has not said who it is yet"
    return f"{what} is being written: {who}; wait for it or stop it, then try again"
