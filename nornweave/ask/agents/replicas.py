"""The addresses of one agent: which to ask next, and when a second one beside it.

Of two random ones the one with the lower cost is asked (power of two choices: Mitzenmacher, IEEE TPDS 12(10), 2001);
the cost is the latency times the requests that it works on. A latency rises at once and falls slowly, and halves every
10 s that nothing is measured, so that an address which was slow is tried again.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence

from nornweave.ask.agents.breaker import Breaker

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
        """Begin with a clean record."""
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
        """Begin with none."""
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
