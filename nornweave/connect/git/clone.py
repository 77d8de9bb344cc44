"""Keep what was read of a repository on another machine: commits and folders of the wanted refs, and chosen files.

Sources of the same address share one bare repository below ``data_dir``, and so everything that their branches have in
common. One process at a time writes, under a lock that git's own processes inherit: what a killed sync leaves running
holds the lock until it has ended.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from nornweave.connect.git.address import GitAddress, parse_address
from nornweave.connect.git.network import Network
from nornweave.connect.git.open_clone import OpenClone
from nornweave.core.errors import SourceUnavailableError

log = logging.getLogger(__name__)

FOLDER = "git"
LOCK_WAIT_S = 900.0
"""How long a sync waits for another one that reads the same repository."""
_POLL_S = 0.1
_REPOSITORY, _LOCK = "repository.git", "lock"


@dataclass(frozen=True, slots=True)
class Clone:
    """The clone of one address.

    Attributes:
        max_bytes: what the clone may take on disk.
    """

    data_dir: Path
    network: Network
    max_bytes: int = field(kw_only=True)

    @property
    def repository(self) -> Path:
        """Return the bare repository."""
        return self._folder / _REPOSITORY

    @contextmanager
    def writing(self, selection: str) -> Iterator[OpenClone]:
        """Hold the clone.

        Args:
            selection: names what is read of it; another one may be small enough where this one is not.

        Raises:
            SourceUnavailableError: another sync holds it for too long, or it cannot be written.
        """
        try:
            descriptor = _hold(self._folder / _LOCK, self.network.address)
        except OSError as error:
            raise SourceUnavailableError(f"{self._folder}: {error.strerror}; let data_dir be written") from error
        try:
            yield OpenClone(self.repository, self.network, self.max_bytes, descriptor, selection)
        finally:
            os.close(descriptor)

    @property
    def _folder(self) -> Path:
        return self.data_dir / FOLDER / self.network.address.key


def remove_unused(data_dir: Path, urls: Iterable[str]) -> None:
    """Remove the clones of addresses that no source names any more, unless they are being written.

    Args:
        urls: of all sources.

    Raises:
        ConfigError: one of them is no address.
    """
    wanted = {parse_address(url).key for url in urls}
    folder = data_dir / FOLDER
    for unused in folder.iterdir() if folder.is_dir() else ():
        if unused.name in wanted or not unused.is_dir():
            continue
        with suppress(OSError):
            descriptor = os.open(unused / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if _is_held(descriptor, unused / _LOCK):
                    shutil.rmtree(unused)
                    log.info("removed the clone %s: no source names its repository any more", unused)
            finally:
                os.close(descriptor)


def _hold(file: Path, address: GitAddress) -> int:
    """Lock a clone; return the descriptor that holds it."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _is_held(descriptor, file):
            return descriptor
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise SourceUnavailableError(
                f"{address.shown}: another sync has been reading it for {LOCK_WAIT_S:g} s; the next one tries again"
            )
        time.sleep(_POLL_S)


def _is_held(descriptor: int, file: Path) -> bool:
    """Lock a file; tell whether that worked and it still is the one that others would lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
