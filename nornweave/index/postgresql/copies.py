"""Keep copies of generation files on this machine: what is searched is a local file, wherever it is stored.

PostgreSQL has each file in parts, and then its arrays. The first process of a machine that needs a generation fetches
it; the others open the same copy. A copy is named after the content, ``copies/gen-000007-1a2b3c4d.duckdb``, so that a
schema that was dropped and filled again is never taken for the one before.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from nornweave.core.errors import StoreError
from nornweave.core.files.atomic_write import sync_path
from nornweave.core.types import GenerationId
from nornweave.index.generations.checksums import check, checksum_file, checksum_of, write_checksum
from nornweave.index.generations.kept import number_of
from nornweave.index.postgresql.schema import prefix_of
from nornweave.index.postgresql.server import Server
from nornweave.index.searching.arrays import arrays_file, check_arrays, remove_arrays

log = logging.getLogger(__name__)

_ARRIVING = ".copy-"
# While another process brings a copy.
_WAIT_S = 900.0
_PAUSE_S = 0.05


class LocalCopies:
    """The copies of one domain; every method may be called from any thread and process."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self._folder = folder

    def path(self, generation: GenerationId, checksum: str) -> Path:
        """Return where the copy of a generation lies, by the size and CRC-32 of its file."""
        return self._folder / f"{generation}-{checksum.split()[-1]}.duckdb"

    def fetch(self, generation: GenerationId, checksum: str) -> Path:
        """Return the copy of a generation; it is fetched unless it is there and sound.

        Raises:
            StoreError: the server cannot be asked, the generation was removed, or the disk is full.
        """
        file = self.path(generation, checksum)
        if _is_sound(file):
            return file
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with _alone(self._folder, file.is_file):
                if not _is_sound(file):
                    self._fetch(file, generation, checksum)
        except OSError as error:
            raise StoreError(f"{file}: {generation} could not be copied: {error}") from error
        return file

    def _fetch(self, file: Path, generation: GenerationId, checksum: str) -> None:
        for left in self._folder.glob(f"{_ARRIVING}*"):  # of killed processes: this one has the lock
            shutil.rmtree(left, ignore_errors=True)
        with TemporaryDirectory(prefix=_ARRIVING, dir=self._folder) as place:
            arriving = Path(place) / file.name
            table = f"{prefix_of(generation)}file"
            ((count,),) = self._server.rows(f"select count(*) from {table}")
            with arriving.open("wb") as stream, arrays_file(arriving).open("wb") as arrays:
                for part in range(count):
                    ((content,),) = self._server.rows(f"select content from {table} where part = %s", [part])
                    (stream if stream.tell() < int(checksum.split()[0]) else arrays).write(content)
            if checksum_of(arriving) != checksum:
                raise StoreError(f"{self._server.name}: {generation} is damaged; roll back, or sync again with --full")
            if not arrays_file(arriving).stat().st_size:
                raise StoreError(f"{self._server.name}: an earlier version stored {generation}; run `nornweave sync`")
            check_arrays(arriving)
            self.add(arriving, generation, checksum)

    def add(self, built: Path, generation: GenerationId, checksum: str) -> None:
        """Move a file and its arrays to their place among the copies.

        Raises:
            OSError: it cannot be moved.
        """
        file = self.path(generation, checksum)
        self._folder.mkdir(parents=True, exist_ok=True)
        for each in (built, arrays_file(built)):
            sync_path(each)
        write_checksum(built, file, checksum)
        arrays_file(built).replace(arrays_file(file))
        built.replace(file)

    def remove(self, generation: GenerationId) -> None:
        """Remove the copies of a generation; who has one open goes on reading it."""
        for file in self._folder.glob(f"{generation}-*.duckdb"):
            _remove(file)

    def prune(self, complete: Mapping[GenerationId, str]) -> None:
        """Remove the copies of older generations than the newest complete one, but for the complete ones."""
        newest = max(map(number_of, complete), default=0)
        keep = {self.path(generation, checksum) for generation, checksum in complete.items()}
        for file in self._folder.glob("gen-*.duckdb"):
            if file not in keep and int(file.name.split("-")[1]) <= newest:  # a newer one is a candidate
                _remove(file)
        remove_arrays(self._folder)


def _is_sound(file: Path) -> bool:
    """Tell whether a copy is there, with the bytes that were stored."""
    if not file.is_file():
        return False
    try:
        check(file)
        check_arrays(file)
    except StoreError as error:
        log.warning("%s; it is copied again", error)
        file.unlink(missing_ok=True)
        return False
    return True


def _remove(file: Path) -> None:
    for each in (file, checksum_file(file), arrays_file(file)):
        each.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path, is_there: Callable[[], bool]) -> Iterator[None]:
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
