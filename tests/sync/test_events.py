"""A publication tells the webhook what changed, once the receiver takes it; a receiver that fails costs nothing."""

import base64
import hashlib
import hmac
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
from confluent_kafka import Consumer, Producer
from waiting import until

from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain, GenerationId
from nornweave.index.port import Publication
from orchestration.announcements import (
    MAX_WAITING,
    TOPIC,
    KafkaTopic,
    Outbox,
    Webhook,
    publication_event,
    signature_headers,
)

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
NUMBERED = [{**EVENT, "generation": f"gen-{number:06}"} for number in range(3)]
NOBODY = "http://127.0.0.1:9/hooks/secret-token"


@contextmanager
def webhook(
    answer: int | Literal["drips"], received: list[Any], headers: list[dict[str, str]] | None = None
) -> Iterator[str]:
    left = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if headers is not None:
                headers.append({name.lower(): value for name, value in self.headers.items()})
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if answer == "drips":
                while not left.wait(0.2):
                    self.wfile.write(b"H")
            else:
                self.send_response(answer)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks/secret-token"
    finally:
        left.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    return tmp_path / "outbox"


def outbox_of(
    folder: Path, url: str = NOBODY, secret: str | None = None, clock: Callable[[], float] = time.time
) -> Outbox:
    return Outbox(folder, Webhook(url, secret), clock)


def test_the_event_arrives_once(outbox: Path) -> None:
    received: list[Any] = []
    outbox_of(outbox).put(EVENT)
    with webhook(204, received) as url:
        assert outbox_of(outbox, url).deliver()
        assert outbox_of(outbox, url).deliver()
    assert received == [
        {
            "event": "publication", "domain": "code", "generation": "gen-000002", "run_id": "run",
            "created_at": "2026-01-20T00:00:00+00:00", "added": ["s/new.py"], "changed": [], "removed": ["s/old.py"],
        }
    ]  # fmt: skip


def test_what_is_not_taken_waits_and_arrives_in_order(outbox: Path, caplog: pytest.LogCaptureFixture) -> None:
    for event in NUMBERED:
        outbox_of(outbox).put(event)
    refused: list[Any] = []
    with webhook(500, refused) as url:
        assert not outbox_of(outbox, url).deliver()
    assert refused == NUMBERED[:1], "after a failure the rest is not tried"
    assert not outbox_of(outbox, NOBODY).deliver()
    received: list[Any] = []
    with webhook(200, received) as url:
        assert outbox_of(outbox, url).deliver()
    assert received == NUMBERED
    assert "127.0.0.1 answered 500" in caplog.text
    assert "127.0.0.1: ConnectError" in caplog.text
    assert "secret-token" not in caplog.text


def test_who_heeds_the_pause_leaves_a_receiver_alone_that_failed_and_longer_each_time(tmp_path: Path) -> None:
    now = [1_000_000.0]
    outbox = tmp_path / "outbox"

    def deliver(url: str, *, heed_pause: bool = False) -> bool:
        return outbox_of(outbox, url, clock=lambda: now[0]).deliver(heed_pause=heed_pause)

    outbox_of(outbox).put(EVENT)
    tried: list[Any] = []
    with webhook(503, tried) as url:
        for pause_s in (30, 60, 120):
            assert not deliver(url, heed_pause=True)
            now[0] += pause_s - 1
            assert not deliver(url, heed_pause=True)
            now[0] += 2
    assert len(tried) == 3
    received: list[Any] = []
    with webhook(200, received) as url:
        assert deliver(url), "a sync tries once, whatever the pause"
        outbox_of(outbox).put(EVENT)
        assert deliver(url, heed_pause=True), "what worked once is not left alone"
    assert received == [EVENT, EVENT]


@pytest.mark.parametrize("secret", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64", "any text"])
def test_events_are_signed_as_standard_webhooks_are(secret: str) -> None:
    headers = signature_headers("msg_1", b'{"a": 1}', secret)
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") if secret.startswith("whsec_M") else secret.encode()
    signed = f"msg_1.{headers['webhook-timestamp']}.".encode() + b'{"a": 1}'
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert signature_headers("msg_1", b"", None).keys() == {"webhook-id", "webhook-timestamp"}


def test_a_signed_event_keeps_its_id_when_it_is_sent_again(outbox: Path) -> None:
    seen: list[Any] = []
    outbox_of(outbox).put(EVENT)
    headers: list[dict[str, str]] = []
    with webhook(500, seen, headers) as url:
        outbox_of(outbox, url, "secret").deliver()
    with webhook(200, seen, headers) as url:
        outbox_of(outbox, url, "secret").deliver()
    assert headers[0]["webhook-id"] == headers[1]["webhook-id"]
    assert headers[1]["webhook-signature"].startswith("v1,")


def test_a_receiver_that_drips_bytes_is_left_at_the_deadline(outbox: Path) -> None:
    outbox_of(outbox).put(EVENT)
    with webhook("drips", []) as url:
        began = time.monotonic()
        assert not outbox_of(outbox, url).deliver(total_s=1)
    assert time.monotonic() - began < 30
    assert len(outbox_of(outbox).waiting()) == 1


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999/", "nonsense", "http://a\x00b/"])
def test_no_address_makes_delivery_fail_loudly(outbox: Path, url: str) -> None:
    outbox_of(outbox).put(EVENT)
    assert not outbox_of(outbox, url).deliver()


def test_the_outbox_is_bounded_and_never_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outbox = tmp_path / "outbox"
    (tmp_path / "outbox").mkdir()
    for number in range(MAX_WAITING):
        (tmp_path / "outbox" / f"{number:020}-x.json").write_text("{}")
    outbox_of(outbox).put(EVENT)
    assert len(outbox_of(outbox).waiting()) == MAX_WAITING
    assert "is dropped" in caplog.text
    shutil.rmtree(tmp_path / "outbox")
    (tmp_path / "outbox").write_text("a file is in the way")
    outbox_of(outbox).put(EVENT)
    assert "webhook at 127.0.0.1 will not hear of publication of code" in caplog.text


@pytest.mark.parametrize("url", ["http://[::1", "http://host:99999/", "ftp://host/", "http://", "hooks"])
def test_a_malformed_address_is_an_error_of_the_configuration(tmp_path: Path, url: str) -> None:
    (tmp_path / "nornweave.yaml").write_text(json.dumps({"webhook": url}))
    with pytest.raises(ConfigError, match="webhook"):
        load_settings(tmp_path / "nornweave.yaml")


def test_kafka_has_the_events_of_a_domain_in_their_order(tmp_path: Path) -> None:
    # The client library brings brokers that speak Kafka's protocol on sockets of this machine.
    brokers = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = brokers.list_topics(timeout=60).brokers.values()
    address = f"{broker.host}:{broker.port}"
    outbox = Outbox(tmp_path / "outbox", KafkaTopic(address))
    for event in NUMBERED:
        outbox.put(event)
    ids = [file.stem for file in outbox.waiting()]
    assert outbox.deliver(total_s=60) and outbox.waiting() == []
    reader = Consumer(
        {"bootstrap.servers": address, "group.id": "test", "auto.offset.reset": "earliest", "log_level": 0}
    )
    reader.subscribe([TOPIC])
    found: list[tuple[str, Any]] = []

    def read() -> bool:
        message = reader.poll(1)
        if message is not None and message.error() is None:
            assert message.key() == b"code"
            found.append((message.headers()[0][1].decode(), json.loads(message.value())))
        return len(found) == len(NUMBERED)

    until(read)
    reader.close()
    assert found == list(zip(ids, NUMBERED, strict=True))


def test_brokers_that_are_not_there_cost_the_deadline(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outbox = Outbox(tmp_path / "outbox", KafkaTopic("127.0.0.1:9"))
    outbox.put(EVENT)
    assert not outbox.deliver(total_s=0.5)
    assert len(outbox.waiting()) == 1 and "Kafka at 127.0.0.1:9" in caplog.text
