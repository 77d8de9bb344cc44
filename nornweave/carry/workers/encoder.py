"""An encoder whose passages workers encode. Without workers it encodes them itself."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import numpy as np

from nornweave.carry.object_store import ObjectStore
from nornweave.carry.workers.app import (
    CONNECT_S,
    ENCODE,
    ENCODING_QUEUE,
    EXPIRES_S,
    LARGE_QUEUE,
    TextBatch,
    celery_app,
    send_texts,
    split,
    store_vectors,
    take_vectors,
)
from nornweave.config import Settings
from nornweave.config.workspace import BROKER_PASSWORD_VARIABLE, BROKER_VARIABLE, BROKERS, WorkersSettings
from nornweave.core.errors import ConfigError, PublicationError
from nornweave.core.types import Domain
from nornweave.models.encoders.port import ALIKE, Encoder, Progress, Vectors

if TYPE_CHECKING:
    from nornweave.core.text.spans import Tokenizer

log = logging.getLogger(__name__)

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
