"""``git http-backend`` on a loopback port: repositories over HTTP as a real server gives them out, and its troubles."""

import base64
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from git_repository import ENVIRONMENT


@dataclass
class GitServer:
    """A server and what it does to those who ask.

    Attributes:
        root: the folder of its repositories.
        login: ``user:password`` that it asks for; any user when it begins with a colon.
        status: answered to everything, unless 0.
        lead_to: redirect what is asked below a first folder of this name, to this address.
        cut_after: bytes of a pack after which the connection ends.
        drip: sends a byte at a time until it is set.
        is_dumb: files as they lie on the disk, as any web server gives them out.
    """

    root: Path
    login: str | None = None
    status: int = 0
    lead_to: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    drip: threading.Event | None = None
    is_dumb: bool = False
    requests: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    port: int = 0

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def take_requests(self) -> list[str]:
        """Return what was asked since the last time: method and path, of fetches also what they did."""
        taken, self.requests[:] = list(self.requests), []
        return taken


@contextmanager
def serve_git(root: Path) -> Iterator[GitServer]:
    """Serve the repositories in a folder."""
    state = GitServer(root)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, state)

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield state
    finally:
        if state.drip:
            state.drip.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(request: BaseHTTPRequestHandler, state: GitServer) -> None:
    body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
    path, _, query = request.path.partition("?")
    state.requests.append(f"{request.command} {path}{_command_of(body)}")
    given = request.headers.get("Authorization", "")
    if given:
        state.logins.append(base64.b64decode(given.removeprefix("Basic ")).decode())
    if state.status:
        request.send_error(state.status)
    elif (place := state.lead_to.get(path.split("/")[1])) is not None:
        request.send_response(301)
        request.send_header("Location", f"{place}/{path.split('/', 2)[2]}?{query}")
        request.end_headers()
    elif state.login is not None and not _is_allowed(given, state.login):
        request.send_response(401)
        request.send_header("WWW-Authenticate", 'Basic realm="git"')
        request.end_headers()
    elif state.is_dumb:
        _send_file(request, state.root / path.strip("/"))
    else:
        _run(request, state, path, query, body)


def _command_of(body: bytes) -> str:
    return next((f" {name}" for name in ("ls-refs", "fetch") if f"command={name}".encode() in body), "")


def _is_allowed(given: str, login: str) -> bool:
    pair = base64.b64decode(given.removeprefix("Basic ")).decode() if given else ""
    return bool(pair) and (pair == login or (login.startswith(":") and pair.endswith(login)))


def _send_file(request: BaseHTTPRequestHandler, file: Path) -> None:
    if not file.is_file():
        request.send_error(404)
        return
    request.send_response(200)
    request.end_headers()
    request.wfile.write(file.read_bytes())


def _run(request: BaseHTTPRequestHandler, state: GitServer, path: str, query: str, body: bytes) -> None:
    environment = ENVIRONMENT | {
        "GIT_PROJECT_ROOT": str(state.root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": request.command,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "REMOTE_ADDR": "127.0.0.1",
    }
    done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
    request.send_response(int(headers.pop("Status", "200").split()[0]))
    for name, value in headers.items():
        request.send_header(name, value)
    request.end_headers()
    with suppress(BrokenPipeError, ConnectionResetError):
        _send(request, state, content, is_pack=_command_of(body) == " fetch")


def _send(request: BaseHTTPRequestHandler, state: GitServer, content: bytes, *, is_pack: bool) -> None:
    if is_pack and state.cut_after is not None:
        request.wfile.write(content[: state.cut_after])
        return
    if is_pack and state.drip is not None:
        for place in range(len(content)):
            if state.drip.wait(0.05):
                return
            request.wfile.write(content[place : place + 1])
            request.wfile.flush()
    request.wfile.write(content)
