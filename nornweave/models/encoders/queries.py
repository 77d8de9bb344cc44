"""Encode the queries of a process: each once, concurrent ones in one batch."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from nornweave.models.encoders.port import EncodedQuery, Encoder, encode_queries

REMEMBERED = 2048
MOST_TOGETHER = 8
"""Queries of a batch: int8 takes 6 ms for one alone; for each of 2, 4 and 8 together 3.7, 2.9 and 2.6."""
THREADS = 8
"""For encoders on other machines, of which one may hang: those who ask are waiting elsewhere."""


class EncoderLoad(NamedTuple):
    """The numbers of queries that were encoded, were found in memory, and are waiting."""

    encoded: int
    remembered: int
    waiting: int


class QueryMemo:
    """Encodes queries and keeps the vectors of recent ones. Every method is thread-safe.

    Args:
        encoder: encodes the queries.
        together: encode one batch at a time, and collect new queries for the next batch. This suits models in this
            process that encode queries like passages. It does not suit models on another machine, because calls to
            them need not wait for each other.
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
        """Return the counts of queries so far."""
        return EncoderLoad(self._encoded, self._remembered, len(self._waiting))

    def begin(self, text: str) -> Future[EncodedQuery]:
        """Begin to encode a query and return its future. Equal recent queries share one future.

        If the model fails, the future has an ``EncoderError``, and the next call tries again.
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
        """Return a query with its vectors. Raises ``EncoderError``, like ``begin``."""
        return self.begin(text).result()

    def _run(self) -> None:
        """Encode the next batch of waiting queries, if there are any."""
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
