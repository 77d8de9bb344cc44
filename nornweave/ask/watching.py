"""A thread that looks again and again at what was published, whatever goes wrong meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)

# How often the pointers are looked at: a publication answers within this many seconds.
REFRESH_S = 0.5
Steps = Callable[[], Iterable[tuple[str, Callable[[], None]]]]
"""Returns what is looked at in one round: name and work."""


class Watch:
    """Runs steps in rounds. A failure is logged once until it is over: a thread that ends would never be replaced."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._stopping = threading.Event()
        self._problems: dict[str, str] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="watch-generations", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End after the step that is under way."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(REFRESH_S):
            for name, step in self._steps():
                self._try(name, step)

    def _try(self, name: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # no file descriptors left, as a rule
            if self._problems.get(name) != str(error):
                log.exception("%s: what was published cannot be looked at; it is tried again", name)
            self._problems[name] = str(error)
        else:
            self._problems.pop(name, None)
