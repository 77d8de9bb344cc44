"""Call a language model through LiteLLM, with calls that can be cancelled.

Calls run on an event loop in its own thread. Only there can a call be cancelled whose server sends headers and then
nothing, or one byte now and then. LiteLLM (1.106) ties its clients to the loop that made them, so a process has one
loop for its whole life.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from nornweave.models.runtimes import import_litellm

T = TypeVar("T")

END_S = 1.0
"""What calls may take to end when the process does."""


class Runtime:
    """LiteLLM and its event loop, created once per process on first use."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loading: Future[Any] | None = None

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(self._loop,), name="synthesis", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.run_forever()
        loop.close()
        self._ended.set()

    def end(self) -> None:
        """Cancel all calls: a thread that wakes up during interpreter shutdown can hang the process."""
        self.start(_break_off())
        self._ended.wait(END_S)

    def litellm(self) -> Future[Any]:
        """Return a future of the LiteLLM module; importing it takes seconds."""
        with self._lock:
            if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
                self._loading = self.start(_load_litellm())
            return self._loading


async def _load_litellm() -> Any:
    litellm = import_litellm()
    # Its own transport keeps sessions that complain when the process ends before they are closed.
    litellm.disable_aiohttp_transport = True
    atexit.register(RUNTIME.end)
    return litellm


async def _break_off() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_S / 2)
    asyncio.get_running_loop().stop()


RUNTIME = Runtime()
