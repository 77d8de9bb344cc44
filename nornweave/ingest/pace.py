"""Describe the progress of a step: how much is done, how fast, how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable

UNITS = {
    "load": "model",
    "list": "documents",
    "read": "KiB",
    "store": "documents",
    "embed": "chunks",
    "build": "generation",
}
"""What a step counts; the steps of an evaluation count questions."""

# A rate over less time than this says little.
_LEAST_S = 1.0


class Pace:
    """Follows the calls of a ``Progress`` and describes the current step."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._name, self._started, self._first, self._kib = "", 0.0, 0, 0

    def describe_step(self, name: str, done: int, total: int) -> str | None:
        """Return a phrase such as ``300 of 1,000 documents, 40/s, 18 s left``.

        Returns:
            The phrase; ``None`` for the step ``read``, whose bytes are part of the next phrase about the listing.
        """
        step = name.split()[1] if " " in name else name
        if step == "read":
            self._kib = done
            return None
        if name != self._name:
            self._name, self._started, self._first = name, self._clock(), done
        seconds = self._clock() - self._started
        rate = (done - self._first) / seconds if seconds >= _LEAST_S else 0.0
        return describe(done, total, UNITS.get(step, ""), self._kib if step == "list" else 0, rate)


def describe(done: int, total: int, unit: str, kib: int = 0, rate: float = 0.0) -> str:
    """Return the progress of a step: ``300 of 1,000 documents, 12.5 MiB, 40/s, 18 s left``.

    Args:
        total: the number of units of the step; 0 if it is unknown.
        kib: the KiB that were read for it; 0 leaves the size out.
        rate: units per second; 0 if it is unknown.
    """
    parts = [f"{done:,} of {total:,} {unit}".rstrip() if total else f"{done:,} {unit}".rstrip()]
    if kib:
        parts.append(f"{kib / 1024:,.1f} MiB")
    if rate >= 0.1:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if total > done:
            parts.append(f"{_duration((total - done) / rate)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
