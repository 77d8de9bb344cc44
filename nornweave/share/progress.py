"""How far a download is, for who waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from nornweave.core.errors import PublicationError

# A download that takes longer is worth a notice, which says so often how far it is.
LONG_S, TELL_EVERY_S = 10.0, 2.0


class Stopped(PublicationError):  # noqa: N818 - not a failure
    """The replica is shutting down; a download goes on where it was with the next start."""


class Progress:
    """Counts the bytes of one download; used by several threads."""

    def __init__(self, total: int, tell: Callable[[str], None], stopping: threading.Event) -> None:
        """Begin with none.

        Args:
            total: bytes that are to come.
            tell: told in words how far it is, once that takes long.
            stopping: ends the download.
        """
        self._total = total
        self._tell = tell
        self._stopping = stopping
        self._lock = threading.Lock()
        self._arrived = 0
        self._started = time.monotonic()
        self._tell_at = self._started + LONG_S

    def arrived(self, count: int) -> None:
        """Note that bytes came.

        Raises:
            Stopped: the replica is shutting down.
        """
        if self._stopping.is_set():
            raise Stopped("is shutting down")
        with self._lock:
            self._arrived += count
            now = time.monotonic()
            if now < self._tell_at:
                return
            self._tell_at = now + TELL_EVERY_S
            done, whole = self._arrived / 1e6, self._total / 1e6
            self._tell(f"is being downloaded for {now - self._started:.0f} s: {done:.1f} of {whole:.1f} MB")
