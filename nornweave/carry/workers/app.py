"""The Celery application and its worker: what is queued, how long it may take, and who encodes and stores it.

Messages are JSON and nothing else: a message can name a batch, never a function or a model. A message is acknowledged
when its batch is stored, so that a worker that is killed loses none: the broker hands it to another after
``VISIBILITY_S``. A batch that ends the process which encodes it, or takes longer than ``LIMIT_S``, is not handed on.
"""

from __future__ import annotations

import base64
import itertools
import logging
import socket
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nornweave.carry.object_store import ObjectStore
from nornweave.carry.workers.batches import forget_old, receive_texts, store_vectors
from nornweave.core.errors import EncoderError, PublicationError
from nornweave.core.installation import optional
from nornweave.core.process import ALIVE_EVERY_S
from nornweave.models.encoders.port import Encoder

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)

ENCODE = "nornweave.encode"
ENCODING_QUEUE, LARGE_QUEUE = "nornweave-encoding", "nornweave-encoding-large"
"""A worker looks into the first one first: a small sync does not wait behind the first sync of a large corpus."""
LIMIT_S = 120
VISIBILITY_S = 180
"""Longer than a batch may take: Redis hands a message that is not acknowledged to somebody else after that."""
CONNECT_S = 3.0
EXPIRES_S = 3_600


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
