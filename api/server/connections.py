"""Limits on the connections of one process: their number, the size of a head, and the time that a client may take.

h11 reads the requests, because it limits what it reads (``docs/decisions/0016-http-server.md``). Everything here
happens before a client is authenticated.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import resource
import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import cast

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.errors import MEDIA_TYPE, RETRY_SOON_S, problem_response

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
