"""Wrong tokens: who sends many of them waits, and nobody else does."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from nornweave.core.access.tokens import hash_of

K = TypeVar("K")
V = TypeVar("V")

MAX_FAILURES = 30
"""Wrong tokens of one address within ``WINDOW_S``; the next one is not compared."""
WINDOW_S = 60.0
MAX_ADDRESSES = 10_000
MAX_ACCEPTED = 1_000


class Attempts:
    """Counts the wrong tokens of each address; every method may be called from any thread.

    People behind one proxy share its address. So a token that was right a moment ago is always compared, however many
    wrong ones its address sends. Each serving process counts for itself.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._accepted: OrderedDict[str, None] = OrderedDict()

    def may_try(self, address: str, token: str) -> bool:
        """Tell whether a token is compared."""
        with self._lock:
            failures = self._failures.get(address, ())
            since = self._now() - WINDOW_S
            recent = sum(at > since for at in failures)
            return recent < MAX_FAILURES or hash_of(token) in self._accepted

    def note(self, address: str, token: str, *, is_right: bool) -> None:
        """Remember how it went; of addresses and right tokens the latest."""
        with self._lock:
            if is_right:
                _push(self._accepted, hash_of(token), None, MAX_ACCEPTED)
            else:
                failures = self._failures.pop(address, None) or deque(maxlen=MAX_FAILURES)
                failures.append(self._now())
                _push(self._failures, address, failures, MAX_ADDRESSES)


def _push(kept: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > limit:
        kept.popitem(last=False)
