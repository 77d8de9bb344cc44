"""Count the requests, errors and latencies of an agent."""

from __future__ import annotations

import threading
from collections import deque
from statistics import quantiles

from nornweave.core.types import JsonValue

# Enough for a stable 95th percentile, recent enough to show a change.
_LATENCIES = 1000


class Statistics:
    """Counts requests; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._failures = 0
        self._searched = 0
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)

    def answered(self, latency_ms: float, searched: int) -> None:
        """Count an answer."""
        with self._lock:
            self._requests += 1
            self._searched += searched
            self._latencies.append(latency_ms)

    def failed(self) -> None:
        """Count a request without an answer."""
        with self._lock:
            self._requests += 1
            self._failures += 1

    def as_json(self) -> dict[str, JsonValue]:
        """Return totals, and percentiles of the last 1,000 latencies in milliseconds."""
        with self._lock:
            latencies = sorted(self._latencies)
            totals: dict[str, JsonValue] = {
                "requests": self._requests,
                "failures": self._failures,
                "total_searched": self._searched,
            }
        if len(latencies) < 2:
            return {**totals, "latency_ms": {"p50": latencies[0], "p95": latencies[0]} if latencies else None}
        cuts = quantiles(latencies, n=20, method="inclusive")
        return {**totals, "latency_ms": {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2)}}
