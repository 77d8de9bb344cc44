"""A language model for tests: an HTTP server on this machine that speaks the chat shapes of OpenAI and of Ollama."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

import pytest

Kind = Literal["answers", "hangs", "hangs_after_headers", "dribbles", "fails", "malformed", "no_choices", "dies"]
PACE_S = 0.02
LONGEST_S = 60.0
LITELLM_WARNINGS = [
    # LiteLLM and what it imports, at import and while it parses answers; which come depends on what is loaded already.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
    # A call that is cancelled while LiteLLM prepares it in a thread leaves the coroutine that the thread made.
    pytest.mark.filterwarnings("ignore:coroutine 'OpenAIChatCompletion.*' was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <coroutine object OpenAIChatCompletion"),
    pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class:UserWarning"),
]


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What the server does with a question for one model.

    Attributes:
        kind: ``dribbles`` sends its answer piece by piece (bytes, or events of a stream), one each ``PACE_S``; ``dies``
            breaks off in mid answer.
        text: of the answer; ``None`` answers with a message that has no content.
        delay_s: before anything is sent.
        after: a model; nothing is sent before it was asked twice.
        status, message: of a failure.
    """

    kind: Kind = "answers"
    text: str | None = "Yes."
    delay_s: float = 0.0
    after: str = ""
    status: int = 500
    message: str = "the model fell over"
    finish_reason: str = "stop"


class ModelServer:
    """Serves until it is left; a question for a model that has no behaviour is answered ``Yes.``.

    Attributes:
        behaviours: by model, without its provider.
        requests: bodies, in the order in which they came.
        authorizations: their ``Authorization`` headers.
        shown: how often ``/api/show`` was asked.
        broken_off: questions whose asker went away before the whole answer was sent.
    """

    def __init__(self, behaviours: Mapping[str, Behaviour] | None = None) -> None:
        self.behaviours = dict(behaviours or {})
        self.requests: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.shown = 0
        self.broken_off = 0
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        """Without a path: what ``OLLAMA_API_BASE`` wants; ``OPENAI_API_BASE`` wants ``/v1`` behind it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def asked(self, model: str) -> int:
        """Count the questions for a model."""
        return sum(request["model"] == model for request in self.requests)

    def pause(self, seconds: float) -> None:
        """Wait; no longer once the server is left."""
        self._released.wait(seconds)


@dataclass
class _Shape:
    """How an answer looks: whole, or as the events of a stream."""

    content_type: str
    whole: bytes
    events: list[bytes] = field(default_factory=list)

    @property
    def pieces(self) -> list[bytes]:
        """The events, or each byte of the whole."""
        return self.events or [bytes([byte]) for byte in self.whole]


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.endswith("/api/show"):
                server.shown += 1
                self._send(200, _Shape("application/json", b'{"model_info": {}}'))
                return
            server.requests.append(asked)
            server.authorizations.append(self.headers["Authorization"])
            behaviour = server.behaviours.get(asked["model"], Behaviour())
            try:
                self._behave(behaviour, asked)
            except (BrokenPipeError, ConnectionResetError):
                server.broken_off += 1

        def _behave(self, behaviour: Behaviour, asked: dict[str, Any]) -> None:
            server.pause(behaviour.delay_s)
            while behaviour.after and server.asked(behaviour.after) < 2 and not server._released.is_set():
                server.pause(PACE_S)
            shape = _shape(behaviour, asked, ollama="/api/" in self.path)
            if behaviour.kind == "fails":
                failure = json.dumps({"error": {"message": behaviour.message, "type": "server_error"}}).encode()
                self._send(behaviour.status, _Shape("application/json", failure))
            elif behaviour.kind == "hangs":
                self._linger()
            elif behaviour.kind == "hangs_after_headers":
                self._head(200, shape)
                self._linger()
            elif behaviour.kind == "dies":
                self._head(200, shape)
                pieces = shape.pieces
                for piece in pieces[: len(pieces) // 2]:
                    self.wfile.write(piece)
                self.close_connection = True
            elif behaviour.kind == "dribbles":
                self._head(200, shape)
                self._dribble(shape.pieces)
            else:
                self._send(200, shape)

        def _send(self, status: int, shape: _Shape) -> None:
            self._head(status, shape)
            for part in shape.events or [shape.whole]:
                self.wfile.write(part)
                self.wfile.flush()

        def _head(self, status: int, shape: _Shape) -> None:
            self.send_response(status)
            self.send_header("Content-Type", shape.content_type)
            if shape.events:
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(shape.whole)))
            self.end_headers()

        def _linger(self) -> None:
            """Send nothing until the asker goes or the server ends."""
            self.connection.settimeout(PACE_S)
            ends = time.monotonic() + LONGEST_S
            while not server._released.is_set() and time.monotonic() < ends:
                try:
                    if self.connection.recv(1) == b"":
                        raise BrokenPipeError
                except TimeoutError:
                    continue

        def _dribble(self, pieces: list[bytes]) -> None:
            for piece in pieces:
                self.wfile.write(piece)
                server.pause(PACE_S)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _shape(behaviour: Behaviour, asked: dict[str, Any], *, ollama: bool) -> _Shape:
    if behaviour.kind == "malformed":
        return _Shape("application/json", b'{"id": "x", "choices": [{"message": ')
    if ollama:
        answer = {"model": asked["model"], "response": behaviour.text, "done": True, "done_reason": "stop"}
        return _Shape("application/json", json.dumps(answer).encode())
    if asked.get("stream"):
        words = (behaviour.text or "").split(" ")
        deltas = [{"content": word if place == 0 else f" {word}"} for place, word in enumerate(words)]
        events = [_chunk(asked, delta, None) for delta in deltas] + [_chunk(asked, {}, behaviour.finish_reason)]
        return _Shape("text/event-stream", b"", [*events, b"data: [DONE]\n\n"])
    message = {"role": "assistant", "content": behaviour.text}
    choices = [{"index": 0, "message": message, "finish_reason": behaviour.finish_reason}]
    answer = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": asked["model"],
        "choices": [] if behaviour.kind == "no_choices" else choices,
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return _Shape("application/json", json.dumps(answer).encode())


def _chunk(asked: dict[str, Any], delta: dict[str, str], finish_reason: str | None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": asked["model"], "choices": choices}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
