"""Keep the arrays that queries search in a file beside the generation, which every process maps.

``gen-000007.duckdb.arrays`` is made from ``gen-000007.duckdb`` by the first process that opens it, and can always be
made again. It holds arrays one after the other, then what is where, as JSON, then the size and CRC-32 of that JSON:

    array, array, …, {"of": …, "arrays": {name: [type, shape, offset]}, "crc32": of the arrays}, size, CRC-32

Workers share its pages, so a worker more costs the memory of its queries.
"""

from __future__ import annotations

import fcntl
import json
import logging
import mmap
import os
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

SUFFIX = ".arrays"
FORMAT = "3"
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_END = struct.Struct("<QI")
_ALIGNED = 64
_BUFFER = 1 << 20
# Of these a query reads a few rows here and there. Without being told, the kernel reads 128 kB around each row: from a
# cold disk that is 50 MB a query.
_SCATTERED = frozenset({"vectors", "tokens", "cards.text"})
# While another process makes the file; one that takes longer is not waited for, and memory is used.
_WAIT_S = 900.0
_PAUSE_S = 0.05
# What a killed process left is removed by a later one.
_ABANDONED_S = 3600.0


class ArrayWriter:
    """Writes arrays into an open file, one after the other."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._end = 0
        self._described: dict[str, tuple[str, tuple[int, ...], int]] = {}

    def reserve(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of zeros that is kept under ``name``; what is written into it is written into the file.

        Raises:
            OSError: the disk is full. Without room that is reserved first, writing into a mapping ends the process.
        """
        kind = np.dtype(dtype)
        size = kind.itemsize * int(np.prod(shape))
        self._described[name] = (kind.str, shape, self._end)
        if not size:
            return np.zeros(shape, kind)
        os.posix_fallocate(self._descriptor, self._end, size)
        page = self._end // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        mapped = mmap.mmap(self._descriptor, self._end - page + size, offset=page)
        array = np.frombuffer(mapped, kind, int(np.prod(shape)), self._end - page).reshape(shape)
        self._end = -(-(self._end + size) // _ALIGNED) * _ALIGNED
        return array

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Write a whole array."""
        self.reserve(name, array.dtype, array.shape)[...] = array

    def finish(self, of: str) -> None:
        """Write what is where; without it the file is not read."""
        os.ftruncate(self._descriptor, self._end)
        described = {"of": of, "arrays": self._described, "crc32": _crc32(self._descriptor, self._end)}
        text = json.dumps(described).encode()
        os.lseek(self._descriptor, self._end, os.SEEK_SET)
        with os.fdopen(os.dup(self._descriptor), "wb") as stream:
            stream.write(text + _END.pack(len(text), zlib.crc32(text)))


Make: TypeAlias = Callable[[ArrayWriter], None]


def arrays_file(generation: Path) -> Path:
    """Return where the arrays of a generation lie."""
    return generation.with_name(f"{generation.name}{SUFFIX}")


def open_arrays(generation: Path, of: str, make: Make) -> Arrays:
    """Return the arrays of a generation, mapped from the file beside it; the file is made if it is not there.

    Where the folder cannot be written, or the disk is full, they are made in the memory of this process.

    Args:
        generation: its file.
        of: which generation it is; arrays of another one are not used.
        make: writes them.
    """
    file = arrays_file(generation)
    of = f"{FORMAT} {of}"
    try:
        arrays = _mapped(file, of)
        if arrays is None:
            with alone(file.parent, lambda: _is_of(file, of)):
                arrays = _mapped(file, of) or _made(file, of, make)
    except OSError as error:
        log.info("%s cannot be used (%s): the arrays of this generation are kept in memory", file, error)
        return _in_memory(of, make)
    return arrays


def remove_arrays(folder: Path) -> None:
    """Remove arrays whose generation is gone, and what killed processes left."""
    for file in folder.glob(f"*{SUFFIX}"):
        if not file.with_suffix("").exists():
            file.unlink(missing_ok=True)
    for left in folder.glob(f".*{SUFFIX}.*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_S:
                left.unlink()


def _made(file: Path, of: str, make: Make) -> Arrays:
    """Write the file aside and rename it: whoever opens it finds all of it or nothing."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        _write(descriptor, of, make)
        os.replace(name, file)  # noqa: PTH105 - the name is text
        arrays = _read(descriptor, of)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    if arrays is None:
        raise OSError(f"{file}: is not what was written")
    return arrays


def _in_memory(of: str, make: Make) -> Arrays:
    descriptor = os.memfd_create("arrays")
    try:
        _write(descriptor, of, make)
        arrays = _read(descriptor, of)
    finally:
        os.close(descriptor)
    if arrays is None:
        raise OSError("arrays in memory are not what was written")
    return arrays


def _write(descriptor: int, of: str, make: Make) -> None:
    writer = ArrayWriter(descriptor)
    make(writer)
    writer.finish(of)


def _mapped(file: Path, of: str) -> Arrays | None:
    """Return the arrays of a file; ``None`` if there is none, or it is damaged or of another generation."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        arrays = _read(descriptor, of)
    finally:
        os.close(descriptor)
    if arrays is None:
        log.warning("%s: is damaged or of another generation; it is made again", file)
    return arrays


def _is_of(file: Path, of: str) -> bool:
    """Tell whether a complete file of this generation is there, without reading it."""
    try:
        with file.open("rb") as stream:
            described = _described(stream.fileno())
    except OSError:
        return False
    return described is not None and described[0]["of"] == of


def _read(descriptor: int, of: str) -> Arrays | None:
    found = _described(descriptor)
    if found is None:
        return None
    described, end = found
    if described["of"] != of or described["crc32"] != _crc32(descriptor, end):
        return None
    if not end:
        return {name: np.zeros(shape, kind) for name, (kind, shape, _) in described["arrays"].items()}
    mapped = mmap.mmap(descriptor, end, prot=mmap.PROT_READ)
    for name in _SCATTERED & described["arrays"].keys():
        kind, shape, offset = described["arrays"][name]
        page = offset // mmap.PAGESIZE * mmap.PAGESIZE
        mapped.madvise(mmap.MADV_RANDOM, page, offset - page + np.dtype(kind).itemsize * int(np.prod(shape)))
    return {
        name: np.frombuffer(mapped, kind, int(np.prod(shape)), offset if np.prod(shape) else 0).reshape(shape)
        for name, (kind, shape, offset) in described["arrays"].items()
    }


def _described(descriptor: int) -> tuple[dict[str, Any], int] | None:
    """Return what is where, and where the arrays end; ``None`` if that cannot be read."""
    size = os.fstat(descriptor).st_size
    if size < _END.size:
        return None
    length, checksum = _END.unpack(os.pread(descriptor, _END.size, size - _END.size))
    start = size - _END.size - length
    if start < 0 or not length:  # zeros are a valid checksum of nothing
        return None
    text = os.pread(descriptor, length, start)
    return (json.loads(text), start) if zlib.crc32(text) == checksum else None


def _crc32(descriptor: int, end: int) -> int:
    """Return the CRC-32 of the first ``end`` bytes; read, not mapped, so that they do not count as this process's."""
    checksum = 0
    for offset in range(0, end, _BUFFER):
        checksum = zlib.crc32(os.pread(descriptor, min(_BUFFER, end - offset), offset), checksum)
    return checksum


@contextmanager
def alone(folder: Path, is_there: Callable[[], bool]) -> Iterator[None]:
    """Keep other processes from making the same file; wait for one that does.

    The lock is on the folder: it leaves no file behind and ends with the process.

    Raises:
        OSError: the folder cannot be locked, or another process takes too long.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + _WAIT_S
    try:
        while not is_there():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(descriptor)
