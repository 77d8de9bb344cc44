"""Threads for several agents at once: those that are quick take turns in one."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, wait
from contextvars import copy_context
from typing import TypeAlias, TypeVar

from nornweave.core.types import Domain

PATIENCE_S = 0.25
"""An agent that keeps the next ones waiting for longer is slow. Searching a million chunks takes a tenth of it."""

Place: TypeAlias = Domain | tuple[Domain, str]
"""An agent of this process by its domain, one elsewhere by its name as well."""
P = TypeVar("P", bound=Place)
T = TypeVar("T")


class Lanes:
    """Runs the work of several agents; every method may be called from any thread.

    Agents of this process compute, and one thread of an interpreter computes at a time: four threads that answer one
    question take a quarter longer than one, because they hand the interpreter to each other hundreds of times. So they
    take turns. If one keeps the others waiting, another thread goes on with the next, and from then on the slow one has
    threads of its own, until it is quick again: an agent that hangs holds only its own threads. Agents elsewhere always
    have their own.
    """

    def __init__(self, threads: Callable[[Place], Executor]) -> None:
        """Store what returns the threads of an agent."""
        self._threads = threads
        self._slow: set[Place] = set()

    def run(self, tasks: Mapping[P, Callable[[], T]], timeout_s: float | None = None) -> dict[P, Future[T]]:
        """Run the tasks of some agents; return when all have ended or the time is over, in their order."""
        futures: dict[P, Future[T]] = {place: Future() for place in tasks}
        quick = [place for place in tasks if isinstance(place, Domain) and place not in self._slow]
        line: deque[P] = deque(quick)

        def start(places: deque[P]) -> None:
            """Let a thread of the first one's work for all of them."""
            for first in tuple(places)[:1]:
                # In a copy of the context: what is logged in another thread is still of this request.
                self._threads(first).submit(copy_context().run, self._work, places, tasks, futures)

        for place in tasks:
            if place not in quick:
                start(deque([place]))
        start(line)
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        patience = PATIENCE_S if timeout_s is None else min(PATIENCE_S, timeout_s / 4)
        ended = 0
        while True:
            left = max(0.0, until - time.monotonic())
            done, waiting = wait(futures.values(), min(left, patience))
            is_over = not waiting or left <= patience
            if waiting and (is_over or len(done) == ended):
                self._slow.update(place for place, future in futures.items() if future.running())
            if is_over:
                return futures
            if len(done) == ended:
                start(line)
            ended = len(done)

    def _work(self, line: deque[P], tasks: Mapping[P, Callable[[], T]], futures: Mapping[P, Future[T]]) -> None:
        while line:
            try:
                place = line.popleft()
            except IndexError:  # another thread took the last one
                return
            if not futures[place].set_running_or_notify_cancel():
                continue
            started = time.monotonic()
            try:
                futures[place].set_result(tasks[place]())
            except BaseException as error:
                futures[place].set_exception(error)
            if time.monotonic() - started < PATIENCE_S:
                self._slow.discard(place)
