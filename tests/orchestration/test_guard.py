"""What the guard lets through to Dagster's web server, request by request."""

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from nornweave.core.errors import ConfigError
from orchestration.guard import Guard, public_url

HOST = "127.0.0.1:3000"
OWN = f"http://{HOST}"
JSON = {"Content-Type": "application/json"}
TOKEN = "sésame"
BEARER = f"Bearer {TOKEN}"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


async def anything(request: Request) -> Response:
    return JSONResponse({"reached": request.method}, headers={"Content-Security-Policy": "object-src 'none'"})


async def greet(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text("reached")
    await websocket.close()


async def trip(request: Request) -> Response:
    """Raise what Dagster does over a run that is not there, or over anything else."""
    raise {"not-a-run": AttributeError("run_id"), "defect": OSError("disk")}[request.path_params["name"]]


TRIPPING = Route("/logs/{name}", trip)
APP = Starlette(routes=[WebSocketRoute("/graphql", greet), TRIPPING, Route("/{path:path}", anything, methods=METHODS)])


class Answer:
    """A response that was read."""

    def __init__(self, connection: HTTPConnection) -> None:
        response = connection.getresponse()
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.text))


class Client:
    """Sends exactly the headers that it is told to send, and a ``Host`` unless it is told another."""

    def __init__(self, port: int) -> None:
        self._port = port

    def send(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.send_pairs(method, path, *{"Host": HOST, **(headers or {})}.items())

    def send_pairs(self, method: str, path: str, *headers: tuple[str, str]) -> Answer:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in headers:
                connection.putheader(name, value.encode())
            connection.endheaders()
            return Answer(connection)
        finally:
            connection.close()

    def open(self, headers: Mapping[str, str]) -> ClientConnection:
        stream = socket.create_connection(("127.0.0.1", self._port))
        return connect("ws://127.0.0.1:3000/graphql", sock=stream, additional_headers=headers, proxy=None)


def served(token: str | None, url: str | None = None) -> Iterator[Client]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(Guard(APP, token, url), log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield Client(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    yield from served(None)


@pytest.fixture(scope="module")
def closed() -> Iterator[Client]:
    """Return a client of a server with a token."""
    yield from served(TOKEN)


@pytest.fixture(scope="module")
def proxied() -> Iterator[Client]:
    """Return a client of a server that a proxy calls by the name that people use."""
    yield from served(TOKEN, "https://dagster.example.org")


def test_a_proxy_is_answered_by_its_name_and_pages_of_other_sites_are_not(proxied: Client) -> None:
    public = {"Host": "dagster.example.org", "Origin": "https://dagster.example.org", "Authorization": BEARER}
    assert proxied.send("POST", "/graphql", {**public, **JSON}).status == 200
    assert proxied.send("GET", "/runs", {**public, "Authorization": ""}).status == 401
    assert proxied.send("POST", "/graphql", {**public, **JSON, "Origin": "http://dagster.example.org"}).status == 403
    assert proxied.send("POST", "/graphql", {**public, **JSON, "Origin": OWN}).status == 403
    assert proxied.send("POST", "/graphql", {**public, **JSON, "Host": HOST}).status == 403
    refused = proxied.send("GET", "/runs", {**public, "Host": "other.example.org"})
    assert refused.status == 421
    assert "NORNWEAVE_DAGSTER_URL" in refused.json["detail"]
    assert proxied.send("GET", "/runs", {"Authorization": BEARER}).status == 200  # this machine's own name as well


def test_a_proxy_needs_a_token_and_an_address_of_its_own() -> None:
    assert public_url({}) is None
    own = {"NORNWEAVE_DAGSTER_URL": "https://dagster.example.org/"}
    assert public_url({**own, "NORNWEAVE_SERVICE_TOKEN": "x"}) == "https://dagster.example.org"
    with pytest.raises(ConfigError, match="everybody"):
        public_url(own)
    below = {"NORNWEAVE_DAGSTER_URL": "https://example.org/dagster/", "NORNWEAVE_SERVICE_TOKEN": "x"}
    assert public_url(below) == "https://example.org/dagster"
    for wrong in ("dagster.example.org", "https://", "https://example.org/a/../b", "https://example.org/?x", "ftp://x"):
        with pytest.raises(ConfigError, match="is not an address such as"):
            public_url({"NORNWEAVE_DAGSTER_URL": wrong, "NORNWEAVE_SERVICE_TOKEN": "x"})


def test_below_a_path_dagster_is_asked_below_it_whatever_the_proxy_leaves_and_the_checks_hold() -> None:
    async def path(request: Request) -> Response:
        return JSONResponse(request.scope["path"])

    app = Starlette(routes=[Route("/{path:path}", path, methods=METHODS)])
    host = {"Host": "example.org", "Authorization": BEARER.encode(), "Origin": "https://example.org"}
    with TestClient(Guard(app, TOKEN, "https://example.org/dagster")) as client:
        for asked, reached in (("/runs", "/runs"), ("/dagster/runs", "/runs"), ("/dagster", "/"), ("/", "/")):
            assert client.get(asked, headers=host).json() == f"/dagster{reached}"
        for asked in ("/graphql", "/dagster/graphql"):
            assert client.get(asked, headers=host).status_code == 405
            assert client.post(asked, headers={**host, "Content-Type": "text/plain"}).status_code == 415
            assert client.post(asked, headers=host, json={}).json() == "/dagster/graphql"
        assert client.post("/dagster/runs", headers=host).status_code == 405
        assert client.get("/dagster/runs", headers={**host, "Authorization": ""}).status_code == 401


def basic(credentials: str) -> str:
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


@pytest.mark.parametrize("host", ["127.0.0.1:3000", "localhost:3001", "LOCALHOST", "[::1]:3000"])
def test_names_of_this_machine_are_answered(client: Client, host: str) -> None:
    assert client.send("GET", "/runs", {"Host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "localhost.", "127.0.0.1@evil.example", ""]
)
def test_other_names_are_not_answered(client: Client, host: str) -> None:
    refused = client.send("GET", "/runs", {"Host": host})
    assert refused.status == 421
    assert repr(host) in refused.json["detail"]


def test_two_names_at_once_are_not_answered(client: Client) -> None:
    assert client.send_pairs("GET", "/runs", ("Host", HOST), ("Host", "localhost")).status in {400, 421}


ORIGINS = ["http://evil.example", "null", "", "http://127.0.0.1:8000", "http://127.0.0.1", "https://127.0.0.1:3000",
           "http://localhost:3000", "http://127.0.0.1:3000.evil.example", "file://"]  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_of_another_origin_are_refused(client: Client, origin: str, method: str) -> None:
    refused = client.send(method, "/graphql", {"Origin": origin, **JSON})
    assert refused.status == 403
    assert repr(origin) in refused.json["detail"]


def test_pages_of_the_ui_itself_may_do_what_they_do(client: Client) -> None:
    own = {"Origin": OWN, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", **JSON}
    assert client.send("POST", "/graphql", own).json == {"reached": "POST"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_link_to_the_ui_and_nothing_else(client: Client, site: str) -> None:
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.send("GET", "/runs", link).status == 200
    assert client.send("POST", "/graphql", {**link, **JSON}).status == 403
    for change in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Mode": "cors"}):
        assert client.send("GET", "/runs", {**link, **change}).status == 403


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", ["/graphql?query=mutation%7Bx%7D", "/%67raphql?query=mutation%7Bx%7D"])
def test_graphql_takes_post_only(client: Client, method: str, path: str) -> None:
    assert client.send(method, path, JSON).status == 405


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "text/plain; application/json", "application/x-www-form-urlencoded", "multipart/form-data",
     "application/graphql", "application/jsonp", ""],
)  # fmt: skip
def test_graphql_takes_json_only(client: Client, media_type: str) -> None:
    assert client.send("POST", "/graphql", {"Content-Type": media_type}).status == 415


def test_json_may_say_its_charset(client: Client) -> None:
    assert client.send("POST", "/graphql", {"Content-Type": "application/json; charset=utf-8"}).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/report_asset_materialization/code/index", "/graphql/", "/"])
def test_everything_else_is_only_read(client: Client, method: str, path: str) -> None:
    assert client.send(method, path, JSON).status == 405


def test_what_names_nothing_is_not_found_and_a_defect_stays_one(client: Client) -> None:
    missing = client.send("GET", "/logs/not-a-run")
    assert (missing.status, missing.json["detail"]) == (404, "no such run, log or file")
    assert missing.headers["x-frame-options"] == "SAMEORIGIN"
    assert client.send("GET", "/logs/defect").status == 500


def test_nobody_else_may_frame_the_ui_or_load_what_it_answers(client: Client) -> None:
    headers = client.send("GET", "/runs").headers
    assert headers.get_all("Content-Security-Policy") == ["object-src 'none'", "frame-ancestors 'self'"]
    assert headers["X-Frame-Options"] == "SAMEORIGIN"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("credentials", [BEARER, basic(f"me:{TOKEN}"), basic(f":{TOKEN}")])
def test_the_token_opens_the_ui(closed: Client, credentials: str) -> None:
    assert closed.send("GET", "/runs", {"Authorization": credentials}).status == 200


@pytest.mark.parametrize(
    "credentials",
    ["", "Bearer", "Bearer wrong", "Basic", "Basic !", "Basic é", basic("me:wrong"), basic("me:"), basic("me"),
     basic(TOKEN), basic(f"{TOKEN}:"), f"Digest {TOKEN}"],
)  # fmt: skip
def test_without_the_token_nothing_is_answered(closed: Client, credentials: str) -> None:
    refused = closed.send("GET", "/runs", {"Authorization": credentials})
    assert refused.status == 401
    assert refused.headers["WWW-Authenticate"].startswith('Basic realm="nornweave"')
    assert TOKEN not in refused.text


def test_the_token_does_not_open_the_ui_to_other_sites(closed: Client) -> None:
    headers = {"Authorization": BEARER, "Origin": "http://evil.example", **JSON}
    assert closed.send("POST", "/graphql", headers).status == 403


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_websocket_of_another_origin_is_refused(client: Client, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        client.open({"Origin": origin})


def test_a_websocket_needs_the_token(closed: Client) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        closed.open({"Origin": OWN})


def test_a_websocket_of_another_site_is_no_link(client: Client) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    with pytest.raises(InvalidStatus, match="403"):
        client.open(link)


@pytest.mark.parametrize("credentials", ["Bearer secret", basic("me:secret")])
def test_a_websocket_of_the_ui_is_let_through(credentials: str) -> None:
    for client in served("secret"):
        with client.open({"Origin": OWN, "Authorization": credentials}) as websocket:
            assert websocket.recv() == "reached"
