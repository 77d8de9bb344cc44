"""``POST /query`` as events over the example corpus: when the items arrive, and when the first piece of the text."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from rich.console import Console
from rich.table import Table

from lab.baseline.measuring import example_corpus
from lab.bench.fusing import server

THINKS_S, WORD_S, WORDS = 0.05, 0.005, 100
_QUESTIONS = 60
_WARM_UP = 5


def print_streaming(work: Path) -> None:
    """Print when the parts of a streamed answer arrive, beside a model of this machine that begins after 50 ms."""
    corpus = example_corpus()
    config = corpus.index(work)
    texts = [judgment.text for judged in corpus.sets for judgment in judged.queries][:_QUESTIONS]
    table = Table(title="POST /query as text/event-stream, example corpus, one client, ms", title_justify="left")
    for name in ("queries", "", "p50", "p95"):
        table.add_column(name, justify="right")
    with _model() as address, _pointing_at(address), server(config) as (url, _):
        arrivals = [_ask(url, text) for text in (*texts[:_WARM_UP], *texts)][_WARM_UP:]
    for name, times in (
        ("items", [one.items_ms for one in arrivals]),
        (f"first token (the model's {THINKS_S * 1000:g} ms included)", [one.token_ms for one in arrivals]),
        (f"done ({WORDS} words, {WORD_S * 1000:g} ms each)", [one.done_ms for one in arrivals]),
    ):
        table.add_row(str(len(times)), name, *(f"{value:.1f}" for value in np.percentile(times, (50, 95))))
    Console(width=140).print(table)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """When the events of one answer arrived."""

    items_ms: float
    token_ms: float
    done_ms: float


def _ask(url: str, text: str) -> _Arrival:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    started = time.perf_counter()
    connection.request("POST", "/query", json.dumps({"query": text, "synthesize": True}), headers)
    seen: dict[str, float] = {}
    with connection.getresponse() as response:
        for line in response:
            if line.startswith(b"event: "):
                seen.setdefault(line[7:].strip().decode(), (time.perf_counter() - started) * 1000)
    connection.close()
    return _Arrival(seen["items"], seen["token"], seen["done"])


@contextmanager
def _pointing_at(address: str) -> Iterator[None]:
    """Let servers that are started meanwhile ask the model at an address."""
    wanted = {
        "OPENAI_API_BASE": f"{address}/v1",
        "OPENAI_API_KEY": "none",
        "SYNTHESIS_MODEL": "openai/bench",
        "SYNTHESIS_FALLBACK": "",
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _model() -> Iterator[str]:
    """Serve a model that streams in the shape of OpenAI's; it says nothing of use, at an even pace."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(THINKS_S)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for number in range(WORDS):
                self._say({"content": "word "}, "stop" if number == WORDS - 1 else None)
                time.sleep(WORD_S)
            self.wfile.write(b"data: [DONE]\n\n")

        def _say(self, delta: dict[str, str], finish_reason: str | None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "bench", "choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

        def log_message(self, format: str, *values: object) -> None:  # noqa: A002 - the base's own name
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{served.server_port}"
    finally:
        served.shutdown()
        served.server_close()
