"""Large bodies are read, checked and answered in a process of their own.

Reading 27 MiB of JSON holds Python's lock for seconds, in a thread as well: nothing else of the process would answer.
A request comes here after its token, its host and its announced size were checked; a bounded number is received at once
and the others are not read meanwhile. The process answers one after the other with the same routes, starts with the
first such request and ends a minute after the last.
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
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access.door import viewer_of
from api.errors import ProblemError, problem_response, unavailable
from api.limits import LARGE_BODIES, RETRY_BUSY_S, announced_bytes
from api.tracing import HEADER, traceparent

log = logging.getLogger(__name__)

# Smaller ones are read where they arrive: that takes less than a tenth of a second, whatever they hold.
SMALL_BODY_BYTES = 256 << 10
# Held in memory, 32 MiB each, while they arrive and wait for their turn.
RECEIVED_AT_ONCE, WAITING_TO_BE_RECEIVED = 3, 16
ANSWERED_WITHIN_S = 120.0
IDLE_S = 60.0
PIECE_BYTES = 1 << 18


class BodyProcess:
    """The process that answers requests with large bodies, one after the other; it starts when it is needed."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Store how it is started.

        Args:
            arguments: of ``body_process.py``.
        """
        self._command = (sys.executable, "-m", "api.body_process", *arguments)
        self._process: Process | None = None
        self._turn = anyio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def answer(self, request: dict[str, object], body: bytes) -> Response:
        """Return the process's answer to a request.

        Raises:
            ProblemError: 503, it took too long or ended.
        """
        async with self._turn:
            if self._idle:
                self._idle.cancel()
            try:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    return await self._exchange(request, body)
            except (OSError, EOFError, ValueError) as error:  # TimeoutError is an OSError
                self.end()
                late = isinstance(error, TimeoutError)
                said = f"took longer than {ANSWERED_WITHIN_S:g} s" if late else "ended the process that reads it"
                log.error("a body of %d bytes %s", len(body), said)
                raise unavailable("busy", f"the body {said}", RETRY_BUSY_S) from error
            except BaseException:  # half an answer may be left in the pipe
                self.end()
                raise
            finally:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self.end)

    def end(self) -> None:
        """End the process, if it runs."""
        if self._process and self._process.returncode is None:
            self._process.kill()
        self._process = None

    async def aclose(self) -> None:
        """End the process and wait until it is gone."""
        if self._idle:
            self._idle.cancel()
        process = self._process
        self.end()
        if process:
            await process.wait()

    async def _exchange(self, request: dict[str, object], body: bytes) -> Response:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE)
        sending, receiving = self._process.stdin, self._process.stdout
        if sending is None or receiving is None:
            raise EOFError("the process has no pipes")
        sending.write(json.dumps({**request, "size": len(body)}).encode() + b"\n")
        for start in range(0, len(body), PIECE_BYTES):
            sending.write(body[start : start + PIECE_BYTES])
            await sending.drain()
        head = json.loads(await receiving.readline())
        return Response(await receiving.readexactly(head["size"]), head["status"], dict(head["headers"]))


class LargeBodies:
    """Hands requests with large bodies to a process of their own; small ones are passed on."""

    def __init__(self, app: ASGIApp, process: BodyProcess, check: Callable[[str], None] | None = None) -> None:
        """Store what it works with.

        Args:
            app: takes what is passed on.
            process: answers the rest.
            check: refuses a request by its path before its body is read; raises ``ProblemError``.
        """
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
        try:
            if self._check:
                self._check(scope["path"])
            async with self._place():
                body = await _read(receive)
                if len(body) > SMALL_BODY_BYTES:
                    response = await self._process.answer(_described(scope), body)
                    await response(scope, receive, send)
                    return
        except ProblemError as error:
            refusal = problem_response(error.status_code, error.detail, kind=error.kind, headers=error.headers)
            await refusal(scope, receive, send)
            return
        await self._app(scope, _again(body, receive), send)

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
    pieces: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)
    raise ProblemError(400, "the body ended before it was complete")


def _described(scope: Scope) -> dict[str, object]:
    """Return what the process has to know of a request, besides its body."""
    others = ((name, value) for name, value in scope["headers"] if name != HEADER)
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in others]
    headers.append((HEADER.decode("latin-1"), traceparent()))
    viewer = viewer_of(scope)
    who = {
        "groups": sorted(viewer.groups),
        "sees_everything": viewer.sees_everything,
        "operates": viewer.operates,
        "name": viewer.name,
    }
    return {"method": scope["method"], "path": scope["path"], "headers": headers, "viewer": who}


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a body that was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received
