"""Encode a query once, although four domains ask for it at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import NamedTuple

from nornweave.models.encoders.batching import BatchedQueries
from nornweave.models.encoders.port import Encoder, Vectors

_REMEMBERED = 256


class EncoderLoad(NamedTuple):
    """Queries that were encoded, those whose vector was remembered, and those that wait for the encoder."""

    encoded: int
    remembered: int
    waiting: int


class QueryMemo:
    """Remembers the vectors of the last queries; every method may be called from any thread."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._lock = threading.Lock()
        self._vectors: OrderedDict[str, Future[Vectors]] = OrderedDict()
        self._encoded = self._remembered = 0

    @property
    def load(self) -> EncoderLoad:
        """Return how many queries it encoded and remembered so far, and how many wait for the encoder."""
        waiting = self.encoder.waiting if isinstance(self.encoder, BatchedQueries) else 0
        return EncoderLoad(self._encoded, self._remembered, waiting)

    def encode(self, text: str) -> Vectors:
        """Return the vector of a query; concurrent calls with the same text encode it once.

        Raises:
            EncoderError: the model fails; the next call tries again.
        """
        with self._lock:
            future = self._vectors.get(text)
            if future is not None:
                self._vectors.move_to_end(text)
                self._remembered += 1
            else:
                self._encoded += 1
                mine = self._vectors[text] = Future()
                while len(self._vectors) > _REMEMBERED:
                    self._vectors.popitem(last=False)
        return future.result() if future is not None else self._encode(text, mine)

    def _encode(self, text: str, future: Future[Vectors]) -> Vectors:
        try:
            vector = self.encoder.encode_query(text)
        except BaseException as error:
            with self._lock:
                self._vectors.pop(text, None)
            future.set_exception(error)
            raise
        future.set_result(vector)
        return vector
