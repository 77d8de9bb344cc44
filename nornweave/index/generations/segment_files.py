"""The files of segments, on this machine or elsewhere."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from nornweave.core.errors import StoreError
from nornweave.index.generations.checksums import check
from nornweave.index.searching.arrays import arrays_file, check_arrays

log = logging.getLogger(__name__)


class Elsewhere(Protocol):
    """Where files of a domain lie that are not on this disk yet."""

    def has(self, file: Path) -> bool:
        """Tell whether a file, which is not here, is there."""

    def fetch(self, file: Path) -> None:
        """Bring a file, if it is there.

        Raises:
            StoreError: it is there, and cannot be brought whole.
        """

    def look(self) -> None:
        """Bring what says which generations there are, where that is to be seen at once.

        Raises:
            StoreError: it cannot be asked.
        """


class SegmentFiles:
    """The files of segments below ``folder``.

    They may lie ``elsewhere``: one that is read is brought here first, and one that is not is never brought.
    """

    def __init__(self, folder: Path, elsewhere: Elsewhere | None = None) -> None:
        self.folder = folder
        self._elsewhere = elsewhere

    def bring(self, file: Path) -> None:
        """Bring a file that lies elsewhere.

        Raises:
            StoreError: it cannot be brought whole.
        """
        if self._elsewhere is None:
            return
        if file.exists():
            try:
                check(file)
            except StoreError as error:
                if not self._elsewhere.has(file):
                    raise
                log.warning("%s; it is brought again", error)
                file.unlink(missing_ok=True)
        if not file.exists():
            self._elsewhere.fetch(file)

    def is_elsewhere(self, file: Path) -> bool:
        """Tell whether a file is not here and can be brought; what was stored there is whole."""
        return self._elsewhere is not None and not file.exists() and self._elsewhere.has(file)

    def check_segment(self, file: Path) -> None:
        """Compare the files of a segment with what was published; those that lie elsewhere are not brought.

        Raises:
            StoreError: one is missing or damaged.
        """
        if not self.is_elsewhere(file):
            if not file.is_file():
                raise StoreError(f"{file}: is missing; roll back, or sync again")
            check(file)
        if not self.is_elsewhere(arrays_file(file)):
            check_arrays(file)
