"""LiteLLMEncoder against a real HTTP server on this machine that speaks the OpenAI embeddings shape."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from openai_server import LITELLM_WARNINGS
from waiting import HANGS_S, SOON_S

from nornweave.core.errors import EncoderError
from nornweave.models.encoders import load_encoder
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.hosted import LiteLLMEncoder

KEY = "sk-nornweave-0123456789abcdef"
MODEL = "openai/embedder"
MODEL_OF_THE_SERVER = HashEncoder(8)

pytestmark = LITELLM_WARNINGS


@dataclass
class Behaviour:
    """What the server does next, and what it was asked."""

    failures: list[int] = field(default_factory=list)
    always: int | None = None
    hang: float = 0.0
    released: threading.Event = field(default_factory=threading.Event)
    retry_after: str = ""
    dimensions: int = 8
    drop_last: bool = False
    zero: bool = False
    broken: bool = False
    requests: list[dict[str, object]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)


def _handler(behaviour: Behaviour) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            behaviour.requests.append({"path": self.path, **asked})
            behaviour.authorizations.append(self.headers["Authorization"])
            behaviour.released.wait(behaviour.hang)
            status = behaviour.failures.pop(0) if behaviour.failures else behaviour.always or 200
            self._reply(
                status, _answer(behaviour, asked["input"]) if status == 200 else {"error": {"message": f"no: {KEY}"}}
            )

        def _reply(self, status: int, content: object) -> None:
            raw = b"<html>" if behaviour.broken else json.dumps(content).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                if behaviour.retry_after:
                    self.send_header("Retry-After", behaviour.retry_after)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client gave up, as the timeout test wants

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _answer(behaviour: Behaviour, inputs: list[str]) -> dict[str, object]:
    vectors = [(MODEL_OF_THE_SERVER.encode_query(text) * 3).tolist() for text in inputs]
    rows = [
        {
            "object": "embedding",
            "index": index,
            "embedding": [0.0] * 8 if behaviour.zero else (vector * 2)[: behaviour.dimensions],
        }
        for index, vector in enumerate(vectors)
    ]
    if behaviour.drop_last:
        rows = rows[:-1]
    # Backwards: the shape promises an index, not an order.
    return {"object": "list", "model": "embedder", "data": rows[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


@pytest.fixture
def behaviour(monkeypatch: pytest.MonkeyPatch) -> Iterator[Behaviour]:
    behaviour = Behaviour()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(behaviour))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_API_BASE", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield behaviour
    behaviour.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def _encoder(**options: object) -> LiteLLMEncoder:
    return LiteLLMEncoder(MODEL, first_pause=0.01, **options)  # type: ignore[arg-type]


def test_vectors_are_unit_length_and_in_the_order_of_the_texts(behaviour: Behaviour) -> None:
    encoder = _encoder(batch_size=3)
    texts = ["refund a payment", "", "void", "ledger 🧾", "a \ud800 b", "NUL \0 in it", "last"]
    seen: list[int] = []

    vectors = encoder.encode(texts, progress=seen.append)

    expected = [MODEL_OF_THE_SERVER.encode_query(text) for text in ["refund a payment", ".", *texts[2:]]]
    assert np.allclose(vectors, expected, atol=1e-5)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert seen == [3, 6, 7]
    assert [len(request["input"]) for request in behaviour.requests] == [1, 3, 3, 1]  # type: ignore[arg-type]
    assert np.allclose(encoder.encode_query("void"), vectors[2], atol=1e-6)
    assert encoder.encode([]).shape == (0, 8)
    assert set(behaviour.authorizations) == {f"Bearer {KEY}"}


def test_describes_itself(behaviour: Behaviour) -> None:
    encoder = _encoder()
    assert (encoder.version, encoder.dimensions) == (f"litellm:{MODEL}/8", 8)
    assert encoder.max_tokens > 0
    assert list(encoder.tokenizer.token_starts("refunding 42")) == [0, 6, 10]


@pytest.mark.parametrize("failures", [[429], [500, 503], [429, 500, 502]])
def test_transient_failures_are_tried_again(behaviour: Behaviour, failures: list[int]) -> None:
    encoder = _encoder()
    behaviour.failures = list(failures)
    before = len(behaviour.requests)

    assert encoder.encode(["a"]).shape == (1, 8)
    assert len(behaviour.requests) - before == len(failures) + 1


@pytest.mark.parametrize(("asked", "pause"), [("1", 1.0), ("Sat, 21 Nov 2026 09:19:00 GMT", 0.01)])
def test_waits_as_long_as_the_service_asks(
    behaviour: Behaviour, asked: str, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A date is not read: it waits as it does where nothing is asked."""
    pauses: list[float] = []
    encoder = _encoder()
    behaviour.failures, behaviour.retry_after = [429], asked
    with monkeypatch.context() as patched:
        patched.setattr("nornweave.models.hosted.time.sleep", pauses.append)
        encoder.encode(["a"])
    assert pauses == [pause]


def test_declared_dimensions_are_checked(behaviour: Behaviour, tmp_path: Path) -> None:
    assert load_encoder(f"litellm:{MODEL}", dimensions=8, cache_dir=tmp_path).dimensions == 8
    with pytest.raises(EncoderError, match="has 8 dimensions, the domain declares 16"):
        load_encoder(f"litellm/{MODEL}", dimensions=16, cache_dir=tmp_path)


@pytest.mark.parametrize(("status", "calls"), [(500, 4), (429, 4), (401, 1), (404, 1), (400, 1)])
def test_lasting_failures_end_in_an_encoder_error(
    behaviour: Behaviour, status: int, calls: int, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = _encoder()
    behaviour.always = status
    before = len(behaviour.requests)

    with (
        caplog.at_level(logging.DEBUG, logger="nornweave"),
        pytest.raises(EncoderError, match="openai/embedder") as caught,
    ):
        encoder.encode(["a"])

    assert len(behaviour.requests) - before == calls
    assert KEY not in str(caught.value) + caplog.text


def test_a_hanging_service_ends_in_an_encoder_error(behaviour: Behaviour) -> None:
    encoder = _encoder()
    encoder._timeout = 0.3  # not for the first request, which is answered
    behaviour.hang = HANGS_S
    start = time.monotonic()
    with pytest.raises(EncoderError, match="4 times"):
        encoder.encode(["a"])
    assert time.monotonic() - start < SOON_S


def test_a_service_that_is_not_there_ends_in_an_encoder_error() -> None:
    with pytest.raises(EncoderError, match="4 times"):
        _encoder(api_base="http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("fault", "message"),
    [({"dimensions": 5}, "5 dimensions"), ({"drop_last": True}, "returned 1 vectors"), ({"zero": True}, "length 0.0")],
)
def test_wrong_answers_are_refused(behaviour: Behaviour, fault: dict[str, object], message: str) -> None:
    encoder = _encoder()
    for name, value in fault.items():
        setattr(behaviour, name, value)
    with pytest.raises(EncoderError, match=message):
        encoder.encode(["a", "b"])


def test_an_answer_that_is_no_json_is_an_encoder_error(behaviour: Behaviour) -> None:
    encoder = _encoder()
    behaviour.broken = True
    with pytest.raises(EncoderError, match="openai/embedder"):
        encoder.encode(["a"])
