"""Write files atomically: a reader sees the old file or the new one, even if the writer is killed."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PRIVATE = 0o600
# The next writer removes what a killed writer left. A living writer needs far less time than this.
ABANDONED_S = 3600.0


def write_whole(file: Path, text: str, mode: int = PRIVATE) -> None:
    """Replace a file atomically and durably.

    A reader sees the old file or the new one. Each writer has a temporary file of its own, so two writers do not mix
    their texts. The last one to finish wins. A failure leaves no temporary file behind.

    Args:
        file: the file. Its folder must exist.
        text: the content, written as UTF-8.

    Raises:
        OSError: the file cannot be written. The old file stays.
    """
    _sweep(file)
    with _aside(file, text.encode(), mode) as written:
        written.replace(file)
    sync_path(file.parent)


def write_new(file: Path, content: bytes) -> None:
    """Create a file that only this user can read. If the file exists, do nothing.

    Args:
        file: the file. Its folder must exist.

    Raises:
        OSError: the file cannot be written.
    """
    with _aside(file, content, PRIVATE) as written, suppress(FileExistsError):
        os.link(written, file)


@contextmanager
def _aside(file: Path, content: bytes, mode: int) -> Iterator[Path]:
    """Yield a durable temporary file beside ``file`` that holds ``content``. Delete it at the end."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            sync_file(stream.fileno())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def sync_file(descriptor: int) -> None:
    """Flush an open file to the disk. On macOS this takes more than ``fsync``, which only reaches the drive's cache."""
    with suppress(AttributeError, OSError):  # other systems do not have it, nor does every file system of macOS
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined,unused-ignore]
        return
    os.fsync(descriptor)


def sync_path(path: Path) -> None:
    """Flush a file or the entries of a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def _sweep(file: Path) -> None:
    """Delete old temporary files of ``file`` that killed writers left."""
    before = time.time() - ABANDONED_S
    for left in file.parent.iterdir():
        with suppress(FileNotFoundError):  # its writer is done
            if left.name.startswith(f".{file.name}.") and left.stat().st_mtime < before:
                left.unlink()
