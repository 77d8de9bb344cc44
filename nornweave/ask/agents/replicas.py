"""The addresses of one agent: which to ask next, when a second one beside it, and when to leave one alone.

Of two random ones the one with the lower cost is asked (power of two choices: Mitzenmacher, IEEE TPDS 12(10), 2001);
the cost is the latency times the requests that it works on. A latency rises at once and falls slowly, and halves every
10 s that nothing is measured, so that an address which was slow is tried again.

A circuit breaker leaves an address alone that fails again and again: ``closed`` asks · ``open`` does not, for 5 s,
after each failed trial twice as long, at most a minute · ``half-open`` asks once; success closes.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
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


# A quarter of a new, lower latency counts.
GAIN = 0.25
HALVES_AFTER_S = 10.0
# A request that was given less time says nothing of an address which did not answer it.
FAIR_S = 1.0
MEASURED, ENOUGH = 128, 16
USUAL_HEDGE_S, LEAST_HEDGE_S = 0.5, 0.005


class Replica:
    """One address of an agent; used from one thread."""

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic) -> None:
        self.url = url
        self.breaker = Breaker(now)
        self.outstanding = 0
        self._now = now
        self._latency_s = 0.0
        self._measured_at = now()

    @property
    def cost(self) -> float:
        """Return what one more request would cost here, to be compared with others."""
        return (self._decayed() + 1e-3) * (self.outstanding + 1)

    def took(self, seconds: float) -> None:
        """Note how long an answer took, or that there was none for so long."""
        latency = self._decayed()
        self._latency_s = seconds if seconds > latency else latency + GAIN * (seconds - latency)
        self._measured_at = self._now()

    def _decayed(self) -> float:
        return float(self._latency_s * 0.5 ** ((self._now() - self._measured_at) / HALVES_AFTER_S))


class Latencies:
    """How long the last answers of an agent took, wherever they came from."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=MEASURED)

    def add(self, seconds: float) -> None:
        """Note one."""
        self._seconds.append(seconds)

    @property
    def p95_s(self) -> float | None:
        """Return the 95th percentile by nearest rank; ``None`` before there are enough."""
        if len(self._seconds) < ENOUGH:
            return None
        return sorted(self._seconds)[math.ceil(0.95 * len(self._seconds)) - 1]

    @property
    def hedge_after_s(self) -> float:
        """Return when a second address is asked: one request in twenty takes longer."""
        p95_s = self.p95_s
        return USUAL_HEDGE_S if p95_s is None else max(p95_s, LEAST_HEDGE_S)


def choose(replicas: Sequence[Replica], tried: Collection[Replica], rng: random.Random) -> Replica | None:
    """Return the address to ask next, ``None`` when none is left that may be asked."""
    usable = [replica for replica in replicas if replica not in tried and replica.breaker.admits]
    if len(usable) < 2:
        return usable[0] if usable else None
    return min(rng.sample(usable, 2), key=lambda replica: replica.cost)
