"""A worker: takes batches from the broker, encodes them and stores the vectors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache

from nornweave.core.errors import EncoderError, PublicationError
from nornweave.index.object_store import ObjectStore
from nornweave.models.encoders.port import Encoder
from nornweave.share.workers.app import ENCODE, celery_app, note_while_working, work
from nornweave.share.workers.batches import forget_old, receive_texts, store_vectors

log = logging.getLogger(__name__)


Encoders = Callable[[str, str], Encoder]
"""Domain, version of the vectors that are wanted → encoder, as this machine's settings name it."""


def encode_batch(
    encoders: Encoders, objects: ObjectStore, *, domain: str, encoder: str, key: str, texts: Sequence[str] | None
) -> str:
    """Encode one batch unless its vectors are there; return what was done.

    Raises:
        EncoderError: this machine's settings give the domain another encoder.
        PublicationError: object storage cannot be reached.
    """
    batch = receive_texts(objects, encoder, key, texts)
    if batch is None:
        return "refused: the texts are not those of the key"
    if objects.look(batch.result_key):
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
    """Work until the process is told to end; SIGTERM finishes the batch in hand first. Return the exit code.

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
