"""Threads for several agents at once: quick agents take turns in one thread."""

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

AgentKey: TypeAlias = Domain | tuple[Domain, str]
"""An agent of this process by its domain, one elsewhere by its name as well."""
P = TypeVar("P", bound=AgentKey)
T = TypeVar("T")


class Lanes:
    """Runs the work of several agents. Every method may be called from any thread.

    Local agents compute, and only one thread of an interpreter computes at a time, so parallel threads would hand the
    lock to each other thousands of times a second. Therefore the agents of a question take turns in one of a few
    threads, which all questions share. If an agent keeps the next agents waiting, a thread of the next agent goes on
    with them, and the shared threads are replaced. From then on the slow agent has threads of its own, until it is
    quick again. So an agent that hangs holds only its own threads. Remote agents always have their own threads and must
    not slow a question down. When all local agents have ended (without local agents, half of the remote ones), the
    remaining agents have ``budget_s`` left.
    """

    def __init__(
        self, threads: Callable[[AgentKey], Executor], shared: Callable[[], Executor], budget_s: float = math.inf
    ) -> None:
        """Store the functions that return an agent's own threads and that make the shared threads, and the budget."""
        self.budget_s = budget_s
        self._threads = threads
        self._make_shared = shared
        self._shared = shared()
        self._replaced = 0
        self._slow: set[AgentKey] = set()

    def close(self) -> None:
        """Let the running questions end."""
        self._shared.shutdown(wait=True)

    def run(self, tasks: Mapping[P, Callable[[], T]], timeout_s: float | None = None) -> dict[P, Future[T]]:
        """Run tasks of some agents until all have ended or ``timeout_s`` is over; ``None`` is no limit.

        Return their futures, in the order of ``tasks``. A future may still be running.
        """
        futures: dict[P, Future[T]] = {place: Future() for place in tasks}
        quorum = _Quorum(futures)
        quick = [place for place in tasks if self._is_quick(place)]
        replaced, line = self._replaced, deque(quick)
        for place in tasks:
            if place not in line:
                self._start(self._threads(place), deque([place]), tasks, futures)
        if line:
            self._start(self._shared, line, tasks, futures)
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        patience = PATIENCE_S if timeout_s is None else min(PATIENCE_S, timeout_s / 4)
        ended = 0
        while True:
            left = max(0.0, min(until, quorum.at + self.budget_s) - time.monotonic())
            done, waiting = wait(futures.values(), min(left, patience))
            is_stuck = len(done) == ended and any(futures[place].running() for place in quick)
            if waiting and (is_stuck or left <= patience):
                self._slow.update(place for place in tasks if futures[place].running())
            if not waiting or left <= patience:
                return futures
            if is_stuck and self._replaced == replaced:
                self._shared, self._replaced = self._make_shared(), replaced + 1
            if len(done) == ended and self._replaced > replaced:
                for first in tuple(line)[:1]:
                    self._start(self._threads(first), line, tasks, futures)
            ended = len(done)

    def _is_quick(self, place: AgentKey) -> bool:
        return isinstance(place, Domain) and place not in self._slow

    def _start(
        self, executor: Executor, line: deque[P], tasks: Mapping[P, Callable[[], T]], futures: Mapping[P, Future[T]]
    ) -> None:
        """Let a thread work through a queue of agents, in a copy of the context, so that logs have the trace id."""
        executor.submit(copy_context().run, self._work, line, tasks, futures)

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


class _Quorum:
    """Notes in ``at`` the time when all local agents had ended or, without local agents, half of the remote ones."""

    def __init__(self, futures: Mapping[P, Future[T]]) -> None:
        self.at = math.inf
        self._here = [future for place, future in futures.items() if isinstance(place, Domain)]
        self._all = tuple(futures.values())
        for future in self._all:
            future.add_done_callback(self._note)

    def _note(self, _: Future[T]) -> None:
        ended = sum(future.done() for future in self._here or self._all)
        if self.at == math.inf and (ended == len(self._here) if self._here else 2 * ended >= len(self._all)):
            self.at = time.monotonic()
