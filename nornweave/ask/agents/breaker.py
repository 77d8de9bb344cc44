"""A circuit breaker: an address that fails again and again is left alone for a while, then tried with one request.

``closed`` asks · ``open`` does not, for 5 s, after each failed trial twice as long, at most a minute · ``half-open``
asks once; success closes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

FAILURES = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0

BreakerState = Literal["closed", "open", "half-open"]


class Breaker:
    """The breaker of one address; used from one thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin closed; ``now`` is the clock, in seconds."""
        self._now = now
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._open_until: float | None = None
        self._on_trial = False
        self.problem = ""

    @property
    def state(self) -> BreakerState:
        """Say where it stands."""
        if self._open_until is None:
            return "closed"
        return "open" if self._now() < self._open_until else "half-open"

    @property
    def admits(self) -> bool:
        """Tell whether a request may be sent now."""
        return self.state == "closed" or (self.state == "half-open" and not self._on_trial)

    @property
    def left_s(self) -> float:
        """Return for how long it stays open."""
        return max(0.0, (self._open_until or 0.0) - self._now())

    def begin(self) -> None:
        """Note that a request is sent."""
        self._on_trial = self._open_until is not None

    def succeed(self) -> None:
        """Note that a request was answered."""
        self._failures, self._pause_s = 0, FIRST_PAUSE_S
        self._open_until, self._on_trial, self.problem = None, False, ""

    def fail(self, problem: str) -> None:
        """Note that a request was not answered as it should be."""
        self.problem = problem
        self._failures += 1
        if self._on_trial:
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        if self._on_trial or self._failures >= FAILURES:
            self._open_until = self._now() + self._pause_s
        self._on_trial = False

    def give_up(self) -> None:
        """Note that a request was withdrawn before it could say anything of the address."""
        self._on_trial = False
