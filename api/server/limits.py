"""Limits on one client for the good of the others: the size of a body, and the work that runs and waits at once.

Of the connections of one process their number, the size of a head, and the time that a client may take are limited. h11
reads the requests, because it limits what it reads (``docs/decisions/0016-http-server.md``). All of that happens before
a client is authenticated.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import resource
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TypeVar, cast

import anyio
import anyio.to_thread
import h11
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.errors import MEDIA_TYPE, RETRY_SOON_S, ProblemError, problem_response, unavailable
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

# The request line and all headers of one request.
MAX_HEADER_BYTES = 32 << 10
MAX_HEADERS = 100
# A request line and headers arrive within this time, counted from the connection or from the answer before.
HEADERS_WITHIN_S = 10.0
# Between requests on one connection.
KEEP_ALIVE_S = 5
# For a client that does not read its answer.
READ_WITHIN_S = 30.0
MAX_CONNECTIONS = 512
# Beyond MAX_CONNECTIONS: on these `/health` is answered, and everything else with 503.
RESERVED_CONNECTIONS = 16


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


def connection_limit() -> int:
    """Return how many connections this process accepts: half of its file descriptors. The rest is for files."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if descriptors < 0 else max(1, min(MAX_CONNECTIONS, descriptors // 2 - RESERVED_CONNECTIONS))


class Connection(H11Protocol):
    """One HTTP connection. It knows how long it has waited for its client, and ends others to make room for itself."""

    _idle_since = 0.0
    _unread_since: float | None = None
    _is_reserved = False
    network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, and start to wait for a request.

        If there are too many connections, the one that has waited longest for its client is ended. So a client that
        opens many and sends nothing loses its own. A few connections are reserved for ``/health``. One address gets
        half of all connections.
        """
        super().connection_made(transport)
        self.app = self._answer
        self._idle_since = time.monotonic()
        self.network = network_of(self.client[0]) if self.client else ""
        limit, others = connection_limit(), cast("set[Connection]", self.connections - {self})
        neighbours = [other for other in others if other.network == self.network]
        if len(neighbours) >= max(1, limit // 2) and _end_longest_waiting(neighbours):
            return
        if len(others) >= limit and not _end_longest_waiting(others):
            self._is_reserved = True
            if len(others) >= limit + RESERVED_CONNECTIONS:
                self.end()

    def data_received(self, data: bytes) -> None:
        """Read in pieces, because h11 checks its limit only after it has parsed all of its input."""
        while data and not self.transport.is_closing():
            size = MAX_HEADER_BYTES if self.conn.their_state is h11.IDLE else len(data)
            super().data_received(data[:size])
            data = data[size:]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app. Refuse too many headers; on a reserved connection refuse all paths but ``/health``."""
        app = cast(ASGIApp, self.config.loaded_app)
        if len(scope["headers"]) > MAX_HEADERS:
            app = problem_response(431, f"{len(scope['headers'])} headers; allowed are {MAX_HEADERS}")
        elif self._is_reserved and scope["path"] != "/health":
            headers = {"Retry-After": str(RETRY_SOON_S), "Connection": "close"}
            app = problem_response(503, "too many connections are open", kind="busy", headers=headers)
        elif {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # A proxy may have taken the other of the two (RFC 9112, 6.3).
            detail = "a request has a Content-Length or a Transfer-Encoding, not both"
            app = problem_response(400, detail, headers={"Connection": "close"})
        await app(scope, receive, send)

    def on_response_complete(self) -> None:
        """Start to wait for the next request."""
        self._idle_since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start to wait until the client reads."""
        self._unread_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Stop waiting for the client to read."""
        self._unread_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request, or one whose headers are too large, with a problem document."""
        is_large = len(self.conn.trailing_data[0]) > MAX_HEADER_BYTES
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_large else HTTPStatus.BAD_REQUEST
        detail = f"the headers are larger than the {MAX_HEADER_BYTES} bytes that are allowed" if is_large else msg
        problem = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
        body = json.dumps(problem).encode()
        headers = [("content-type", MEDIA_TYPE), ("content-length", str(len(body))), ("connection", "close")]
        response = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        try:
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # in the middle of another answer
            pass
        self.transport.close()

    @property
    def waits_since(self) -> float | None:
        """Return since when we wait for the client to send or to read; ``None`` while the client waits for us."""
        if self._unread_since is not None:
            return self._unread_since
        is_sending = self._is_busy and self.cycle.more_body and not self.flow.read_paused
        return self._idle_since if is_sending or not self._is_busy else None

    def is_overdue(self, now: float) -> bool:
        """Tell whether the client has used up its time. ``limits.BodyLimit`` limits the time for a body."""
        if self._unread_since is not None:
            return now - self._unread_since > READ_WITHIN_S
        return not self._is_busy and now - self._idle_since > HEADERS_WITHIN_S

    def end(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def end_overdue(connections: Iterable[Connection]) -> None:
    """End the connections of clients that have used up their time."""
    now = time.monotonic()
    for connection in [each for each in connections if each.is_overdue(now)]:
        connection.end()


def _end_longest_waiting(connections: Iterable[Connection]) -> bool:
    """End the connection that has waited longest for its client; return whether there was one."""
    waiting = [(since, id(each), each) for each in connections if (since := each.waits_since) is not None]
    if waiting:
        min(waiting)[-1].end()
    return bool(waiting)


def network_of(address: str) -> str:
    """Return the network that counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address."""
    if ":" not in address:
        return address
    mapped = ipaddress.IPv6Address(address.partition("%")[0])
    return str(mapped.ipv4_mapped or ipaddress.IPv6Network((int(mapped) >> 64 << 64, 64)))
