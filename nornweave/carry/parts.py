"""A large file as parts of object storage: of a file that changed in a few places, a few parts are sent and fetched.

DuckDB writes blocks of 256 kB in place. Of a working file of 194 MB, a sync with one changed document leaves 5 MB in
parts of 1 MiB that it did not have before; smaller parts would be more requests.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from nornweave.carry.object_store import PARTS_AT_ONCE, StoredDocument, StoredObject
from nornweave.core.errors import StoreError
from nornweave.core.files.atomic_write import write_whole

PART_BYTES = 1 << 20
CLOCK_NS = 50_000_000
"""A file that was written later than this before it was read may be written again without another time."""


class Objects(Protocol):
    """Where files lie that others can fetch; see ``ObjectStore``."""

    url: str

    def read(self, key: str) -> StoredDocument | None:
        """Return a small object."""

    def fetch(self, key: str, file: Path) -> None:
        """Write an object to a file."""

    def write(self, key: str, content: bytes | Path) -> None:
        """Write an object; it is there as a whole or not at all."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects below a prefix."""

    def remove(self, key: str) -> None:
        """Remove an object."""

    def overwrite(self) -> None:
        """Leave no bytes of what was removed."""


def send(objects: Objects, path: Path, prefix: str, stored: Iterable[str]) -> list[str]:
    """Store the parts of a file that are not ``stored`` yet, under names that begin with ``prefix``.

    Returns:
        The objects of all parts, in order; each is named by the SHA-256 of its content.

    Raises:
        PublicationError: the store does not take them.
    """
    known = {_digest_in(key): key for key in stored}

    def sent(start: int, digest: str) -> str:
        if digest not in known:
            with path.open("rb") as file:
                file.seek(start)
                objects.write(f"{prefix}{digest}", file.read(PART_BYTES))
        return known.get(digest, f"{prefix}{digest}")

    with ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="parts") as pool:
        return list(pool.map(lambda part: sent(*part), _parts(path)))


def join(objects: Objects, keys: Sequence[str], target: Path, earlier: Sequence[Path]) -> int:
    """Write a file out of its parts; those that an ``earlier`` copy has are not fetched.

    Returns:
        How many bytes were fetched.

    Raises:
        PublicationError: a part is missing, or the store does not answer.
        StoreError: a part is damaged.
    """
    here = {digest: (file, start) for file in earlier if file.is_file() for start, digest in _parts(file)}
    with target.open("wb") as stream:

        def place(number: int, key: str) -> int:
            file, start = here.get(_digest_in(key), (None, 0))
            if file is None:
                stored = objects.read(key)
                if stored is None or hashlib.sha256(stored.content).hexdigest() != _digest_in(key):
                    raise StoreError(f"{objects.url}/{key}: is damaged: not the bytes that were stored")
                return os.pwrite(stream.fileno(), stored.content, number * PART_BYTES)
            with file.open("rb") as copy:
                copy.seek(start)
                os.pwrite(stream.fileno(), copy.read(PART_BYTES), number * PART_BYTES)
            return 0

        with ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="parts") as pool:
            return sum(pool.map(lambda part: place(*part), enumerate(keys)))


class Digests:
    """SHA-256 of the files in a folder, for later processes as well, as long as their size, times and place stay."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / ".digests.json"
        try:
            self.known: dict[str, list[object]] = dict(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, TypeError):
            self.known = {}

    def of(self, path: Path) -> str:
        """Return the digest of a file."""
        name, status = path.relative_to(self._folder).as_posix(), path.stat()
        identity = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        known = self.known.get(name)
        if known and known[1:] == identity:
            return str(known[0])
        sha256 = sha256_of(path)
        if time.time_ns() - status.st_ctime_ns > CLOCK_NS:
            self.known[name] = [sha256, *identity]
        return sha256

    def save(self) -> None:
        """Keep them for later processes; without them these read the files again."""
        there = {name: known for name, known in self.known.items() if (self._folder / name).exists()}
        with suppress(OSError):
            write_whole(self._file, json.dumps(there))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield where each part of a file starts, and its SHA-256."""
    with path.open("rb") as file:
        start = 0
        while part := file.read(PART_BYTES):
            yield start, hashlib.sha256(part).hexdigest()
            start += len(part)


def _digest_in(key: str) -> str:
    return key.rpartition("-")[2]
