"""How long the steps of an answer take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType

from nornweave.core.tracing import span


class Stopwatch:
    """Times steps by name; it runs from its making on."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._milliseconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Note how long a block took; one that fails has no time."""
        started = time.perf_counter()
        with span(f"nornweave.{name}"):
            yield
        self._milliseconds[name] = round((time.perf_counter() - started) * 1000, 3)

    @property
    def milliseconds(self) -> MappingProxyType[str, float]:
        """Return the time of each step so far."""
        return MappingProxyType(dict(self._milliseconds))

    @property
    def total_ms(self) -> float:
        """Return the time since it was made."""
        return (time.perf_counter() - self._started) * 1000
