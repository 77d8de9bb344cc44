"""Waiting for what another thread, task or process does: as short as possible, and long enough for a busy machine."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

# Nothing takes so long but what never comes. A test that hangs is ended by its time limit, which is longer.
WITHIN_S = 120.0
PACE_S, SLOWEST_S = 0.01, 0.25
# A deadline that whatever is healthy meets on a busy machine. Where something hangs, a test takes that long.
GENEROUS_MS = 2_500
# The answer came without what hangs: that hangs until it is let go, or for much longer.
SOON_S = 30.0
HANGS_S = 240.0


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def until(
    holds: Callable[[], object],
    message: Callable[[], object] = lambda: "waited in vain",
    *,
    pace_s: float = PACE_S,
    within_s: float | None = None,
) -> None:
    """Return as soon as something holds: what lets itself be waited for is looked at less and less often.

    Raises:
        AssertionError: it does not hold in time, within two minutes unless given.
    """
    began = time.monotonic()
    while not holds():
        waited_s = time.monotonic() - began
        assert waited_s < (within_s or WITHIN_S), message()
        time.sleep(max(pace_s, min(waited_s / 20, SLOWEST_S)))


async def until_async(holds: Callable[[], object]) -> None:
    """Let other tasks run until something holds.

    Raises:
        AssertionError: it does not hold within two minutes.
    """
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(PACE_S)
