"""The place of the conflict ledger: a file that is replaced in one step, or a row that several machines share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from nornweave.core.errors import StoreError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.files.lock import WriterLock

LOCK_WAIT_S = 60.0


class LedgerPlace(Protocol):
    """Where the document is; every method may be called from any thread.

    Raises:
        StoreError: from every method but ``version``, when it cannot be read or written.
    """

    name: str
    """For messages."""

    def read(self) -> str | None:
        """Return the document; ``None`` before the first time."""

    def write(self, document: str) -> None:
        """Replace the document."""

    def version(self) -> object:
        """Return what differs when the document does; ``None`` where there is none. Hardly costs anything."""

    def locked(self) -> AbstractContextManager[object]:
        """Exclude others that write while it is entered."""


class LedgerFile:
    """The document in a file; implements ``LedgerPlace``."""

    def __init__(self, file: Path) -> None:
        """Store where it is."""
        self._file = file
        self.name = str(file)

    def read(self) -> str | None:
        """Return the document; ``None`` before the first time."""
        try:
            return self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise damaged(self, error) from error

    def write(self, document: str) -> None:
        """Replace the file."""
        try:
            write_whole(self._file, document)
        except OSError as error:
            raise StoreError(f"{self._file}: cannot be written: {error}") from error

    def version(self) -> object:
        """Return what differs when the file does."""
        try:
            status = self._file.stat()
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)

    def locked(self) -> AbstractContextManager[object]:
        """Exclude other processes of this machine."""
        return WriterLock(self._file.with_suffix(".lock"), purpose="ledger", wait_s=LOCK_WAIT_S)


def damaged(place: LedgerPlace, error: Exception) -> StoreError:
    """Return the error that says what to do about a ledger that cannot be read."""
    return StoreError(f"{place.name}: is damaged ({error!r}); remove it: the next sync writes it anew")
