"""Connections of one process: how many, what their headers may cost, how long a client may keep us waiting.

h11 reads the requests since it bounds what it reads (``docs/decisions/0016-http-server.md``). Everything here happens
before anybody is authenticated.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections.abc import Callable, Collection, Iterable
from http import HTTPStatus

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.errors import MEDIA_TYPE, RETRY_SOON_S, problem_response

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# The request line and all headers of one request.
MAX_HEADER_BYTES = 32 << 10
MAX_HEADERS = 100
# A request line and headers arrive within this time, counted from the connection or from the answer before.
HEADERS_WITHIN_S = 10.0
# Between requests on one connection.
KEEP_ALIVE_S = 5
# A client that does not read what it asked for.
READ_WITHIN_S = 30.0
MAX_CONNECTIONS = 512
# Beyond MAX_CONNECTIONS: on these `/health` is answered, and everything else with 503.
RESERVED_CONNECTIONS = 16


def connection_limit() -> int:
    """Return how many connections this process takes: half of its file descriptors, the others are for files."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource else MAX_CONNECTIONS * 2
    return MAX_CONNECTIONS if descriptors < 0 else max(1, min(MAX_CONNECTIONS, descriptors // 2 - RESERVED_CONNECTIONS))


class Connection(H11Protocol):
    """One HTTP connection; it knows since when it waits for its client."""

    _idle_since = 0.0
    _unread_since: float | None = None
    network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        self.network = network_of(self.client[0]) if self.client else ""

    def data_received(self, data: bytes) -> None:
        """Read; in pieces, since h11 holds its limit against what it has not read, after it has read all it can."""
        while data and not self.transport.is_closing():
            size = MAX_HEADER_BYTES if self.conn.their_state is h11.IDLE else len(data)
            super().data_received(data[:size])
            data = data[size:]

    def on_response_complete(self) -> None:
        """Start to wait for the next request."""
        self._idle_since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start to wait until the client reads."""
        self._unread_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on writing."""
        self._unread_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not a request, or one with too large headers, with a problem document."""
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
    def is_busy(self) -> bool:
        """Tell whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waits_since(self) -> float | None:
        """Return since when the client has been expected to send or to read; ``None`` while it waits for us."""
        if self._unread_since is not None:
            return self._unread_since
        is_sending = self.is_busy and self.cycle.more_body and not self.flow.read_paused
        return self._idle_since if is_sending or not self.is_busy else None

    def is_overdue(self, now: float) -> bool:
        """Tell whether the client has had its time; how long a body may take, ``limits.BodyLimit`` says."""
        if self._unread_since is not None:
            return now - self._unread_since > READ_WITHIN_S
        return not self.is_busy and now - self._idle_since > HEADERS_WITHIN_S


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the 64 bits that one household or server has."""
    if ":" not in address:
        return address
    mapped = ipaddress.IPv6Address(address.partition("%")[0])
    return str(mapped.ipv4_mapped or ipaddress.IPv6Network((int(mapped) >> 64 << 64, 64)))


class ConnectionLimit:
    """Makes room for new connections at the cost of those whose clients keep us waiting, the longest first.

    So a client that opens connections and sends nothing ends its own, and ``/health`` is answered meanwhile. One
    address gets half of all connections.

    Args:
        connections: those that are open; what is ended here is taken out.
        most: in all, besides the reserved ones.
    """

    def __init__(self, connections: set[Connection], most: int) -> None:
        self._connections = connections
        self.most = most

    @property
    def is_exceeded(self) -> bool:
        """Tell whether reserved connections are in use."""
        return len(self._connections) > self.most

    def admits(self, address: str) -> bool:
        """Tell whether a connection from an address is to be taken; another one may be ended for it."""
        network = network_of(address)
        same = [connection for connection in self._connections if connection.network == network]
        if len(same) >= max(1, self.most // 2) and self._end_one(same):
            return True
        if len(self._connections) < self.most or self._end_one(self._connections):
            return True
        return len(self._connections) < self.most + RESERVED_CONNECTIONS

    def sweep(self) -> None:
        """End the connections of clients that have had their time."""
        now = time.monotonic()
        for connection in [one for one in self._connections if one.is_overdue(now)]:
            self._end(connection)

    def _end_one(self, candidates: Iterable[Connection]) -> bool:
        waiting = [(since, id(one), one) for one in candidates if (since := one.waits_since) is not None]
        if waiting:
            self._end(min(waiting)[-1])
        return bool(waiting)

    def _end(self, connection: Connection) -> None:
        self._connections.discard(connection)
        connection.transport.abort()


class RequestGuard:
    """Answers 431 to requests with too many headers, and 503 on reserved connections to all but ``open_paths``."""

    def __init__(self, app: ASGIApp, is_full: Callable[[], bool], open_paths: Collection[str]) -> None:
        self._app = app
        self._is_full = is_full
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        refusal = None
        if scope["type"] == "http":
            if len(scope["headers"]) > MAX_HEADERS:
                refusal = problem_response(431, f"{len(scope['headers'])} headers; allowed are {MAX_HEADERS}")
            elif self._is_full() and scope["path"] not in self._open_paths:
                headers = {"Retry-After": str(RETRY_SOON_S), "Connection": "close"}
                refusal = problem_response(503, "too many connections are open", kind="busy", headers=headers)
        await (refusal or self._app)(scope, receive, send)
