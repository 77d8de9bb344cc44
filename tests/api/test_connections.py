"""What strangers may cost: headers, connections that say nothing, clients that do not read. Real sockets, 256 files."""

import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import forked
import httpx
import psutil
import pytest
from waiting import WITHIN_S, until

from api.server.limits import MAX_HEADER_BYTES, MAX_HEADERS, RESERVED_CONNECTIONS, network_of

# The server as it is, with an app that answers at once, slowly, or with much; with less patience than usual.
SERVE = """
import asyncio, sys
import uvicorn
import api.server.limits, api.server.process
from api.server.workers import listen, url_of
from api.server.process import LimitedServer
api.server.limits.HEADERS_WITHIN_S = float(sys.argv[1])
api.server.limits.READ_WITHIN_S = float(sys.argv[1])
api.server.process.FIRST_REQUEST_S = 60.0

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})
        return
    if scope["path"] == "/slow":
        await receive()
        await asyncio.sleep(600)
    if scope["path"] == "/body":
        while (await receive()).get("more_body"):
            pass
    content = b"x" * (64 << 20 if scope["path"] == "/much" else 2)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": content})

config = uvicorn.Config(app, log_config=None)
with listen("127.0.0.1", 0) as listener:
    announce = lambda: print(url_of(listener), flush=True)
    LimitedServer(config, announce).run(sockets=[listener])
"""
DESCRIPTORS = 256
MOST = DESCRIPTORS // 2 - RESERVED_CONNECTIONS
PATIENT_S, IMPATIENT_S = 600, 0.5

Served = tuple[psutil.Process, tuple[str, int]]


def serving(patience_s: float) -> Iterator[Served]:
    process = forked.Popen(
        [sys.executable, "-c", SERVE, str(patience_s)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    assert process.stdout
    url = httpx.URL(process.stdout.readline().decode().strip())
    yield psutil.Process(process.pid), (url.host, url.port or 0)
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="module")
def patient() -> Iterator[Served]:
    """Serve as usual, though connections are never too slow."""
    yield from serving(PATIENT_S)


@pytest.fixture(scope="module")
def impatient() -> Iterator[Served]:
    """Serve clients that have half a second."""
    yield from serving(IMPATIENT_S)


def status(address: tuple[str, int], path: str = "/health") -> int:
    host, port = address
    return httpx.get(f"http://{host}:{port}{path}", trust_env=False, timeout=WITHIN_S).status_code


def answered(address: tuple[str, int], request: bytes) -> bytes:
    """Send bytes; return the answer until the server ends the connection, which it may do before all is sent."""
    answer = b""
    with socket.create_connection(address, WITHIN_S) as connection:
        try:
            connection.sendall(request)
            while piece := connection.recv(1 << 16):
                answer += piece
        except ConnectionError:
            pass
    return answer


@pytest.mark.parametrize("more", [b"x" * (64 << 20), b"a:b\r\n" * 4_000_000], ids=["one header", "many headers"])
def test_headers_without_end_cost_little(patient: Served, more: bytes) -> None:
    process, address = patient
    before = process.memory_info().rss
    answer = answered(address, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + more + b"\r\n\r\n")
    assert b"200 OK" not in answer
    assert process.memory_info().rss - before < 16 << 20
    assert status(address) == 200


def test_too_large_headers_are_said_to_be(patient: Served) -> None:
    _, address = patient
    answer = answered(address, b"GET /health HTTP/1.1\r\nX: " + b"x" * (MAX_HEADER_BYTES + 1))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ") and b"application/problem+json" in head
    assert str(MAX_HEADER_BYTES) in json.loads(body)["detail"]


def test_a_request_with_two_lengths_is_refused_and_ends_the_connection(patient: Served) -> None:
    _, address = patient
    head = b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = answered(address, head + b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1


def test_headers_are_counted(patient: Served) -> None:
    _, (host, port) = patient
    for count, expected in ((MAX_HEADERS - 10, 200), (MAX_HEADERS + 1, 431)):
        headers = {f"x-{number}": "1" for number in range(count)}
        answer = httpx.get(f"http://{host}:{port}/health", headers=headers, trust_env=False, timeout=WITHIN_S)
        assert answer.status_code == expected


@pytest.mark.parametrize(
    "half",
    [b"", b"GET /health HTTP/1.1\r\nHost: loc", b"POST /body HTTP/1.1\r\nContent-Length: 9\r\n\r\n1"],
    ids=["nothing", "half a head", "half a body"],
)
def test_health_is_answered_beside_300_half_open_requests(patient: Served, half: bytes) -> None:
    process, address = patient
    opened = []
    try:
        for _ in range(300):
            opened.append(socket.create_connection(address, WITHIN_S))
            opened[-1].sendall(half)
        for _ in range(3):
            assert status(address) == 200
        assert process.num_fds() < DESCRIPTORS - RESERVED_CONNECTIONS
    finally:
        for connection in opened:
            connection.close()


def test_health_is_answered_when_all_connections_are_busy(patient: Served) -> None:
    _, address = patient
    opened = []
    try:
        for _ in range(MOST + 1):
            opened.append(socket.create_connection(address, WITHIN_S))
            opened[-1].sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: status(address, "/other") == 503)
        assert status(address) == 200
    finally:
        for connection in opened:
            connection.close()
    until(lambda: status(address, "/other") == 200)


def test_a_client_that_drips_its_headers_is_cut_off(impatient: Served) -> None:
    _, address = impatient
    with socket.create_connection(address, WITHIN_S) as connection:
        deadline = time.monotonic() + WITHIN_S
        with pytest.raises(ConnectionError):
            while time.monotonic() < deadline:
                connection.sendall(b"G")
                time.sleep(0.05)
    assert status(address) == 200


def test_a_client_that_does_not_read_is_cut_off(impatient: Served) -> None:
    process, address = impatient
    with socket.create_connection(address, WITHIN_S) as connection:
        connection.sendall(b"GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n")
        port = connection.getsockname()[1]
        until(lambda: any(one.raddr and one.raddr.port == port for one in process.net_connections("inet")))
        until(lambda: all(not one.raddr or one.raddr.port != port for one in process.net_connections("inet")))


def test_one_house_counts_as_one_address() -> None:
    assert network_of("192.0.2.7") == "192.0.2.7"
    assert network_of("2001:db8:1:2::3") == network_of("2001:db8:1:2:ffff::") == "2001:db8:1:2::/64"
    assert network_of("::ffff:192.0.2.7") == "192.0.2.7"


def test_who_has_just_connected_when_the_end_comes_is_answered() -> None:
    with contextmanager(serving)(PATIENT_S) as (process, address), socket.create_connection(address) as client:
        until(lambda: any(one.raddr == client.getsockname() for one in process.net_connections()))
        process.terminate()
        time.sleep(0.2)
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.settimeout(WITHIN_S)
        assert client.recv(12) == b"HTTP/1.1 200"
