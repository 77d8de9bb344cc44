"""The file of tokens. It is read again whenever it changes, so a removed token is refused at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from api.errors import ProblemError, unavailable
from nornweave.core.access import TokenEntry, hash_of, read_tokens
from nornweave.core.errors import ConfigError
from nornweave.core.types import present

log = logging.getLogger(__name__)

RETRY_S = 5
FileState: TypeAlias = tuple[int, int, int]
"""When a file was changed, in nanoseconds, its size and its inode."""


class TokenFile:
    """Finds the entries of tokens in the file of tokens. Every method may be called from any thread."""

    def __init__(self, file: Path) -> None:
        """Read the file. A broken file admits nobody until it is corrected.

        A server checks the file before it starts (``check_listening``); a process restarted later must not fail.
        """
        self._file = file
        self._lock = threading.Lock()
        self._version = state_of(file)
        self._entries = self._read()

    def find(self, token: str) -> TokenEntry | None:
        """Return the entry of a token; ``None`` if it is unknown or has expired.

        Raises:
            ProblemError: 503, the file cannot be read now.
        """
        return self.entry(hash_of(token))

    def entry(self, hashed: str) -> TokenEntry | None:
        """Return the entry of a token by its hash; ``None`` if it is unknown or has expired. Raises as ``find``."""
        # The time that it takes may tell how much of a hash is right; that says nothing about a token with this hash.
        entry = self._current().get(hashed)
        return entry if entry and entry.is_valid(present()) else None

    def _current(self) -> Mapping[str, TokenEntry]:
        """Return the entries of the file by hash.

        Raises:
            ProblemError: 503, the file is broken, so nobody knows which tokens were removed from it.
        """
        state = state_of(self._file)
        with self._lock:
            if state != self._version:
                self._version, self._entries = state, self._read()
            if self._entries is None:
                raise broken_access()
            return self._entries

    def _read(self) -> Mapping[str, TokenEntry] | None:
        try:
            return read_tokens(self._file)
        except ConfigError as error:
            log.error("no token of the file is accepted until it is mended: %s", error)
            return None


def state_of(file: Path) -> FileState | None:
    """Return values that change whenever a file changes; ``None`` if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def broken_access() -> ProblemError:
    """Return a 503 which says that access rights cannot be looked up now."""
    detail = "who may ask cannot be looked up now; the log of the server says why"
    return unavailable("access-unavailable", detail, RETRY_S)
