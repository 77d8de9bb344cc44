"""A proxy before a real S3 server, that does to requests what networks and stores do."""

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE = 4_096

PART = r"/\d+-[0-9a-f]{64}"
"""In the path of a request for a part of a file."""


@dataclass(slots=True)
class Call:
    """A request that passes the proxy; a fault may change what is sent back.

    Attributes:
        answer: sends the request on and returns status, headers and body; a fault that does not call it lets it vanish.
    """

    method: str
    path: str
    answer: Callable[[], tuple[int, list[tuple[str, str]], bytes]]


Fault = Callable[[Call], "tuple[int, list[tuple[str, str]], bytes] | None"]


@dataclass(slots=True)
class Proxy:
    """What passes, and what happens to it: ``fault`` returns the answer, ``None`` cuts the connection.

    ``bytes_per_s`` is the pace of what is answered from now on.
    """

    port: int = 0
    fault: Fault | None = None
    bytes_per_s: float = float("inf")
    seen: list[tuple[str, str]] = field(default_factory=list)
    # moto compares and writes in two steps: S3 does it in one.
    writing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def count(self, method: str, part: str) -> int:
        """Count the requests of a method whose path has a part, an expression."""
        return sum(one == method and re.search(part, path) is not None for one, path in self.seen)


@contextmanager
def proxy_to(port: int) -> Iterator[Proxy]:
    """Pass requests on to a port of this machine."""
    proxy = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            proxy.seen.append((self.command, self.path))
            call = Call(self.command, self.path, lambda: self._forward(body))
            answer = proxy.fault(call) if proxy.fault else call.answer()
            if answer is None:
                self.close_connection = True
                return
            status, headers, content = answer
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in {"transfer-encoding", "connection"}:
                    self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                for start in range(0, len(content), PIECE):
                    self.wfile.write(content[start : start + PIECE])
                    time.sleep(PIECE / proxy.bytes_per_s)

        def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            is_conditional = "if-match" in self.headers or "if-none-match" in self.headers
            lock: Any = proxy.writing if self.command == "PUT" and is_conditional else threading.Lock()
            with lock:
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                content = answer.read()
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() != "content-length"]
            size = answer.getheader("content-length") if self.command == "HEAD" else None
            connection.close()
            return answer.status, [*headers, ("Content-Length", size or str(len(content)))], content

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):  # the client was killed
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
