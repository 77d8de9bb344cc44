"""Write a checksum beside each published generation and compare it before DuckDB opens the file.

DuckDB checks blocks only when it reads them. Damage in the blocks that describe the tables may crash the process
instead of raising an error. ``gen-000001.duckdb.crc32`` holds the size and the CRC-32 of the whole file. The cost is
0.4 s/GiB, once per process and generation.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from nornweave.core.errors import StoreError
from nornweave.core.files.writing import write_whole

SUFFIX = ".crc32"
_STORED = re.compile(r"(\d+) ([0-9a-f]{8})", re.ASCII)
_BUFFER = 1 << 20

_Identity: TypeAlias = tuple[int, int, int, int, int]
# The damage found in a file, or ``None``, by the file's identity, which changes with the file.
_compared: dict[_Identity, str | None] = {}
_lock = threading.Lock()


def checksum_file(file: Path) -> Path:
    """Return the path of a file's checksum."""
    return file.with_name(f"{file.name}{SUFFIX}")


def write_checksum(built: Path, file: Path, checksum: str | None = None) -> None:
    """Write the checksum of ``built`` beside ``file``, its future path. ``checksum`` may be ``None``, to compute it.

    Raises:
        OSError: a file cannot be read or written.
    """
    write_whole(checksum_file(file), f"{checksum or checksum_of(built)}\n")


def checksum_of(file: Path) -> str:
    """Return the checksum of a file: its size in bytes, a blank and its CRC-32.

    Raises:
        OSError: the file cannot be read.
    """
    size, checksum = _measure(file)
    return f"{size} {checksum}"


def check(file: Path) -> None:
    """Compare a file with its checksum. A file without a checksum, from an earlier version, passes.

    Each file is read once per process, and again if its size or times change.

    Raises:
        StoreError: the file or its checksum is damaged, or cannot be read.
    """
    try:
        stored = checksum_file(file).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{checksum_file(file)}: cannot be read: {error}") from error
    compare_once(file, lambda: _compare(file, stored))


def compare_once(file: Path, damage_of: Callable[[], str | None]) -> None:
    """Check a file once per process, and again if its size or times change.

    Args:
        damage_of: checks the file. It returns what is damaged, or ``None``.

    Raises:
        StoreError: the file is damaged, or cannot be read.
    """
    try:
        status = file.stat()
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if identity not in _compared:
            with _lock:  # one thread at a time reads the disk
                _compared[identity] = damage_of()
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error}") from error
    if damage := _compared[identity]:
        raise StoreError(f"{file}: is damaged: {damage}; roll back, or sync again with --full")


def _compare(file: Path, stored: str) -> str | None:
    match = _STORED.fullmatch(stored)
    if not match:
        return f"{checksum_file(file).name} holds {stored[:40]!r}, expected a size and a checksum"
    size, checksum = int(match[1]), match[2]
    if (found := file.stat().st_size) != size:
        return f"it has {found} bytes, {size} were published"
    if (measured := _measure(file)[1]) != checksum:
        return f"its checksum is {measured}, {checksum} was published"
    return None


def _measure(file: Path) -> tuple[int, str]:
    """Return a file's size in bytes and its CRC-32. The file is read piece by piece."""
    size = checksum = 0
    buffer = memoryview(bytearray(_BUFFER))
    with file.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            checksum = zlib.crc32(buffer[:count], checksum)
            size += count
    return size, f"{checksum:08x}"
