"""Write files atomically: a reader sees the old file or the new one, even if the writer is killed."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600
# What a killed writer left is removed by the next one; a living one is done long before.
ABANDONED_S = 3600.0


def write_whole(file: Path, text: str, mode: int = PRIVATE) -> None:
    """Write a file aside, make it durable and rename it.

    A reader sees the old file or the new one. Each writer has a temporary file of its own, so that two at once do not
    mix; the one that ends last wins. A failure leaves nothing behind.

    Args:
        file: in a folder that exists.
        text: written as UTF-8.

    Raises:
        OSError: it cannot be written; the old file stays.
    """
    _sweep(file)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_path(file.parent)


def sync_path(path: Path) -> None:
    """Flush a file or the entries of a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(file: Path) -> None:
    """Remove temporary files of killed writers of the same file."""
    before = time.time() - ABANDONED_S
    for left in file.parent.iterdir():
        with suppress(FileNotFoundError):  # its writer is done
            if left.name.startswith(f".{file.name}.") and left.stat().st_mtime < before:
                left.unlink()
