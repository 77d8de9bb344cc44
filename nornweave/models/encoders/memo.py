"""Encode a query once, although four domains ask for it at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future

from nornweave.models.encoders.port import Encoder, Vectors

_REMEMBERED = 256


class QueryMemo:
    """Remembers the vectors of the last queries; every method may be called from any thread."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._lock = threading.Lock()
        self._vectors: OrderedDict[str, Future[Vectors]] = OrderedDict()

    def encode(self, text: str) -> Vectors:
        """Return the vector of a query; concurrent calls with the same text encode it once.

        Raises:
            EncoderError: the model fails; the next call tries again.
        """
        with self._lock:
            future = self._vectors.get(text)
            if future is not None:
                self._vectors.move_to_end(text)
            else:
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
