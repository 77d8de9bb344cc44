import gzip
import socketserver
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from feed_source import served
from waiting import HANGS_S, SOON_S

from lab.apis.server import HANG_UP, Api, Reply, Request, serving
from nornweave.connect.connectors import FeedSettings, open_source
from nornweave.connect.mirror.api_client import AnswerError, ApiClient, Limits, OtherHostError
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.files.paths import OwnFiles
from nornweave.core.types import Domain

QUICK = Limits(backoff_s=0.0, max_wait_s=2.0)
TOKEN = "secret-123"


class Server(Api):
    def handle(self, request: Request) -> Reply:
        return Reply({"path": request.path, "query": dict(request.query)})


server = served(Server)


def client(server: Server, limits: Limits = QUICK) -> ApiClient:
    return ApiClient(f"{server.url}/v1", token=TOKEN, token_name="API_TOKEN", limits=limits)


def test_addresses_are_relative_to_the_api_and_the_token_is_sent(server: Server) -> None:
    answer = client(server).get("items", {"page": 2})
    assert answer.json() == {"path": "/v1/items", "query": {"page": "2"}}
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("limit", [
    Reply(status=429, headers={"Retry-After": "0"}),
    Reply(status=503, headers={"Retry-After": "0.1"}),
    Reply(status=429, headers={"Retry-After": format_datetime(datetime.now(UTC) - timedelta(seconds=5), usegmt=True)}),
    Reply(status=403, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
])  # fmt: skip
def test_a_rate_limit_that_ends_soon_is_waited_for(server: Server, limit: Reply) -> None:
    server.faults.append(limit)
    assert client(server).get("items").status == 200
    assert len(server.requests) == 2


@pytest.mark.parametrize("limit", [
    Reply(status=429, headers={"Retry-After": "3600"}),
    Reply(status=429),
    Reply({"message": "You have exceeded a secondary rate limit"}, status=403),
    Reply(status=429, headers={"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}),
])  # fmt: skip
def test_a_rate_limit_that_ends_late_is_told_with_its_end(server: Server, limit: Reply) -> None:
    server.faults.append(limit)
    with pytest.raises(SourceUnavailableError, match=r"rate limit until \d{4}-\d\d-\d\dT.*continues; API_TOKEN may"):
        client(server).get("items")
    assert len(server.requests) == 1


def test_failures_that_may_pass_are_tried_again_and_then_told(server: Server) -> None:
    server.faults.extend([HANG_UP, Reply(status=500), Reply(status=502)])
    assert client(server).get("items").status == 200
    server.requests.clear()
    server.faults.extend([Reply(status=500)] * 4)
    with pytest.raises(SourceUnavailableError, match="status 500, 4 times; try again later"):
        client(server).get("items")
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "renew API_TOKEN"), (403, "no right"), (404, "check the address")]
)
def test_a_refusal_is_told_at_once_and_never_names_the_token(server: Server, status: int, advice: str) -> None:
    server.faults.append(Reply({"message": f"no, {TOKEN}"}, status))
    with pytest.raises(SourceUnavailableError, match=f"status {status}: .*{advice}") as caught:
        client(server).get("items")
    assert TOKEN not in str(caught.value)
    assert len(server.requests) == 1


def test_statuses_that_the_caller_understands_are_answers(server: Server) -> None:
    server.faults.append(Reply(status=304))
    assert client(server).get("items", allowed=frozenset({304})).status == 304


def test_redirects_stay_on_the_host(server: Server) -> None:
    server.faults.append(Reply(status=301, headers={"location": "/v1/moved"}))
    assert client(server).get("items").json()["path"] == "/v1/moved"
    server.faults.append(Reply(status=301, headers={"location": "http://localhost:1/v1/moved"}))
    with pytest.raises(SourceUnavailableError, match="on another host"):
        client(server).get("items")
    server.faults.extend([Reply(status=302, headers={"location": "/again"})] * 10)
    with pytest.raises(SourceUnavailableError, match="redirected more than"):
        client(server).get("items")


@pytest.mark.parametrize("address", ["http://other.example/x", "//other.example/x", "http://[bad/"])
def test_other_hosts_are_never_asked(server: Server, address: str) -> None:
    with pytest.raises((SourceUnavailableError, ValueError)):
        client(server).get(address)
    assert server.requests == []


def test_the_next_page_is_that_of_the_link_header(server: Server) -> None:
    server.faults.append(Reply([], headers={"link": '</v1/x?page=1>; rel="prev", </v1/x?page=3>; rel="next"'}))
    assert client(server).get("x").following == f"{server.url}/v1/x?page=3"
    assert client(server).get("x").following is None


@pytest.mark.parametrize("body", [b"<html>", b"", b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_no_json_is_told(server: Server, body: bytes) -> None:
    server.faults.append(Reply(body))
    with pytest.raises(SourceUnavailableError, match="no JSON in the answer"):
        client(server).get("items").json()
    server.faults.append(Reply([1]))
    with pytest.raises(SourceUnavailableError, match="a JSON list; expected an object"):
        client(server).get("items").mapping()


def test_an_answer_that_is_too_large_is_not_read_to_its_end(server: Server) -> None:
    packed = gzip.compress(b" " * 10_000_000)
    server.faults.append(Reply(packed, headers={"content-encoding": "gzip"}))
    limits = Limits(backoff_s=0.0, max_bytes=1_000_000)
    with pytest.raises(SourceUnavailableError, match="more than 1,000,000 bytes"):
        client(server, limits).get("items")


def test_a_server_that_hangs_ends_in_time(server: Server) -> None:
    release = threading.Event()
    server.before = lambda _: (release.wait(HANGS_S), None)[1]
    began = time.monotonic()
    try:
        with pytest.raises(SourceUnavailableError, match=r"no answer \(ReadTimeout\), 1 times"):
            client(server, Limits(read_s=0.3, attempts=1)).get("items")
    finally:
        release.set()
    assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize(("url", "token"), [
    ("ftp://x", None), ("https://user:pw@x", None), ("http://[", None), ("https://x", "two\nlines"),
    ("https://x", "schlüssel"), ("http://api.example.com", "t"),
])  # fmt: skip
def test_wrong_settings_are_refused(url: str, token: str | None) -> None:
    with pytest.raises(ConfigError):
        ApiClient(url, token=token)


def test_a_redirect_to_another_host_is_not_followed(server: Server) -> None:
    with serving(Server()) as other:
        server.faults.append(Reply(status=302, headers={"location": f"{other.url}/b"}))
        with pytest.raises(OtherHostError, match="another host"):
            ApiClient(server.url, limits=QUICK).get("a")
        assert other.requests == []


def test_redirects_can_be_answers_and_content_can_be_left(server: Server) -> None:
    server.faults.append(Reply(status=301, headers={"location": "/b"}))
    answer = client(server).get("a", allowed=frozenset({301}), follow=False)
    assert (answer.status, answer.headers["location"]) == (301, "/b")
    answer = client(server).get("a", wanted=lambda answer: answer.headers["content-type"] == "text/html")
    assert (answer.status, answer.content) == (200, b"")


def test_a_refusal_has_its_status(server: Server) -> None:
    server.faults.append(Reply(status=418))
    with pytest.raises(AnswerError) as caught:
        client(server).get("a")
    assert caught.value.status == 418


@pytest.mark.parametrize(
    "begins",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nx-long: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<rss/>",
    ],
)
def test_what_drips_is_given_up_at_its_deadline_and_is_no_answer(begins: bytes, tmp_path: Path) -> None:
    ended = threading.Event()
    asked: list[bytes] = []

    class Drips(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked.append(self.request.recv(65_536))
            with suppress(OSError):
                self.request.sendall(begins)
                while not ended.wait(0.05):
                    self.request.sendall(b"a" if begins else b"")  # nothing at all, and byte by byte

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drips) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/feed.xml"
        began = time.monotonic()
        with pytest.raises(SourceUnavailableError, match="did not end in time"):
            ApiClient(url, limits=Limits(request_s=0.5)).get(url)
        assert len(asked) == 1, "it would drip again"
        settings = FeedSettings(id="feed", domain=Domain.DOCUMENTATION, url=url, max_minutes=0.5 / 60)
        source = open_source(settings, OwnFiles(tmp_path))
        with pytest.raises(SourceUnavailableError, match="the time for this source is used up"):
            source.list()
        assert time.monotonic() - began < SOON_S
        ended.set()
        server.shutdown()
