"""Large bodies are read, checked and answered in a process of their own (``body_process.py``).

Reading 27 MiB of JSON holds Python's lock for seconds, in a thread as well: no other request of the process would be
answered. A request comes here after its token, its host and its announced size were checked. A bounded number is
received at once; the others are not read meanwhile. The process answers one after the other with the same routes. It
starts with the first such request and ends a minute after the last.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access.door import viewer_of
from api.errors import ProblemError, unavailable
from api.server.limits import LARGE_BODIES, RETRY_BUSY_S, announced_bytes
from api.tracing import HEADER, traceparent

log = logging.getLogger(__name__)

# Smaller ones are read where they arrive: that takes less than a tenth of a second, whatever they hold.
SMALL_BODY_BYTES = 256 << 10
# Held in memory, 32 MiB each, while they arrive and wait for their turn.
RECEIVED_AT_ONCE, WAITING_TO_BE_RECEIVED = 3, 16
ANSWERED_WITHIN_S = 120.0
IDLE_S = 60.0


class BodyProcess:
    """The process that answers requests with large bodies, one after the other.

    Args:
        arguments: of ``body_process.py``.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._command = (sys.executable, "-m", "api.server.body_process", *arguments)
        self._process: Process | None = None
        self._turn = anyio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def answer(self, scope: Scope, body: bytes) -> Response:
        """Return the process's answer to a request.

        Raises:
            ProblemError: 503, it took too long or ended.
        """
        async with self._turn:
            if self._idle:
                self._idle.cancel()
            try:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    return await self._exchange(_head(scope, len(body)), body)
            except (OSError, EOFError, ValueError) as error:  # TimeoutError is an OSError
                self._end()
                is_late = isinstance(error, TimeoutError)
                reason = f"took longer than {ANSWERED_WITHIN_S:g} s" if is_late else "ended the process that reads it"
                log.error("a body of %d bytes %s", len(body), reason)
                raise unavailable("busy", f"the body {reason}", RETRY_BUSY_S) from error
            except BaseException:  # half an answer may be left in the pipe
                self._end()
                raise
            finally:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end)

    async def aclose(self) -> None:
        """End the process and wait until it is gone."""
        if self._idle:
            self._idle.cancel()
        process = self._process
        self._end()
        if process:
            await process.wait()

    def _end(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.kill()
        self._process = None

    async def _exchange(self, head: bytes, body: bytes) -> Response:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE)
        sending, receiving = self._process.stdin, self._process.stdout
        if sending is None or receiving is None:
            raise EOFError("the process has no pipes")
        sending.write(head + b"\n" + body)
        await sending.drain()
        answer = json.loads(await receiving.readline())
        return Response(await receiving.readexactly(answer["size"]), answer["status"], answer["headers"])


class LargeBodies:
    """Hands requests with large bodies to a process of their own; passes small ones on.

    Args:
        app: answers small ones.
        process: answers large ones.
        check: refuses a request by its path before its body is read; raises ``ProblemError``.
    """

    def __init__(self, app: ASGIApp, process: BodyProcess, check: Callable[[str], None] = lambda _: None) -> None:
        self._app = app
        self._process = process
        self._check = check
        self._receiving = anyio.Semaphore(RECEIVED_AT_ONCE)
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
                if len(body) > SMALL_BODY_BYTES:
                    app = await self._process.answer(scope, body)
        except ProblemError as error:
            body, app = b"", error.response()
        await app(scope, _again(body, receive), send)

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
    return announced is None or announced > SMALL_BODY_BYTES


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
