"""Large bodies are read, checked and answered in a process of their own each (``body_process.py``).

Reading 27 MiB of JSON holds Python's lock for seconds, in a thread as well: no other request of the process would be
answered. A request comes here after its token, its host and its announced size were checked. A bounded number is
received at once; the others are not read meanwhile. One is answered after the other, with the same routes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access.door import viewer_of
from api.errors import ProblemError, unavailable
from api.server.limits import LARGE_BODIES, MAX_BODY_BYTES, RETRY_BUSY_S, announced_bytes
from api.tracing import HEADER, traceparent

log = logging.getLogger(__name__)

# Held in memory, 32 MiB each, while they arrive and wait for their turn.
RECEIVED_AT_ONCE, WAITING_TO_BE_RECEIVED = 3, 16
ANSWERED_WITHIN_S = 120.0


class LargeBodies:
    """Hands requests with large bodies to processes of their own; passes small ones on.

    Args:
        app: answers small ones: reading one takes a few tenths of a second at most, whatever it holds.
        arguments: of ``body_process.py``.
        check: refuses a request by its path before its body is read; raises ``ProblemError``.
    """

    def __init__(self, app: ASGIApp, arguments: Sequence[str], check: Callable[[str], None] = lambda _: None) -> None:
        self._app = app
        self._command = (sys.executable, "-m", "api.server.body_process", *arguments)
        self._check = check
        self._receiving = anyio.Semaphore(RECEIVED_AT_ONCE)
        self._turn = anyio.Lock()
        self._admitted = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with a large body, or pass it on."""
        if not _may_be_large(scope):
            await self._app(scope, receive, send)
            return
        app = self._app
        try:
            self._check(scope["path"])
            async with self._place():
                body = await _read(receive)
                if len(body) > MAX_BODY_BYTES:
                    app = await self._answer(scope, body)
        except ProblemError as error:
            body, app = b"", error.response()
        await app(scope, _again(body, receive), send)

    async def _answer(self, scope: Scope, body: bytes) -> Response:
        """Return the answer of a process to a request.

        Raises:
            ProblemError: 503, it took too long or ended.
        """
        async with self._turn:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE)
            try:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    said, _ = await process.communicate(_head(scope, len(body)) + b"\n" + body)
                head, _, content = said.partition(b"\n")
                answer = json.loads(head)
                return Response(content, answer["status"], answer["headers"])
            # TimeoutError is an OSError; uvloop raises RuntimeError where the process ended before it was written to.
            except (OSError, ValueError, RuntimeError) as error:
                is_late = isinstance(error, TimeoutError)
                reason = f"took longer than {ANSWERED_WITHIN_S:g} s" if is_late else "ended the process that reads it"
                log.error("a body of %d bytes %s", len(body), reason)
                raise unavailable("busy", f"the body {reason}", RETRY_BUSY_S) from error
            finally:
                if process.returncode is None:
                    process.kill()

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Wait until few enough bodies are being received.

        Raises:
            ProblemError: 503, too many wait already.
        """
        if self._admitted >= RECEIVED_AT_ONCE + WAITING_TO_BE_RECEIVED:
            raise unavailable("busy", f"{WAITING_TO_BE_RECEIVED} large requests wait already", RETRY_BUSY_S)
        self._admitted += 1
        try:
            async with self._receiving:
                yield
        finally:
            self._admitted -= 1


def _may_be_large(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "POST" or not LARGE_BODIES.fullmatch(scope["path"]):
        return False
    announced = announced_bytes(scope)
    return announced is None or announced > MAX_BODY_BYTES


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)
    raise ProblemError(400, "the body ended before it was complete")


def _head(scope: Scope, size: int) -> bytes:
    """Return a line with what the process needs to know of a request, besides its body."""
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"] if name != HEADER]
    headers.append((HEADER.decode("latin-1"), traceparent()))
    request = {"method": scope["method"], "path": scope["path"], "headers": headers, "size": size}
    return to_json({**request, "viewer": viewer_of(scope)})


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a body that was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
