"""A publication tells the webhook what changed; a webhook that fails costs nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nornweave.events import publication_event, send
from nornweave.store.port import Publication
from nornweave.types import Domain, GenerationId

EVENT = publication_event(
    Domain.CODE,
    Publication(
        generation=GenerationId("gen-000002"),
        run_id="run",
        created_at=datetime(2026, 1, 20, tzinfo=UTC),
        added=("s/new.py",),
        changed=(),
        removed=("s/old.py",),
    ),
)


@contextmanager
def webhook(status: int, received: list[object]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks/secret-token"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_event_arrives() -> None:
    received: list[object] = []
    with webhook(204, received) as url:
        assert send(url, EVENT)
    assert received == [
        {
            "event": "publication",
            "domain": "code",
            "generation": "gen-000002",
            "run_id": "run",
            "created_at": "2026-01-20T00:00:00+00:00",
            "added": ["s/new.py"],
            "changed": [],
            "removed": ["s/old.py"],
        }
    ]


def test_a_refusal_is_logged_without_the_address(caplog: pytest.LogCaptureFixture) -> None:
    with webhook(500, []) as url:
        assert not send(url, EVENT)
    assert "127.0.0.1 answered 500" in caplog.text
    assert "secret-token" not in caplog.text


def test_nobody_there(caplog: pytest.LogCaptureFixture) -> None:
    assert not send("http://127.0.0.1:9/hooks/secret-token", EVENT, timeout_s=1)
    assert "cannot be reached" in caplog.text
    assert "secret-token" not in caplog.text
