"""Batches of texts and their vectors on object storage, keyed by content.

The key is a digest of the encoder's version and the texts: the same batch has the same key on every machine, so that
whoever comes second finds the vectors there. They lie at ``encodings/<encoder>/<key>``: a SHA-256 in hex, a line break,
and an array as NumPy writes it. The SHA-256 is of the key and the array, so an array that was stored for other texts
does not count.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from nornweave.carry.object_store import ObjectStore
from nornweave.core.errors import MissingObjectError
from nornweave.core.types import digest
from nornweave.models.encoders.port import Vectors

log = logging.getLogger(__name__)

FOLDER = "encodings"
MESSAGE_BYTES = 128 << 10
"""Texts that are larger together travel as an object: a broker holds its messages in memory."""
KEEP = timedelta(days=7)
"""What a sync has taken is in its working file; what is here serves a sync that was killed."""
_HASH = 64


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
