"""A server on this machine that stands in for an API: it logs what it is asked, and can be told to misbehave."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked; header names in lower case, of a parameter of ``query`` the last one; ``target`` is as sent."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    target: str = ""

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered; ``body`` is sent as JSON unless it is bytes."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


HANG_UP = Reply(status=0)
"""End the connection without an answer."""


class Api:
    """Answers by ``handle``; what lies in ``faults`` is answered first, one for each request."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.faults: deque[Reply] = deque()
        self.before: Callable[[Request], None] = lambda _: None
        self._lock = threading.Lock()

    def handle(self, request: Request) -> Reply:
        raise NotImplementedError

    def answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            self.before(request)
            return self.faults.popleft() if self.faults else self.handle(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients are killed on purpose."""


@contextmanager
def serving(api: Api) -> Iterator[Api]:
    """Serve an API on a free port of the loopback address; ``api.url`` is its address."""
    server = _Server(("127.0.0.1", 0), _handler(api))
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and content in one packet: two would wait 40 ms for an acknowledgement

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            reply = api.answer(Request(self.command, parts.path, query, headers, self.rfile.read(length), self.path))
            if reply is HANG_UP:
                self.close_connection = True
                return
            content = b"" if reply.status == 304 else reply.content()
            self.send_response_only(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_HEAD = do_GET  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_: object) -> None:
            return

    return Handler
