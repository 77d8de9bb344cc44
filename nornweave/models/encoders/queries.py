"""Encode the queries of a process: the same one once, concurrent ones together in a batch."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from nornweave.models.encoders.port import Encoder
from nornweave.models.encoders.tokens import EncodedQuery, encode_queries

REMEMBERED = 1024
MOST_TOGETHER = 8
"""Queries of a batch: int8 takes 6 ms for one alone; for each of 2, 4 and 8 together 3.7, 2.9 and 2.6."""
THREADS = 8
"""For encoders on other machines, of which one may hang: those who ask are waiting elsewhere."""


class EncoderLoad(NamedTuple):
    """Queries that were encoded, those whose vector was remembered, and those that wait for the encoder."""

    encoded: int
    remembered: int
    waiting: int


class QueryMemo:
    """Encodes queries and remembers the vectors of the last ones; every method may be called from any thread.

    Args:
        encoder: of passages and queries.
        together: encode one batch at a time, and in the next one those that come meanwhile. For models in this process
            that encode queries as they encode passages: calls to another machine need not wait for each other.
    """

    def __init__(self, encoder: Encoder, *, together: bool = False) -> None:
        self.encoder = encoder
        self._most = MOST_TOGETHER if together else 1
        self._threads = ThreadPoolExecutor(1 if together else THREADS, thread_name_prefix="dense-queries")
        self._lock = threading.Lock()
        self._queries: OrderedDict[str, Future[EncodedQuery]] = OrderedDict()
        self._waiting: list[tuple[str, Future[EncodedQuery]]] = []
        self._encoded = self._remembered = 0

    @property
    def load(self) -> EncoderLoad:
        """Return how many queries it encoded and remembered so far, and how many wait for the encoder."""
        return EncoderLoad(self._encoded, self._remembered, len(self._waiting))

    def begin(self, text: str) -> Future[EncodedQuery]:
        """Begin to encode a query, unless it was encoded lately or is being encoded; others may hold the future too.

        Its error is an ``EncoderError``: the model fails; the next call tries again.
        """
        with self._lock:
            if (known := self._queries.get(text)) is not None:
                self._queries.move_to_end(text)
                self._remembered += 1
                return known
            future = self._queries[text] = Future()
            while len(self._queries) > REMEMBERED:
                self._queries.popitem(last=False)
            self._waiting.append((text, future))
            self._encoded += 1
        self._threads.submit(self._run)
        return future

    def encode(self, text: str) -> EncodedQuery:
        """Return a query with its vectors; raises ``EncoderError``, as ``begin`` says."""
        return self.begin(text).result()

    def _run(self) -> None:
        """Encode those that wait, as far as an earlier batch did not take them along."""
        with self._lock:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        if not batch:
            return
        try:
            encoded = encode_queries(self.encoder, [text for text, _ in batch])
        except BaseException as error:
            with self._lock:
                for text, _ in batch:
                    self._queries.pop(text, None)
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), own in zip(batch, encoded, strict=True):
            future.set_result(own)
