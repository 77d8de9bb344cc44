"""Batches of texts that workers on other machines encode: the Celery application, its worker, and the encoder.

Messages are JSON and nothing else: a message can name a batch, never a function or a model. A message is acknowledged
when its batch is stored, so that a worker that is killed loses none: the broker hands it to another after
``VISIBILITY_S``. A batch that ends the process which encodes it, or takes longer than ``LIMIT_S``, is not handed on.

Batches of texts and their vectors lie on object storage, keyed by content. The key is a digest of the encoder's version
and the texts: the same batch has the same key on every machine, so that whoever comes second finds the vectors there.
They lie at ``encodings/<encoder>/<key>``: a SHA-256 in hex, a line break, and an array as NumPy writes it. The SHA-256
is of the key and the array, so an array that was stored for other texts does not count.
"""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import numpy as np

from nornweave.carry.parts import ObjectStore
from nornweave.config import Settings
from nornweave.config.workspace import BROKER_PASSWORD_VARIABLE, BROKER_VARIABLE, BROKERS, WorkersSettings
from nornweave.core.errors import ConfigError, EncoderError, MissingObjectError, PublicationError
from nornweave.core.installation import optional
from nornweave.core.process import ALIVE_EVERY_S
from nornweave.core.types import Domain, digest
from nornweave.models.encoders.port import ALIKE, Encoder, Progress, Vectors

if TYPE_CHECKING:
    from celery import Celery

    from nornweave.core.text.spans import Tokenizer

log = logging.getLogger(__name__)

ENCODE = "nornweave.encode"
ENCODING_QUEUE, LARGE_QUEUE = "nornweave-encoding", "nornweave-encoding-large"
"""A worker looks into the first one first: a small sync does not wait behind the first sync of a large corpus."""
LIMIT_S = 120
VISIBILITY_S = 180
"""Longer than a batch may take: Redis hands a message that is not acknowledged to somebody else after that."""
CONNECT_S = 3.0
EXPIRES_S = 3_600

FOLDER = "encodings"
MESSAGE_BYTES = 128 << 10
"""Texts that are larger together travel as an object: a broker holds its messages in memory."""
KEEP = timedelta(days=7)
"""What a sync has taken is in its working file; what is here serves a sync that was killed."""
_HASH = 64


def note_while_working(app: Celery, note: Callable[[], None]) -> None:
    """Call ``note`` regularly from the message loop. If the worker hangs or loses its broker, the calls stop."""
    from celery import bootsteps

    class Noting(bootsteps.StartStopStep):  # type: ignore[misc]
        requires = ("celery.worker.components:Timer",)

        def start(self, parent: Any) -> None:
            parent.timer.call_repeatedly(ALIVE_EVERY_S, note)

    app.steps["worker"].add(Noting)


def work(app: Celery, *, name: str, processes: int) -> int:
    """Process messages until SIGTERM, and then finish the current message. Return the exit code."""
    from celery.signals import setup_logging

    setup_logging.connect(_keep_logging, weak=False)
    _settle_what_cannot_be_acknowledged()
    _drop_what_is_no_message()
    worker: Any = app.Worker(
        hostname=f"{name}@{socket.gethostname()}",
        concurrency=processes,
        pool="prefork",
        queues=[ENCODING_QUEUE, LARGE_QUEUE],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def _settle_what_cannot_be_acknowledged() -> None:
    """Keep a worker running after Redis failed to receive an acknowledgement.

    kombu 5.7 logs the error and counts the message as unfinished for ever. A worker that takes one message at a time
    then asks for no more messages, and never notices its lost connection. Redis gives the message to another worker.
    """
    from kombu.transport import redis, virtual

    class SettlingQoS(redis.QoS):
        def ack(self, delivery_tag: str) -> None:
            try:
                super().ack(delivery_tag)  # type: ignore[no-untyped-call]
            except Exception:
                virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]
                raise

    redis.Channel.QoS = SettlingQoS


def _drop_what_is_no_message() -> None:
    """Keep a worker running after an invalid entry in its Redis queue. The entry is dropped.

    kombu 5.7 parses the JSON around a message outside of its error handling. So an error ends the worker, and the
    worker that replaces it may get the next invalid entry.
    """
    from kombu.transport import redis

    module: Any = redis
    read, deliver, dropped = module.loads, module.Transport._deliver, itertools.count(1)

    def read_or_none(content: str) -> Any:
        try:
            return read(content)
        except ValueError:
            return None

    def deliver_messages(transport: Any, message: Any, queue: str) -> None:
        if _is_message(message):
            deliver(transport, message, queue)
        else:
            log.warning("dropped %d from the queue %s that was no message", next(dropped), queue)

    module.loads, module.Transport._deliver = read_or_none, deliver_messages


def _is_message(found: Any) -> bool:
    """Tell whether an entry has the fields that kombu reads before its error handling."""
    try:
        properties = found["properties"]
        encoding = properties.get("body_encoding")
        base64.b64decode(found["body"], validate=True) if encoding == "base64" else found["body"].encode()
        return isinstance(properties["delivery_tag"], str) and {"exchange", "routing_key"} <= {
            *properties["delivery_info"]
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def _keep_logging(**_: object) -> None:
    """Keep the logging of the command line. If this signal has a listener, Celery does not install its own logging."""


def celery_app(broker: str) -> Celery:
    """Return the Celery application for a broker."""
    with optional("workers", "workers"):
        from celery import Celery
    app = Celery("nornweave", broker=broker, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        result_backend=None,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # the broker is waited for, however long it is gone
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        task_acks_late=True,
        task_reject_on_worker_lost=False,
        task_acks_on_failure_or_timeout=True,
        task_time_limit=LIMIT_S,
        task_default_queue=ENCODING_QUEUE,
        task_create_missing_queues=True,
        worker_send_task_events=False,
        broker_connection_timeout=CONNECT_S,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_S,
            "socket_connect_timeout": CONNECT_S,
            "queue_order_strategy": "sorted",  # of Redis; RabbitMQ hands out from both in turn
        },
        task_publish_retry=False,
    )
    return app


Encoders = Callable[[str, str], Encoder]
"""Domain, version of the vectors that are wanted → encoder, as this machine's settings name it."""


def encode_batch(
    encoders: Encoders, objects: ObjectStore, *, domain: str, encoder: str, key: str, texts: Sequence[str] | None
) -> str:
    """Encode one batch unless its vectors are stored. Return a text that says what was done.

    ``encoder`` is the version that the vectors must have. ``texts`` is ``None`` if the texts are stored as an object.

    Raises:
        EncoderError: this machine's settings give the domain another encoder.
        PublicationError: object storage cannot be reached.
    """
    batch = receive_texts(objects, encoder, key, texts)
    if batch is None:
        return "refused: the texts are not those of the key"
    if objects.has(batch.result_key):
        return "done before"
    own = encoders(domain, encoder)
    if own.version != encoder:
        raise EncoderError(
            f"domain {domain!r}: a batch wants vectors of {encoder!r}, this worker has {own.version!r}; give both "
            "machines the same version and the same embedding settings (embedding.precision)"
        )
    written = store_vectors(objects, batch, own.encode(batch.texts))
    return "encoded" if written else "encoded, but somebody else was faster"


def run_worker(
    broker: str,
    objects: ObjectStore,
    encoders: Encoders,
    *,
    name: str,
    note: Callable[[], None],
    processes: int = 1,
) -> int:
    """Run a worker until SIGTERM, and then finish the current batch. Return the exit code of Celery's worker.

    ``note`` is called every few seconds while messages are taken.
    """
    app = celery_app(broker)
    note_while_working(app, note)

    @lru_cache(maxsize=1)
    def forget_once() -> None:
        # Here, in a process of the pool: the store's client starts threads with its first request, and a fork has none.
        try:
            forget_old(objects)
        except PublicationError as error:
            log.warning("%s", error)

    def encode(domain: str, encoder: str, key: str, texts: list[str] | None = None) -> None:
        try:
            outcome = encode_batch(encoders, objects, domain=domain, encoder=encoder, key=key, texts=texts)
        except (EncoderError, PublicationError) as error:
            log.warning("batch %s of %s: %s", key, domain, error)
        else:
            log.info("batch %s of %s: %s", key, domain, outcome)
        forget_once()

    app.task(encode, name=ENCODE)
    return work(app, name=name, processes=processes)


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Texts to encode together.

    Attributes:
        encoder: the version of the encoder.
        positions: the position of each text in the request.
    """

    encoder: str
    texts: tuple[str, ...]
    positions: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """The digest of encoder and texts, which identifies the batch."""
        return digest(self.encoder, *self.texts)

    @property
    def result_key(self) -> str:
        """The key of the object that holds the vectors."""
        return f"{FOLDER}/{digest(self.encoder)}/{self.key}"

    @property
    def texts_key(self) -> str:
        """The key of the object that holds the texts if they are too large for a message."""
        return f"{self.result_key}.json"


def split(encoder: str, texts: Sequence[str], size: int) -> Iterator[TextBatch]:
    """Yield batches of ``size`` texts of similar length, longest first, because padding costs as much as text."""
    order = sorted(range(len(texts)), key=lambda position: (-len(texts[position]), texts[position], position))
    for start in range(0, len(order), size):
        positions = tuple(order[start : start + size])
        yield TextBatch(encoder, tuple(texts[position] for position in positions), positions)


def store_vectors(objects: ObjectStore, batch: TextBatch, vectors: Vectors) -> bool:
    """Write a batch's vectors unless they exist. Return whether they were written."""
    packed = io.BytesIO()
    np.save(packed, np.ascontiguousarray(vectors, dtype=np.float32), allow_pickle=False)
    content = packed.getvalue()
    return objects.create(batch.result_key, _checksum(batch, content) + b"\n" + content)


def take_vectors(objects: ObjectStore, batch: TextBatch, dimensions: int) -> Vectors | None:
    """Return a batch's vectors; ``None`` if they are not stored yet. Damaged vectors are removed."""
    stored = _read(objects, batch.result_key)
    if stored is None:
        return None
    vectors = _unpacked(stored, batch, (len(batch.texts), dimensions))
    if vectors is None:
        log.warning("%s/%s is damaged: the batch is encoded again", objects.url, batch.result_key)
        objects.remove(batch.result_key)
    return vectors


def _read(objects: ObjectStore, key: str) -> bytes | None:
    try:
        stored = objects.read(key)
    except MissingObjectError:
        return None
    return stored.content if stored else None


def _checksum(batch: TextBatch, content: bytes) -> bytes:
    return hashlib.sha256(batch.key.encode() + content).hexdigest().encode()


def _unpacked(stored: bytes, batch: TextBatch, shape: tuple[int, int]) -> Vectors | None:
    stated, content = stored[:_HASH], stored[_HASH + 1 :]
    if _checksum(batch, content) != stated:
        return None
    try:
        vectors = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        return None
    sound = vectors.dtype == np.float32 and vectors.shape == shape and bool(np.isfinite(vectors).all())
    return vectors if sound else None


def send_texts(objects: ObjectStore, batch: TextBatch) -> list[str] | None:
    """Return the texts for a message. If they are too large, store them as an object and return ``None``."""
    if sum(map(len, batch.texts)) <= MESSAGE_BYTES:
        return list(batch.texts)
    objects.create(batch.texts_key, json.dumps(batch.texts).encode("ascii"))
    return None


def receive_texts(objects: ObjectStore, encoder: str, key: str, texts: Sequence[str] | None) -> TextBatch | None:
    """Return the batch of a message; ``None`` if its texts are missing or do not match the key."""
    if texts is None:
        stored = _read(objects, f"{FOLDER}/{digest(encoder)}/{key}.json")
        texts = json.loads(stored) if stored else ()
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    batch = TextBatch(encoder, tuple(texts))
    return batch if batch.key == key else None


def forget_old(objects: ObjectStore, now: datetime | None = None) -> int:
    """Remove encodings older than ``KEEP``. Return their number."""
    before = (now or datetime.now(UTC)) - KEEP
    old = [stored.key for stored in objects.list(FOLDER) if stored.modified < before]
    for key in old:
        objects.remove(key)
    return len(old)


# Pauses between looks double while no vectors arrive.
POLL_S, LONGEST_POLL_S = 0.05, 1.0
SMALL_SYNC = 16
"""Batches of a sync that goes before larger ones."""
LOOKED_AT = 16
"""Batches that one look asks object storage for; results come about in the order of the queue."""


class Queue(Protocol):
    """Hands batches to workers."""

    def submit(self, domain: str, batch: TextBatch, texts: list[str] | None, *, queue: str) -> None:
        """Queue a batch. ``texts`` is ``None`` if the texts are stored as an object.

        Raises:
            ConnectionError: the broker cannot be reached.
        """


class CeleryQueue:
    """The queue of a broker."""

    def __init__(self, broker: str) -> None:
        self._app = celery_app(broker)
        self._app.conf.broker_transport_options = {
            **self._app.conf.broker_transport_options,
            "socket_timeout": CONNECT_S,
            "max_retries": 1,
        }

    def submit(self, domain: str, batch: TextBatch, texts: list[str] | None, *, queue: str) -> None:
        """Queue a batch. The arguments are those of ``Queue.submit``."""
        message = {"domain": domain, "encoder": batch.encoder, "key": batch.key, "texts": texts}
        try:
            self._app.send_task(ENCODE, kwargs=message, queue=queue, expires=EXPIRES_S, retry=False)
        except Exception as error:
            # Redis, RabbitMQ and kombu raise errors of a dozen classes that share no base.
            raise ConnectionError(type(error).__name__) from error


@dataclass(slots=True)
class DistributedEncoder:
    """The encoder of a domain, helped by workers. Implements ``Encoder``.

    Every text gets its vector even if workers, broker or object storage fail. If no batch arrives for ``patience_s``,
    this machine encodes the missing batches. From then on it does not wait for workers until one of their batches
    arrives.

    Attributes:
        local: encodes queries, and the batches that no worker has encoded.
        domain: the domain whose settings name the model. Workers read their own settings.
        batch: the number of texts in a task.
        wrong: the number of batches that arrived with wrong vectors.
    """

    local: Encoder
    domain: str
    queue: Queue
    objects: ObjectStore
    batch: int
    patience_s: float
    clock: Callable[[], float] = time.monotonic
    wrong: int = 0
    _warned: set[str] = field(default_factory=set)
    _is_late: bool = False

    @property
    def version(self) -> str:
        """The version of the local encoder."""
        return self.local.version

    @property
    def dimensions(self) -> int:
        """The dimensions of the local encoder."""
        return self.local.dimensions

    @property
    def max_tokens(self) -> int:
        """The ``max_tokens`` of the local encoder."""
        return self.local.max_tokens

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the local encoder."""
        return self.local.tokenizer

    def encode_query(self, text: str) -> Vectors:
        """Return the vector of a query, which this machine encodes."""
        return self.local.encode_query(text)

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Return the vectors of passages, with the help of workers. ``progress`` is called as batches are finished."""
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        done = 0

        def arrived(batch: TextBatch, rows: Vectors) -> None:
            nonlocal done
            vectors[list(batch.positions)] = rows
            done += len(batch.texts)
            if progress is not None:
                progress(done)

        self._collect(list(split(self.version, texts, self.batch)), arrived)
        return vectors

    def _collect(self, waiting: list[TextBatch], arrived: Callable[[TextBatch, Vectors], None]) -> None:
        """Submit batches, and call ``arrived`` with each batch and its vectors.

        While workers are late, encode more and more batches on this machine.
        """
        self._is_late |= not self._submit(waiting)
        last, pause_s, encoded_here = self.clock(), POLL_S, 1
        while waiting:
            came = self._look(waiting[:LOOKED_AT])
            for batch, rows in came:
                waiting.remove(batch)
                arrived(batch, rows)
            if came:
                self._is_late, last, pause_s, encoded_here = False, self.clock(), POLL_S, 1
            elif self._is_late:
                for batch in waiting[-encoded_here:]:  # workers begin with the first
                    arrived(batch, self._encode_here(batch))
                del waiting[-encoded_here:]
                encoded_here *= 2
            elif self.clock() - last > self.patience_s:
                self._warn_once(f"no worker has returned a batch for {self.patience_s:g} s")
                self._submit(waiting)  # the broker may have lost them; doing a batch twice is harmless
                self._is_late = True
            else:
                waiting.append(waiting.pop(0))  # a batch whose worker died must not hide those behind it
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_POLL_S)

    def _submit(self, batches: Sequence[TextBatch]) -> bool:
        """Queue batches. Return whether all were queued."""
        queue = ENCODING_QUEUE if len(batches) <= SMALL_SYNC else LARGE_QUEUE
        try:
            for batch in batches:
                self.queue.submit(self.domain, batch, send_texts(self.objects, batch), queue=queue)
        except ConnectionError as error:
            self._warn_once(f"the broker cannot be reached ({error})")
            return False
        except PublicationError as error:
            self._warn_once(str(error))
            return False
        return True

    def _look(self, batches: Sequence[TextBatch]) -> list[tuple[TextBatch, Vectors]]:
        try:
            looked = [(batch, take_vectors(self.objects, batch, self.dimensions)) for batch in batches]
            return [(batch, self._verify(batch, rows)) for batch, rows in looked if rows is not None]
        except PublicationError as error:
            self._warn_once(str(error))
            return []

    def _verify(self, batch: TextBatch, rows: Vectors) -> Vectors:
        """Encode one random text of a batch on this machine. Return the batch's vectors if they agree with it.

        Otherwise encode the batch on this machine, and return these vectors.

        A writer to object storage, or a worker with a faulty processor or model, can return wrong vectors under the
        right digest.
        """
        number = secrets.randbelow(len(batch.texts))
        (own,), row = self.local.encode([batch.texts[number]]), rows[number]
        alike = float(own @ row) / (float(np.linalg.norm(own) * np.linalg.norm(row)) or 1.0)
        if alike >= ALIKE or np.array_equal(own, row):
            return rows
        self.wrong += 1
        log.warning(
            "workers: a batch of %s is not of its texts (one vector has a cosine of %.3f, expected %g); it is "
            "encoded on this machine; %d so far: look at who may write to %s",
            self.domain, alike, ALIKE, self.wrong, self.objects.url,
        )  # fmt: skip
        self.objects.remove(batch.result_key)
        return self._encode_here(batch)

    def _encode_here(self, batch: TextBatch) -> Vectors:
        rows = self.local.encode(batch.texts)
        try:
            store_vectors(self.objects, batch, rows)  # a worker that comes to it later has nothing to do
        except PublicationError as error:
            self._warn_once(str(error))
        return rows

    def _warn_once(self, reason: str) -> None:
        """Log a reason only once, not for every window of texts."""
        if reason not in self._warned:
            self._warned.add(reason)
            log.warning("workers: %s; %s encodes on this machine what they do not", reason, self.domain)


def workers_of(settings: Settings) -> WorkersSettings:
    """Return the settings of workers.

    Raises:
        ConfigError: no workers are configured.
    """
    if settings.workers is None:
        raise ConfigError(f"{settings.file}: key 'workers' is missing; it says where batches queue: docs/workers.md")
    return settings.workers


def broker_of(workers: WorkersSettings, environment: Mapping[str, str] | None = None) -> str:
    """Return the broker's address with its password, which must never be shown.

    A password in its own variable may hold any character. A password in an address must be percent-encoded.

    Raises:
        ConfigError: neither the environment nor the settings name a broker.
    """
    environment = os.environ if environment is None else environment
    address = environment.get(BROKER_VARIABLE) or workers.broker
    if not address:
        raise ConfigError(f"workers.broker: is missing; name it there, or with its password in {BROKER_VARIABLE}")
    if address.partition("://")[0] not in BROKERS:
        raise ConfigError(f"{BROKER_VARIABLE}: expected an address that begins with {', '.join(BROKERS)}")
    if password := environment.get(BROKER_PASSWORD_VARIABLE):
        scheme, _, place = address.partition("://")
        user, _, host = place.rpartition("@")
        return f"{scheme}://{user.partition(':')[0]}:{quote(password, safe='')}@{host}"
    return address


def distributed(settings: Settings, domain: Domain, local: Encoder) -> Encoder:
    """Return the domain's encoder, with workers if the settings name a broker."""
    workers = settings.workers
    if workers is None or not (workers.broker or os.environ.get(BROKER_VARIABLE)):
        return local
    return DistributedEncoder(
        local=local,
        domain=domain.value,
        queue=CeleryQueue(broker_of(workers)),
        objects=ObjectStore(workers.store),
        batch=workers.batch,
        patience_s=workers.patience_s,
    )
