"""Limits on one client for the good of the others: the size of a body, and the work that runs and waits at once."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import ProblemError, unavailable
from nornweave.core.process import cpu_count

MAX_BODY_BYTES = 1 << 20
# Files that are handed in, three of the largest size: they are read in pieces. JSON of this size would hold Python's
# lock for seconds, in a thread as well.
MAX_FILES_BYTES = 32 << 20
# For which a client may keep us waiting while it sends a body; while we are not reading, no time passes.
BODY_WITHIN_S = 30.0
INGEST = re.compile(r"/ingest|/agents/[^/]*/ingest")
# A recall is computation: more of them at once than CPUs makes each slower and none faster. At about 15 ms each, on two
# CPUs the last of 64 that wait is served within half a second; later ones are better refused.
MAX_WAITING = 64
RETRY_BUSY_S = 1

T = TypeVar("T")


def body_limit(path: str, media_type: str) -> int:
    """Return the largest size of a request's body, in bytes."""
    has_files = INGEST.fullmatch(path) and media_type.lower().startswith("multipart/form-data")
    return MAX_FILES_BYTES if has_files else MAX_BODY_BYTES


class BodyLimit:
    """Ends a request whose body is too large or too slow, before more of it is read.

    Bodies without an announced length (chunked) are counted too.
    """

    def __init__(self, app: ASGIApp, within_s: float = BODY_WITHIN_S) -> None:
        self._app = app
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a body that is counted while it is read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = body_limit(scope["path"], Headers(scope=scope).get("content-type", ""))
        announced = announced_bytes(scope)
        read, left_s, is_complete = 0, self._within_s, False

        # Errors are raised to the reader of the body: inside the error handlers, which answer them.
        async def counted() -> Message:
            nonlocal read, left_s, is_complete
            if max(announced, read) <= limit:
                started = time.monotonic()
                try:
                    with anyio.fail_after(None if is_complete else left_s):
                        message = await receive()
                except TimeoutError:
                    late = f"the body did not arrive within {self._within_s:g} s"
                    raise ProblemError(408, late, headers={"Connection": "close"}) from None
                left_s = max(0.0, left_s - (time.monotonic() - started))
                is_complete = not message.get("more_body", False)
                read += len(message.get("body", b""))
            if max(announced, read) > limit:
                instead = "; hand larger documents in as multipart/form-data" if INGEST.fullmatch(scope["path"]) else ""
                raise ProblemError(413, f"the body is larger than the {limit} bytes that are allowed{instead}")
            return message

        await self._app(scope, counted, send)


def announced_bytes(scope: Scope) -> int:
    """Return the length of a body by its headers; 0 if they do not state one (chunked)."""
    announced = Headers(scope=scope).get("content-length", "")
    return int(announced) if announced.isdecimal() and len(announced) < 19 else 0


class Admission:
    """Lets a limited number of pieces of work run at once and another number wait, first come, first served.

    Args:
        running: how many run at once, each in a thread; one per CPU unless given.
        waiting: how many may wait for their turn; further ones are refused.
    """

    def __init__(self, running: int | None = None, waiting: int = MAX_WAITING) -> None:
        self.running = running or cpu_count()
        self.waiting = waiting
        self.admitted = 0
        self._turn = anyio.Semaphore(self.running)
        self._threads = anyio.CapacityLimiter(self.running)
        self._working: set[int] = set()

    @property
    def in_threads(self) -> int:
        """Return how many pieces of work run now, also those whose request was cancelled."""
        return len(self._working)

    async def run(self, work: Callable[[], T], wait_s: float | None = None) -> T:
        """Return the result of ``work``, which runs in a thread when its turn has come.

        Args:
            work: a function that may block.
            wait_s: how long to wait for its turn; ``None`` sets no limit.

        Raises:
            ProblemError: 503, too many wait already, or its turn did not come in time.
        """
        if self.admitted >= self.running + self.waiting:
            raise unavailable("busy", f"{self.waiting} requests wait already", RETRY_BUSY_S)
        if self.in_threads >= 2 * self.running:
            detail = f"{self.in_threads} requests, cancelled ones among them, run already"
            raise unavailable("busy", detail, RETRY_BUSY_S)
        self.admitted += 1
        try:
            await self._wait_for_turn(wait_s)
            try:
                # Abandoned when cancelled: by a shutdown, whose deadline must hold, and by clients that no longer want
                # the answer. The place is free at once, so up to as many again may still be ending.
                return await anyio.to_thread.run_sync(self._noting, work, abandon_on_cancel=True, limiter=self._threads)
            finally:
                self._turn.release()
        finally:
            self.admitted -= 1

    def _noting(self, work: Callable[[], T]) -> T:
        thread = threading.get_ident()
        self._working.add(thread)
        try:
            return work()
        finally:
            self._working.discard(thread)

    async def _wait_for_turn(self, wait_s: float | None) -> None:
        try:
            self._turn.acquire_nowait()  # a free place needs no time, however little there is
        except anyio.WouldBlock:
            try:
                with anyio.fail_after(wait_s):
                    await self._turn.acquire()
            except TimeoutError:
                raise unavailable("busy", "its turn did not come within its timeout_ms", RETRY_BUSY_S) from None
