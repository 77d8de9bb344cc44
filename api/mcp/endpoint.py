"""``/mcp``: the protocol over HTTP. Each request gets one JSON answer; there is no state, so any process can answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from api.access.door import viewer_of
from api.errors import ProblemError
from api.pages.addresses import page_links
from api.server.limits import MAX_BODY_BYTES
from api.state import Service, Serving
from nornweave.ask.search.question import Deadline
from nornweave.ask.views.tools import Link
from nornweave.config import USUAL_FILTERS, Settings
from nornweave.core.types import Domain

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"


class ProtocolEndpoint:
    """Answers requests to ``/mcp`` while ``run`` runs; an ASGI app.

    The SDK is loaded with the first request, because loading it takes a second, a quarter of the API's start.
    """

    def __init__(self, load: Callable[[], StreamableHTTPSessionManager]) -> None:
        self._load = load
        self._first = asyncio.Lock()
        self._sessions: StreamableHTTPSessionManager | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Event | None = None

    def route(self) -> Route:
        """Return the route, for POST alone. Other methods get a 405, because there are no streams and no sessions."""
        return Route(PATH, endpoint=self, methods=["POST"], include_in_schema=False)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer requests until the context ends."""
        self._first, self._ending = asyncio.Lock(), asyncio.Event()
        try:
            yield
        finally:
            async with self._first:
                self._ending.set()
                self._ending = None
            if self._task:
                await self._task
                self._task = None

    async def _started(self) -> StreamableHTTPSessionManager:
        """Return the session manager. The first request loads it."""
        async with self._first:
            if self._ending is None:
                raise RuntimeError("the endpoint answers only while it runs")
            if self._sessions:
                return self._sessions
            with anyio.CancelScope(shield=True):
                sessions, ready = await anyio.to_thread.run_sync(self._load), asyncio.Event()
                # A task of its own: the SDK has to end in the task that it began in; a lifespan may end in another one.
                self._task = asyncio.create_task(self._answer(sessions, ready, self._ending))
                await ready.wait()
                self._sessions = sessions
            return sessions

    async def _answer(
        self, sessions: StreamableHTTPSessionManager, ready: asyncio.Event, ending: asyncio.Event
    ) -> None:
        async with sessions.run():
            ready.set()
            await ending.wait()
            self._sessions = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. If the client disconnects, the work for it ends."""
        kind = Headers(scope=scope).get("content-type", "nothing")
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise ProblemError(415, f"send the message as content-type application/json, found {kind[:64]}")
        body = await _body(receive)
        if body is None:
            return
        sessions = await self._started()
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return messages.pop() if messages else await receive()

        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                # Nothing but the end of the connection can come after the body.
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            await sessions.handle_request(scope, replayed, send)
            tasks.cancel_scope.cancel()


def tool_endpoint(service: Service, filters: str = "") -> ProtocolEndpoint:
    """Return the endpoint over a service. Each call is answered for the viewer of its request."""

    async def served(request: Request, _: Deadline) -> Serving:
        return service.seen_by(viewer_of(request.scope))

    def link(request: Request) -> Link:
        return page_links(service.public_url, request)

    def load() -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from api.mcp.server import protocol_server

        return StreamableHTTPSessionManager(
            protocol_server(service.domains, served, link, service.timeout_ms, filters),
            # Everything is there when an answer begins: a stream would keep a connection and say no more.
            json_response=True,
            stateless=True,
            # The API checks the host, the token and the size of every request (`access/`, `server/limits.py`): a
            # second check with rules of its own answered 421 to whom the first one let pass.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY_BYTES,
        )

    return ProtocolEndpoint(load)


def own_filters(settings: Settings, domains: Sequence[Domain]) -> str:
    """Return a text that names the team's own filters by domain; empty if there are none."""
    usual = {each.key for each in USUAL_FILTERS}
    named = {
        domain.value: [
            f"{each.key} ({each.type})"
            for each in settings.domains[domain].filters
            if each.is_declared and each.key not in usual
        ]
        for domain in domains
    }
    return "; ".join(f"{domain}: {', '.join(filters)}" for domain, filters in named.items() if filters)


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body; ``None`` if the client disconnects before its end."""
    pieces: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)
    return None
