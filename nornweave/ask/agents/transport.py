"""HTTP to agents: pooled connections, in one thread whose event loop ends every request at its deadline.

If an agent accepts and sends nothing, or a byte a second without end, the request is cancelled: no thread of
a question waits longer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from nornweave.core.errors import AgentError

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

MAX_ANSWER_BYTES = 8 << 20
MOST_CONNECTIONS = 128
IDLE_CONNECTIONS, IDLE_S = 32, 30.0


class RefusedError(AgentError):
    """The agent refuses the question. This says nothing about the agent's health."""


class Transport:
    """Sends questions in one thread, which the first question starts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: httpx.AsyncClient | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run a coroutine in the event loop and return its result; wait at most ``timeout_s`` seconds.

        Raises:
            AgentError: there was no result in time, or the transport is closed.
        """
        try:
            loop = self._start_loop()
        except AgentError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise AgentError("no answer in time") from None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, httpx.Headers]:
        """Post JSON; return the answer's body, at most ``MAX_ANSWER_BYTES``, and its headers.

        Raises:
            AgentError: the agent cannot be reached, or its answer is not a 200 with plain bytes.
        """
        import httpx

        client = self._client or self._opened_client()
        try:
            async with client.stream("POST", url, content=body, headers=dict(headers)) as answer:
                _check(answer)
                received = bytearray()
                async for piece in answer.aiter_raw():
                    received += piece
                    if len(received) > MAX_ANSWER_BYTES:
                        raise AgentError(f"answered with more than {MAX_ANSWER_BYTES:,} bytes")
                return bytes(received), answer.headers
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise AgentError(f"cannot be reached ({type(error).__name__})") from error

    def close(self) -> None:
        """End running requests and the thread."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop and thread:
            asyncio.run_coroutine_threadsafe(self._end(), loop)
            thread.join(5)

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise AgentError("the server is shutting down")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=[self._loop], name="agents", daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._client:
            await self._client.aclose()
        asyncio.get_running_loop().stop()

    def _opened_client(self) -> httpx.AsyncClient:
        import httpx

        self._client = httpx.AsyncClient(
            timeout=None,  # noqa: S113 - every request is cancelled at its deadline
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(
                max_connections=MOST_CONNECTIONS, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_S
            ),
            # What is compressed could be large without being long.
            headers={"accept-encoding": "identity", "accept": "application/json"},
        )
        return self._client


def _check(answer: httpx.Response) -> None:
    status = answer.status_code
    if answer.is_redirect:
        raise AgentError(f"answered with a redirect ({status}), which is not followed")
    if status in {401, 403}:
        raise AgentError(f"did not accept this server's token ({status}); see 'token_env' of 'agents.allow'")
    if status in {400, 404, 413, 422}:
        raise RefusedError(f"does not take the question ({status})")
    if status != 200:
        raise AgentError(f"answered with status {status}")
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise AgentError("answered with compressed bytes, which were not asked for")
