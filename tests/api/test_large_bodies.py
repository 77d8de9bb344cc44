"""Large bodies are answered by a process of their own: whatever becomes of it, the others are answered."""

import asyncio
import http.client
import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest
from processes import SERVE, running
from starlette.types import Message, Scope

from api.server.large_bodies import RECEIVED_AT_ONCE, WAITING_TO_BE_RECEIVED, LargeBodies
from api.server.limits import MAX_BODY_BYTES, MAX_LARGE_BODY_BYTES, BodyLimit
from nornweave.config import Settings

WITHIN_S = 120.0
AUTHORISED = {"authorization": "Bearer s3cret", "content-type": "application/json"}


def fuse_body(size: int) -> bytes:
    """Return a body of ``/fuse`` with two items, together of ``size`` characters."""
    items = [{"chunk_id": str(number), "content": "ab c" * 4000, "score": 0.5} for number in range(2)]
    response = {"agent_id": "a", "domain_id": "code", "items": items, "padding": " " * size}
    return json.dumps({"original_text": "refunds", "responses": [response]}).encode()


@pytest.fixture(scope="module")
def served(published: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[psutil.Process, str]]:
    """Serve in a process of its own, with a token."""
    folder = tmp_path_factory.mktemp("served")
    with running(folder, SERVE, published.file, NORNWEAVE_SERVICE_TOKEN="s3cret") as (server, url):
        yield psutil.Process(server.pid), url
        server.terminate()
        assert server.wait(WITHIN_S) == 0
        assert "Traceback" not in (folder / "log").read_text()


def fuse(url: str, body: bytes) -> httpx.Response:
    return httpx.post(f"{url}/fuse", content=body, headers=AUTHORISED, trust_env=False, timeout=WITHIN_S)


def body_process(server: psutil.Process) -> psutil.Process:
    deadline = time.monotonic() + WITHIN_S
    while not (found := [one for one in server.children() if "api.server.body_process" in " ".join(one.cmdline())]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found[0]


@pytest.mark.slow
def test_the_others_are_answered_while_a_large_body_is_read(served: tuple[psutil.Process, str]) -> None:
    server, url = served
    large = fuse_body(2 * MAX_BODY_BYTES)
    with ThreadPoolExecutor(2) as clients:
        answers = [clients.submit(fuse, url, large) for _ in range(2)]
        reading = body_process(server)
        reading.suspend()
        try:
            assert httpx.get(f"{url}/health", trust_env=False, timeout=WITHIN_S).status_code == 200
            assert fuse(url, fuse_body(0)).status_code == 200
            assert not any(answer.done() for answer in answers)
        finally:
            reading.resume()
        results = [answer.result() for answer in answers]
    assert [result.status_code for result in results] == [200, 200]
    small = fuse(url, fuse_body(0)).json()
    assert [item["content"] for item in results[0].json()["items"]] == [item["content"] for item in small["items"]]
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = {**AUTHORISED, "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
    pieces = iter([large[:1000], large[1000:]])
    chunked = httpx.post(f"{url}/fuse", content=pieces, headers=headers, trust_env=False, timeout=WITHIN_S)
    assert (chunked.status_code, chunked.json()["trace_id"]) == (200, trace_id)


@pytest.mark.slow
def test_what_is_wrong_with_a_large_body_is_said_as_ever(served: tuple[psutil.Process, str]) -> None:
    _, url = served
    hollow = b'{"original_text": "x", "responses": [], "more": [' + b"{}," * MAX_BODY_BYTES + b"1]}"
    refused = fuse(url, hollow)
    assert (refused.status_code, refused.json()["errors"]) == (422, [{"field": "more", "detail": "unknown field"}])
    assert fuse(url, hollow[:-1]).status_code == 400


@pytest.mark.slow
def test_a_process_that_is_killed_costs_its_request_alone(served: tuple[psutil.Process, str]) -> None:
    server, url = served
    large = fuse_body(2 * MAX_BODY_BYTES)
    with ThreadPoolExecutor(1) as clients:
        answer = clients.submit(fuse, url, large)
        body_process(server).send_signal(signal.SIGKILL)
        assert answer.result().status_code == 503
    assert fuse(url, large).status_code == 200


@pytest.mark.slow
def test_who_may_not_ask_or_sends_too_much_is_refused_before_the_body(served: tuple[psutil.Process, str]) -> None:
    _, url = served
    for headers, size, status in ((AUTHORISED, MAX_LARGE_BODY_BYTES + 1, 413), ({}, MAX_LARGE_BODY_BYTES, 401)):
        announced = {**headers, "content-length": str(size), "expect": "100-continue"}
        address = httpx.URL(url)
        assert status == first_status(address.host, address.port or 0, announced)


def first_status(host: str, port: int, headers: dict[str, str]) -> int:
    """Send a head alone; return the status that is answered."""
    connection = http.client.HTTPConnection(host, port, timeout=WITHIN_S)
    connection.putrequest("POST", "/fuse")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        return connection.getresponse().status
    finally:
        connection.close()


SCOPE: Scope = {"type": "http", "method": "POST", "path": "/fuse", "headers": []}


async def forever() -> Message:
    await asyncio.sleep(600)
    raise AssertionError


async def test_a_bounded_number_of_large_bodies_is_received_and_waits() -> None:
    async def app(scope: Scope, receive: object, send: object) -> None:
        raise AssertionError("nobody has sent a body")

    guarded, sent = LargeBodies(app, []), []

    async def send(message: Message) -> None:
        sent.append(message)

    most = RECEIVED_AT_ONCE + WAITING_TO_BE_RECEIVED
    waiting = [asyncio.create_task(guarded(SCOPE, forever, send)) for _ in range(most)]
    await asyncio.sleep(0)
    assert sent == []
    await guarded(SCOPE, forever, send)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert sent[0]["status"] == 503
    assert "wait already" in json.loads(sent[1]["body"])["detail"]


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def app(scope: Scope, receive: object, send: object) -> None:
        raise AssertionError("nobody has sent a body")

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await BodyLimit(LargeBodies(app, []), within_s=0.05)(SCOPE, forever, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
