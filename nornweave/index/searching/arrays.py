"""Arrays for queries in a file beside the segment, which every process maps into memory.

``gen-000007-000.duckdb.arrays`` is built and published with ``gen-000007-000.duckdb`` and holds what that does not:
vectors, word pairs, names, what is shown of chunks; and the BM25 tables as queries read them. It has arrays one after
the other, then what is where, as JSON, then the size and CRC-32 of that JSON:

    array, array, …, {"of": …, "arrays": {name: [type, shape, offset]}, "crc32": of the arrays}, size, CRC-32

Workers share its pages, so a worker more costs the memory of its queries.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.errors import StoreError
from nornweave.index.generations.checksums import compare_once

SUFFIX = ".arrays"
FORMAT = "4"
_READABLE = ("3", FORMAT)  # 3 had eight bytes for each place, and cards as objects
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_END = struct.Struct("<QI")
_ALIGNED = 64
_BUFFER = 1 << 20
# Arrays of which a query reads a few scattered rows. By default the kernel reads 128 kB around each row: from a
# cold disk that is 50 MB a query.
_BLOCK = 1 << 20
_SCATTERED = frozenset({"vectors", "tokens", "settings", "cards.text"})


def _make_room(descriptor: int, start: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, size)
        return
    for offset in range(start, start + size, _BLOCK):  # macOS
        os.pwrite(descriptor, bytes(min(_BLOCK, start + size - offset)), offset)


class ArrayWriter:
    """Writes arrays into an open file, one after another."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._end = 0
        self._described: dict[str, tuple[str, tuple[int, ...], int]] = {}

    def reserve(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a writable array of zeros in the file, stored as ``name``.

        Raises:
            OSError: the disk is full. Room is reserved first, because a write into a mapping without room ends the
                process.
        """
        kind = np.dtype(dtype)
        size = kind.itemsize * int(np.prod(shape))
        start = self._register(name, kind, shape, size)
        if not size:
            return np.zeros(shape, kind)
        _make_room(self._descriptor, start, size)
        page = start // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        mapped = mmap.mmap(self._descriptor, start - page + size, offset=page)
        return np.frombuffer(mapped, kind, int(np.prod(shape)), start - page).reshape(shape)

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Write an array, stored as ``name``."""
        self.reserve(name, array.dtype, array.shape)[...] = array

    def add_starts(self, name: str, starts: NDArray[np.int64]) -> None:
        """Write the starts of lists and the end of the last list, as int32 if they fit."""
        self.add(name, starts if starts[-1] >> 31 else starts.astype(np.int32))

    def extend(self, name: str, dtype: Any, parts: Iterable[NDArray[Any]]) -> None:
        """Write a one-dimensional array that arrives in parts.

        Raises:
            OSError: the disk is full.
        """
        size = 0
        with os.fdopen(os.dup(self._descriptor), "wb") as stream:
            stream.seek(self._end)
            for part in parts:
                size += stream.write(np.ascontiguousarray(part, dtype).view(np.uint8).data)
        self._register(name, np.dtype(dtype), (size // np.dtype(dtype).itemsize,), size)

    def _register(self, name: str, kind: np.dtype[Any], shape: tuple[int, ...], size: int) -> int:
        """Enter an array of ``size`` bytes in the table of arrays, and return its offset in the file."""
        start, self._end = self._end, -(-(self._end + size) // _ALIGNED) * _ALIGNED
        self._described[name] = (kind.str, shape, start)
        return start

    def finish(self, of: str) -> None:
        """Write the table of arrays, which names the segment ``of``. A file without this table is not read."""
        os.ftruncate(self._descriptor, self._end)
        described = {"of": f"{FORMAT} {of}", "arrays": self._described, "crc32": _crc32(self._descriptor, self._end)}
        text = json.dumps(described).encode()
        os.lseek(self._descriptor, self._end, os.SEEK_SET)
        with os.fdopen(os.dup(self._descriptor), "wb") as stream:
            stream.write(text + _END.pack(len(text), zlib.crc32(text)))


def arrays_file(segment: Path) -> Path:
    """Return the path of a segment's arrays."""
    return segment.with_name(f"{segment.name}{SUFFIX}")


@contextmanager
def writing_arrays(segment: Path, of: str) -> Iterator[ArrayWriter]:
    """Open a segment's arrays for writing. Readers ignore an unfinished file. ``of`` identifies the segment.

    Raises:
        OSError: the disk is full.
    """
    arrays_file(segment).unlink(missing_ok=True)
    descriptor = os.open(arrays_file(segment), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        writer = ArrayWriter(descriptor)
        yield writer
        writer.finish(of)
    finally:
        os.close(descriptor)


def open_arrays(segment: Path, of: str) -> Arrays:
    """Return a segment's arrays, mapped into memory.

    Raises:
        StoreError: the arrays are missing, damaged, or were written for a segment other than ``of``.
    """
    check_arrays(segment)
    with _reading(arrays_file(segment)) as descriptor:
        found = _described(descriptor)
        if found is None or found[0]["of"] not in {f"{version} {of}" for version in _READABLE}:
            raise StoreError(f"{arrays_file(segment)}: is of another segment; roll back, or sync again with --full")
        return _mapped(descriptor, *found)


def check_arrays(segment: Path) -> None:
    """Check a segment's arrays by their checksum, once per process.

    Raises:
        StoreError: the arrays are missing or damaged.
    """
    file = arrays_file(segment)
    if not file.is_file():
        raise StoreError(f"{file}: is missing; roll back, or sync again")
    compare_once(file, lambda: _damage(file))


def remove_arrays(folder: Path) -> None:
    """Remove arrays without a segment, and temporary files that killed processes of earlier versions left."""
    alone = (file for file in folder.glob(f"*{SUFFIX}") if not file.with_suffix("").exists())
    for file in (*alone, *folder.glob(f".*{SUFFIX}.*")):
        file.unlink(missing_ok=True)


def _damage(file: Path) -> str | None:
    with _reading(file) as descriptor:
        found = _described(descriptor)
        if found is None:
            return "it does not say what it holds"
        return None if found[0]["crc32"] == _crc32(descriptor, found[1]) else "its checksum is another one"


@contextmanager
def _reading(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _mapped(descriptor: int, described: Mapping[str, Any], end: int) -> Arrays:
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
    """Return the table of arrays and the offset where the arrays end; ``None`` if it cannot be read."""
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
    """Return the CRC-32 of the first ``end`` bytes. The file is not mapped, so that memory use stays small."""
    checksum = 0
    for offset in range(0, end, _BUFFER):
        checksum = zlib.crc32(os.pread(descriptor, min(_BUFFER, end - offset), offset), checksum)
    return checksum
