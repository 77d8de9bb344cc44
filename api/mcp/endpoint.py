"""``/mcp``: the protocol over HTTP; one request, one JSON answer, nothing remembered: any process can answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from api.access.door import viewer_of
from api.errors import ProblemError
from api.limits import MAX_BODY_BYTES
from api.links import page_links
from api.mcp.server import protocol_server
from api.state import Service, Serving
from nornweave.retrieval.question import Deadline
from nornweave.views.tools import Link

PATH = "/mcp"
# The API checks the host, the token and the size of every request (`hosts.py`, `auth.py`, `limits.py`): a second check
# with rules of its own answered 421 to whom the first one let pass.
CHECKED_ALREADY = TransportSecuritySettings(enable_dns_rebinding_protection=False)


class ProtocolEndpoint:
    """Answers requests to ``/mcp`` while ``run`` runs; an ASGI app."""

    def __init__(self, server: Server[dict[str, Any]]) -> None:
        self._server = server
        self._sessions: StreamableHTTPSessionManager | None = None

    def route(self) -> Route:
        """Return the route. Streams and sessions, which other methods are for, do not exist here: they are a 405."""
        return Route(PATH, endpoint=self, methods=["POST"], include_in_schema=False)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer requests, until the context ends."""
        ready, ending = asyncio.Event(), asyncio.Event()
        # A task of its own: the SDK has to end in the task that it began in, and a lifespan may end in another one.
        task = asyncio.create_task(self._answer(ready, ending))
        try:
            await ready.wait()
            yield
        finally:
            ending.set()
            await task

    async def _answer(self, ready: asyncio.Event, ending: asyncio.Event) -> None:
        sessions = StreamableHTTPSessionManager(
            self._server,
            # Everything is there when an answer begins: a stream would keep a connection and say no more.
            json_response=True,
            stateless=True,
            security_settings=CHECKED_ALREADY,
            max_request_body_size=MAX_BODY_BYTES,
        )
        async with sessions.run():
            self._sessions = sessions
            ready.set()
            await ending.wait()
            self._sessions = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a client that hangs up ends what is done for it."""
        if self._sessions is None:
            raise RuntimeError("the endpoint answers only while it runs")
        kind = Headers(scope=scope).get("content-type", "nothing")
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise ProblemError(415, f"send the message as content-type application/json, found {kind[:64]}")
        body = await _body(receive)
        if body is None:
            return
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
            await self._sessions.handle_request(scope, replayed, send)
            tasks.cancel_scope.cancel()


def tool_endpoint(service: Service, filters: str = "") -> ProtocolEndpoint:
    """Return the endpoint over what is served: each call gets what its own request may see."""

    async def served(request: Request, _: Deadline) -> Serving:
        return service.seen_by(viewer_of(request.scope))

    def link(request: Request) -> Link:
        return page_links(service.public_url, request)

    return ProtocolEndpoint(protocol_server(service.domains, served, link, service.timeout_ms, filters))


async def _body(receive: Receive) -> bytes | None:
    """Read a body whole; ``None`` if the client hangs up before its end."""
    pieces: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)
    return None
