"""Texts encoded by workers in processes of their own, over a real broker."""

import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import redis
from redis_server import RedisServer
from waiting import HANGS_S, SOON_S, until
from worker_process import WorkerProcess, write_config

from nornweave.carry.parts import ObjectStore
from nornweave.carry.workers import (
    ENCODING_QUEUE,
    LARGE_QUEUE,
    CeleryQueue,
    DistributedEncoder,
    TextBatch,
    celery_app,
    split,
    store_vectors,
    take_vectors,
)
from nornweave.config.workspace import ObjectStoreSettings
from nornweave.core.errors import EncoderError
from nornweave.core.process import ALIVE
from nornweave.models.encoders.hashing import HashEncoder

pytestmark = pytest.mark.slow
PAUSE_S = 3.0
TEXTS = [f"text number {number} about {'refunds ' * (number % 7)}" for number in range(300)]


class CountingEncoder(HashEncoder):
    """The encoder of the sync; counts what is encoded there."""

    here = 0

    def encode(self, texts, *, progress=None):
        self.here += len(texts)
        return super().encode(texts, progress=progress)


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(ObjectStoreSettings(url=f"file://{tmp_path}/objects"))


@pytest.fixture
def workers() -> Iterator[list[WorkerProcess]]:
    started: list[WorkerProcess] = []
    yield started
    for worker in started:
        worker.kill()


def distributed(broker: RedisServer, objects: ObjectStore, *, patience_s: float = HANGS_S) -> DistributedEncoder:
    return DistributedEncoder(
        local=CountingEncoder(64),
        domain="documentation",
        queue=CeleryQueue(broker.url),
        objects=objects,
        batch=16,
        patience_s=patience_s,
    )


def start(workers: list[WorkerProcess], tmp_path: Path, name: str, broker: RedisServer, objects: ObjectStore) -> None:
    workers.append(WorkerProcess(write_config(tmp_path / name, broker=broker.url, objects=objects.url)))


def test_two_workers_encode_what_one_machine_would_have(broker, objects, workers, tmp_path):
    for name in ("one", "two"):
        start(workers, tmp_path, name, broker, objects)
    encoder, told = distributed(broker, objects), []

    vectors = encoder.encode(TEXTS, progress=told.append)

    assert np.array_equal(vectors, HashEncoder(64).encode(TEXTS))
    assert encoder.local.here == -(-len(TEXTS) // 16)  # one of each batch, to compare
    assert told[-1] == len(TEXTS)
    assert told == sorted(told)
    until((tmp_path / "one/var" / ALIVE).exists, within_s=HANGS_S)  # a probe is told that it works


def test_a_small_sync_goes_before_a_large_one(broker, objects, workers, tmp_path):
    queue, version = CeleryQueue(broker.url), HashEncoder(64).version
    small = list(split(version, [f"change {number}" for number in range(6)], 1))
    for name, batches in ((LARGE_QUEUE, split(version, TEXTS, 6)), (ENCODING_QUEUE, small)):
        for batch in batches:
            queue.submit("documentation", batch, list(batch.texts), queue=name)
    start(workers, tmp_path, "one", broker, objects)
    until(lambda: workers[0].text().count(": encoded") == len(TEXTS) // 6 + 6, within_s=HANGS_S)
    done = re.findall(r"batch (\w+) of documentation: encoded", workers[0].text())
    assert {batch.key for batch in small} <= {*done[:7]}  # one may come before it has learnt of its second queue


def test_a_killed_worker_loses_no_batch(broker, objects, workers, tmp_path):
    start(workers, tmp_path, "one", broker, objects)
    encoder, killed = distributed(broker, objects, patience_s=0.5), []

    def kill_then_start_another(done: int) -> None:
        if not killed:
            killed.append(done)
            workers[0].kill()
            start(workers, tmp_path, "two", broker, objects)

    vectors = encoder.encode(TEXTS, progress=kill_then_start_another)

    assert killed
    assert np.array_equal(vectors, HashEncoder(64).encode(TEXTS))


def test_without_a_worker_the_sync_encodes_itself_and_says_so(broker, objects, caplog):
    encoder = distributed(broker, objects, patience_s=0.1)
    with caplog.at_level(logging.WARNING):
        vectors = encoder.encode(TEXTS)
    assert np.array_equal(vectors, HashEncoder(64).encode(TEXTS))
    assert "no worker has returned a batch for 0.1 s" in caplog.text


def test_a_broker_that_is_down_delays_nothing(broker, objects, caplog):
    broker.kill()
    encoder = distributed(broker, objects)  # whoever waited for a worker would wait for minutes
    with caplog.at_level(logging.WARNING):
        vectors = encoder.encode(TEXTS)
    assert np.array_equal(vectors, HashEncoder(64).encode(TEXTS))
    assert encoder.local.here == len(TEXTS)
    assert caplog.text.count("the broker cannot be reached") == 1


def test_workers_come_back_after_the_broker_was_killed(broker, objects, workers, tmp_path):
    start(workers, tmp_path, "one", broker, objects)
    assert distributed(broker, objects).encode(TEXTS[:16]).shape == (16, 64)
    broker.kill()
    broker.start()
    encoder = distributed(broker, objects)

    vectors = encoder.encode(TEXTS)

    assert np.array_equal(vectors, HashEncoder(64).encode(TEXTS))
    assert encoder.local.here == -(-len(TEXTS) // 16)


def test_a_worker_goes_on_after_its_broker_was_killed_while_it_encoded(broker, objects, workers, tmp_path):
    start(workers, tmp_path, "one", broker, objects)
    slow = ["refund " * 1_000_000]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(distributed(broker, objects, patience_s=PAUSE_S).encode, slow)
        until(lambda: "received" in workers[0].text())
        broker.kill()
        until(lambda: "Couldn't ack" in workers[0].text())
        broker.start()
        first.result()
    encoder = distributed(broker, objects, patience_s=SOON_S)

    encoder.encode(TEXTS[:32])

    assert encoder.local.here == 2


def test_a_batch_that_is_there_is_not_encoded_again(broker, objects, workers, tmp_path):
    (batch,) = split(HashEncoder(64).version, TEXTS[:10], 16)
    stored = HashEncoder(64).encode(batch.texts) * np.float32(2)  # no encoder returns these
    store_vectors(objects, batch, stored)
    start(workers, tmp_path, "one", broker, objects)

    vectors = distributed(broker, objects).encode(TEXTS[:10])

    assert np.array_equal(vectors[list(batch.positions)], stored)


def test_vectors_of_something_else_under_the_right_digest_are_not_taken(objects, caplog):
    class Liar:
        def submit(self, domain, batch, texts, *, queue) -> None:
            store_vectors(objects, batch, np.ones((len(batch.texts), 64), dtype=np.float32))

    for wrong in (-(-len(TEXTS) // 16), 0):  # then ours lie in their place
        encoder = DistributedEncoder(
            local=CountingEncoder(64), domain="code", queue=Liar(), objects=objects, batch=16, patience_s=HANGS_S
        )
        assert np.array_equal(encoder.encode(TEXTS), HashEncoder(64).encode(TEXTS))
        assert encoder.wrong == wrong
    assert "a batch of code is not of its texts" in caplog.text


def test_large_texts_travel_as_an_object(broker, objects, workers, tmp_path):
    start(workers, tmp_path, "one", broker, objects)
    texts = [f"{number} " + "é\ud800 long " * 3_000 for number in range(20)]
    encoder = distributed(broker, objects)
    assert np.array_equal(encoder.encode(texts), HashEncoder(64).encode(texts))
    assert encoder.local.here == 2
    assert any(one.key.endswith(".json") for one in objects.list("encodings"))


def test_a_damaged_result_is_encoded_again(objects):
    (batch,) = split("hash:64:1", TEXTS[:4], 16)
    store_vectors(objects, batch, HashEncoder(64).encode(batch.texts))
    stored = bytearray(objects.read(batch.result_key).content)
    stored[-1] ^= 1
    objects.remove(batch.result_key)
    objects.create(batch.result_key, bytes(stored))

    assert take_vectors(objects, batch, 64) is None
    assert store_vectors(objects, batch, HashEncoder(64).encode(batch.texts))
    assert take_vectors(objects, batch, 64) is not None


def test_a_message_that_is_not_json_is_not_read(broker, objects, workers, tmp_path):
    start(workers, tmp_path, "one", broker, objects)
    app = celery_app(broker.url)
    app.conf.update(task_serializer="pickle", accept_content=["pickle", "json"])
    app.send_task("nornweave.encode", kwargs={"domain": "documentation"}, queue=ENCODING_QUEUE)
    until(lambda: "Refusing to deserialize" in workers[0].text() or "ContentDisallowed" in workers[0].text())
    assert distributed(broker, objects).encode(TEXTS[:16]).shape == (16, 64)  # and the worker goes on


NO_MESSAGES = [
    b"no JSON", b"\xff\xfe", b"[]", b"7", b"{}", b'{"properties": 7}', b'{"body": "!", "properties": {}}',
    b'{"body": "!!", "properties": {"body_encoding": "base64", "delivery_tag": "x", "delivery_info": {}}}',
]  # fmt: skip


def test_what_is_no_message_is_dropped_and_counted_and_the_worker_goes_on(broker, objects, workers, tmp_path):
    start(workers, tmp_path, "one", broker, objects)
    with redis.Redis(port=broker.port) as client:
        client.lpush(ENCODING_QUEUE, *NO_MESSAGES)
    encoder = distributed(broker, objects)
    assert encoder.encode(TEXTS[:16]).shape == (16, 64)
    assert encoder.local.here == 1
    assert f"dropped {len(NO_MESSAGES)} from the queue" in workers[0].text()
    assert workers[0].process.poll() is None


class CountingStore:
    """An object store that counts what it is asked."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.asked = 0

    def __getattr__(self, name: str):
        self.asked += 1
        return getattr(self._store, name)


def test_without_workers_the_store_is_asked_about_twice_for_each_batch(objects):
    class Nobody:
        def submit(self, domain, batch, texts, *, queue) -> None: ...

    counting = CountingStore(objects)
    encoder = DistributedEncoder(
        local=CountingEncoder(64), domain="code", queue=Nobody(), objects=counting, batch=1, patience_s=0.2
    )
    vectors = encoder.encode(TEXTS)
    assert np.array_equal(vectors, HashEncoder(64).encode(TEXTS))
    assert counting.asked < 2 * len(TEXTS)
    counting.asked, again = 0, [f"{text} again" for text in TEXTS[:100]]
    encoder.encode(again)
    assert counting.asked < 2.5 * len(again), "nobody is waited for in the next window"


def test_vectors_that_were_stored_for_other_texts_are_not_taken(objects):
    one, other = (next(split("hash:64:1", texts, 16)) for texts in (TEXTS[:4], TEXTS[4:8]))
    store_vectors(objects, one, HashEncoder(64).encode(one.texts))
    objects.create(other.result_key, objects.read(one.result_key).content)
    assert take_vectors(objects, other, 64) is None


def test_a_worker_with_another_model_refuses_the_batch(objects):
    from nornweave.carry.workers import encode_batch

    batch = TextBatch("another model", ("text",))
    with pytest.raises(EncoderError, match="wants vectors of 'another model', this worker has 'hash:64:1'"):
        encode_batch(
            lambda domain, version: HashEncoder(64), objects, domain="code", encoder=batch.encoder, key=batch.key,
            texts=list(batch.texts),
        )  # fmt: skip


def test_texts_that_are_not_those_of_the_key_are_refused(objects):
    from nornweave.carry.workers import encode_batch

    outcome = encode_batch(
        lambda domain, version: HashEncoder(64), objects, domain="code", encoder="hash:64:1", key="0" * 32,
        texts=["planted"],
    )  # fmt: skip
    assert outcome.startswith("refused")
    assert not list(objects.list("encodings"))
