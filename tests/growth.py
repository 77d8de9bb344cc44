"""How the cost of a computation grows with its input.

The cost itself says how fast and how busy the machine is. The growth says what the code does.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from typing import TypeVar

T = TypeVar("T")

TIMES = 16
# Half way between linear and quadratic. Of 16 times the input, linear is 16, n·log n about 22, this 64, quadratic 256.
HIGHEST_POWER = 1.5
# A shorter measurement is repeated until all of them together take this long, or are so many: giving memory back before
# each takes milliseconds.
SHORTEST_S, MOST_CALLS = 0.001, 16
# Other work on the core can slow one measurement down. A quadratic step fails every attempt.
ATTEMPTS = 4
# Caches of this size remember what was read. Smaller ones hold tables that are built once.
CACHE_OF_INPUTS = 256

_looked_at: set[str] = set()
_found: list[_lru_cache_wrapper[object]] = []

# Only glibc has it. Memory that was used before is many times cheaper, and only small inputs fit into it.
release_memory: Callable[[int], int] = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)


def assert_subquadratic(
    work: Callable[[T], object], sized: Callable[[int], T], size: int, *, times: int = TIMES
) -> None:
    """Fail if the CPU time of ``work`` grows faster than ``size ** 1.5``.

    Args:
        work: what is measured, in this thread.
        sized: makes an input of a size; not measured.
        size: of the large input. The small one is the ``times``-th part.
    """
    small, large = sized(size // times), sized(size)
    work(small)  # whatever is imported or built at the first call
    caches = _caches()
    growths: list[float] = []
    for _ in range(ATTEMPTS):
        cost = min(_cpu_seconds(work, small, caches) for _ in range(3))
        growths.append(_cpu_seconds(work, large, caches) / cost)
        if growths[-1] < times**HIGHEST_POWER:
            return
    measured = ", ".join(f"{growth:.0f}" for growth in growths)
    raise AssertionError(f"{times} times the input takes {measured} times as long, {large!r:.80}")


def _caches() -> Sequence[_lru_cache_wrapper[object]]:
    """Return the caches of inputs in the modules that are imported. Each module is looked at once."""
    for name in sorted(sys.modules.keys() - _looked_at):
        _looked_at.add(name)
        _found.extend(
            cache
            for cache in (vars(sys.modules[name]).values() if name.startswith("nornweave.") else ())
            if isinstance(cache, _lru_cache_wrapper) and (cache.cache_parameters()["maxsize"] or 0) >= CACHE_OF_INPUTS
        )
    return _found


def _cpu_seconds(work: Callable[[T], object], argument: T, caches: Sequence[_lru_cache_wrapper[object]]) -> float:
    """Return the CPU time of one call in seconds, the mean over as many calls as can be measured."""
    calls, elapsed = 0, 0.0
    with _without_garbage_collection():
        while elapsed < SHORTEST_S and calls < MOST_CALLS:
            for cache in caches:
                cache.cache_clear()
            release_memory(0)
            started = time.thread_time()
            work(argument)
            elapsed += time.thread_time() - started
            calls += 1
    return elapsed / calls


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Its cost depends on what the tests before left."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
