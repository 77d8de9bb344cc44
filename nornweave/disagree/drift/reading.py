"""Read facts from files in worker processes: a file that hangs or crashes its worker affects no other file."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from nornweave.core.types import Fact
from nornweave.disagree.drift.files import SourceFile
from nornweave.disagree.drift.records import UnreadFile

PROCESSES = 2
FILE_S = 10.0
"""What the facts of one file may take."""
START_S = 60.0
"""What a process may take to import what it needs."""
FEW = 8
"""So few files are read by one process."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts of one file; lines of facts are counted from 0."""

    file: SourceFile
    facts: tuple[Fact, ...]


def _environment() -> dict[str, str]:
    """Return the environment of a process: it finds this program wherever it lies."""
    here = str(Path(__file__).resolve().parents[3])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))}


@dataclass
class _Reader:
    """A process, and the file that it has in hand; ``file`` is ``None`` while it starts or waits."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    due: float
    is_ready: bool = False
    file: SourceFile | None = None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pipe.close()


@dataclass
class _Pool:
    files: Iterator[SourceFile]
    read: Callable[[SourceFile], bytes | str]
    file_s: float
    found: list[FileFacts] = field(default_factory=list)
    failed: list[UnreadFile] = field(default_factory=list)
    readers: list[_Reader] = field(default_factory=list)

    def start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: the folder that is looked at may be the working directory, and nothing is imported from there.
            command = [sys.executable, "-P", "-m", "nornweave.disagree.drift.worker", str(theirs.fileno())]
            process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_environment(),
            )
        self.readers.append(_Reader(process, Connection(ours.detach()), time.monotonic() + START_S))

    def run(self) -> None:
        while self.readers:
            due = min(reader.due for reader in self.readers)
            ready = set(wait([one.pipe for one in self.readers], timeout=max(0.0, due - time.monotonic())))
            for reader in list(self.readers):
                if reader.pipe in ready:
                    self._take(reader)
                elif time.monotonic() >= reader.due:
                    self._lose(reader, f"took longer than {self.file_s:g} s")

    def _take(self, reader: _Reader) -> None:
        try:
            answer = reader.pipe.recv()
        except (EOFError, OSError):
            self._lose(reader, "ended the process that read it")
            return
        if isinstance(answer, str) and reader.file is not None:
            self.failed.append(UnreadFile(reader.file.path, answer))
        elif reader.file is not None:
            self.found.append(FileFacts(reader.file, answer))
        reader.is_ready = True
        self._give(reader)

    def _give(self, reader: _Reader) -> None:
        """Hand over the next file that can be read; without one the process ends."""
        for file in self.files:
            raw = self.read(file)
            if isinstance(raw, str):
                self.failed.append(UnreadFile(file.path, raw))
                continue
            reader.file, reader.due = file, time.monotonic() + self.file_s
            with suppress(OSError):  # it died just now: ``_take`` sees that
                reader.pipe.send((file, raw))
            return
        self.readers.remove(reader)
        reader.end()

    def _lose(self, reader: _Reader, reason: str) -> None:
        self.readers.remove(reader)
        reader.end()
        if reader.file is not None:
            self.failed.append(UnreadFile(reader.file.path, reason))
        if reader.is_ready:
            self.start()
        elif not self.readers:
            self.failed.extend(UnreadFile(file.path, "no process to read it could be started") for file in self.files)


def read_facts(
    files: Iterable[SourceFile],
    read: Callable[[SourceFile], bytes | str],
    *,
    processes: int = PROCESSES,
    file_s: float = FILE_S,
) -> tuple[list[FileFacts], list[UnreadFile]]:
    """Read the facts of files.

    Args:
        read: gives the bytes of a file, or the reason why it has none.
        processes: how many files are read at the same time.
        file_s: seconds that one file may take.

    Returns:
        Facts of the files, and the files that failed, each by path.
    """
    listed = list(files)
    pool = _Pool(iter(listed), read, file_s)
    try:
        for _ in range(min(processes, 1 if len(listed) <= FEW else processes) if listed else 0):
            pool.start()
        pool.run()
    finally:
        for reader in pool.readers:
            reader.end()
    return sorted(pool.found, key=lambda one: one.file.path), sorted(pool.failed, key=lambda one: one.path)
