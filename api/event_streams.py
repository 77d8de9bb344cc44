"""``text/event-stream``: a model's text, piece by piece, for a client that may disconnect at any moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

from fastapi import Request
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.types import Receive, Scope, Send

from api.access.origins import client_address
from api.errors import ProblemError
from api.schemas import EVENTS, to_json
from api.server.limits import network_of
from nornweave.ask.answer.synthesis.synthesizer import StreamedAnswer
from nornweave.ask.fuse.records import Synthesis
from nornweave.ask.search.question import Question
from nornweave.ask.seen.answers import SeenAnswers

# In the description of the API: what one event is (OpenAPI 3.2, 4.14.4).
EVENT_CONTENT = {
    EVENTS: {
        "schema": {
            "type": "object",
            "properties": {
                "event": {"type": "string"},
                "data": {"type": "string", "contentMediaType": "application/json"},
            },
            "required": ["data"],
        }
    }
}
# Proxies end connections on which nothing comes for a minute.
SILENT_S = 15.0
MAX_STREAMS = 128
MAX_STREAMS_OF_ONE_ADDRESS = 16
RETRY_STREAM_S = 5

T = TypeVar("T")
Write = Callable[[Callable[[str], None]], Future[Synthesis]]


def event(name: str | None, document: object) -> bytes:
    """Return an event with a JSON document. Without a name it has only data."""
    return format_sse_event(event=name, data_str=to_json(document))


class StreamSlots:
    """Limits the number of open streams, both in total and for each address."""

    def __init__(self, most: int = MAX_STREAMS, of_one_address: int = MAX_STREAMS_OF_ONE_ADDRESS) -> None:
        self._most = most
        self._of_one = of_one_address
        self._open: Counter[str] = Counter()

    def take(self, address: str) -> Callable[[], None]:
        """Take a slot; return the function that gives it back.

        Raises:
            ProblemError: 429, too many are open.
        """
        client = network_of(address)
        if self._open.total() >= self._most or self._open[client] >= self._of_one:
            detail = f"at most {self._of_one} event streams of one address and {self._most} in all are open at a time"
            raise ProblemError(429, detail, kind="too-many-streams", headers={"Retry-After": str(RETRY_STREAM_S)})
        self._open[client] += 1

        def give_back() -> None:
            self._open[client] -= 1
            self._open += Counter()  # forgets addresses without a stream

        return give_back


class EventStream(EventSourceResponse):
    """Sends events until they end or the client disconnects, then gives its slot back."""

    def __init__(self, events: AsyncIterator[bytes], give_back: Callable[[], None]) -> None:
        super().__init__(events, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._give_back = give_back

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client disconnects."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._give_back()


class Writing:
    """A text that a model is writing. Leaving the context ends the model's call."""

    def __init__(self, write: Write) -> None:
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._synthesis = write(self._put)

    async def __aenter__(self) -> Writing:
        self._synthesis.add_done_callback(lambda _: self._put(None))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._synthesis.cancel()

    async def pieces(self) -> AsyncIterator[str | None]:
        """Yield the pieces as they arrive, and ``None`` whenever none arrived for ``SILENT_S``."""
        while True:
            try:
                piece = await asyncio.wait_for(self._pieces.get(), SILENT_S)
            except TimeoutError:
                yield None
                continue
            if piece is None:
                return
            yield piece

    @property
    def synthesis(self) -> Synthesis:
        """The result of writing, once the pieces have ended."""
        return self._synthesis.result(0)

    def _put(self, piece: str | None) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)


def answer_streamed(answers: SeenAnswers, question: Question) -> StreamedAnswer:
    """Return the answer to a question without its text, which is written later. Record the answer for judgments."""
    streamed = answers.query_streamed(question)
    answers.remember(question, streamed.document)
    return streamed


async def write_whole(write: Write) -> Synthesis:
    """Wait until a text is written, and return the text."""
    async with Writing(write) as writing:
        async for _ in writing.pieces():
            pass
        return writing.synthesis


async def text_events(writing: Writing, to_event: Callable[[str], bytes]) -> AsyncIterator[bytes]:
    """Yield an event for each piece of a text, and comments that keep the connection open."""
    async for piece in writing.pieces():
        yield KEEPALIVE_COMMENT if piece is None else to_event(piece)


async def stream(
    request: Request,
    slots: StreamSlots,
    prepare: Callable[[], Awaitable[T]],
    events: Callable[[T], AsyncIterator[bytes]],
) -> EventStream:
    """Return a response that sends the ``events`` of an answer. An error of ``prepare``, which makes it, is raised.

    Raises:
        ProblemError: 429, too many streams are open.
    """
    give_back = slots.take(client_address(request.scope))
    try:
        return EventStream(events(await prepare()), give_back)
    except BaseException:
        give_back()
        raise
