"""Encode the queries of a process: the same one once, concurrent ones together in a batch."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from nornweave.models.encoders.port import Encoder, Progress, Vectors
from nornweave.models.encoders.tokens import EncodedQuery, encode_queries

_REMEMBERED = 256
MOST_TOGETHER = 8
"""Queries of a batch: int8 takes 6 ms for one alone; for each of 2, 4 and 8 together 3.7, 2.9 and 2.6."""


@dataclass(slots=True, eq=False)
class _Query:
    """A query that waits for its vector, or for its turn to encode ``batch``, to which it belongs."""

    text: str
    woken: threading.Event = field(default_factory=threading.Event)
    batch: list[_Query] | None = None
    encoded: EncodedQuery | None = None
    error: BaseException | None = None


class BatchedQueries:
    """An encoder whose queries are encoded one batch at a time; every method may be called from any thread.

    A query that comes alone is encoded at once. Those that come meanwhile are the next batch. For models in this
    process that encode queries as they encode passages: calls to another machine need not wait for each other.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.version, self.dimensions = encoder.version, encoder.dimensions
        self.max_tokens, self.tokenizer = encoder.max_tokens, encoder.tokenizer
        self._lock = threading.Lock()
        self._is_running = False
        self._waiting: list[_Query] = []

    @property
    def waiting(self) -> int:
        """Return how many queries wait for the batch that is being encoded."""
        return len(self._waiting)

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode passages; see ``Encoder.encode``."""
        return self._encoder.encode(texts, progress=progress)

    def encode_query(self, text: str) -> Vectors:
        """Encode one query in a batch with others that wait; see ``Encoder.encode_query``."""
        return self.encoded_query(text).vector

    def encoded_query(self, text: str) -> EncodedQuery:
        """Encode one query as ``encode_query`` does, with its tokens if the encoder has them."""
        query = _Query(text)
        with self._lock:
            if self._is_running:
                self._waiting.append(query)
            else:
                self._is_running, query.batch = True, [query]
        if query.batch is None:
            query.woken.wait()
        if query.batch is not None:
            self._run(query.batch)
        if query.error is not None:
            raise query.error
        if query.encoded is None:
            raise RuntimeError("a query was woken without its vector")
        return query.encoded

    def _run(self, batch: Sequence[_Query]) -> None:
        """Encode a batch, and let a query of the next one encode that."""
        try:
            encoded = encode_queries(self._encoder, [query.text for query in batch])
            for query, own in zip(batch, encoded, strict=True):
                query.encoded = own
        except BaseException as error:
            for query in batch:
                query.error = error
        finally:
            with self._lock:
                following, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
                self._is_running = bool(following)
            for query in batch[1:]:
                query.woken.set()
            if following:
                following[0].batch = following
                following[0].woken.set()


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
        self._queries: OrderedDict[str, Future[EncodedQuery]] = OrderedDict()
        self._encoded = self._remembered = 0

    @property
    def load(self) -> EncoderLoad:
        """Return how many queries it encoded and remembered so far, and how many wait for the encoder."""
        waiting = self.encoder.waiting if isinstance(self.encoder, BatchedQueries) else 0
        return EncoderLoad(self._encoded, self._remembered, waiting)

    def known(self, text: str) -> Future[EncodedQuery] | None:
        """Return a query that was encoded lately or is being encoded."""
        with self._lock:
            future = self._queries.get(text)
            if future is not None:
                self._queries.move_to_end(text)
                self._remembered += 1
            return future

    def encode(self, text: str) -> EncodedQuery:
        """Return a query with its vectors; concurrent calls with the same text encode it once.

        Raises:
            EncoderError: the model fails; the next call tries again.
        """
        future = self.known(text)
        with self._lock:
            future = future or self._queries.get(text)
            if future is None:
                self._encoded += 1
                mine = self._queries[text] = Future()
                while len(self._queries) > _REMEMBERED:
                    self._queries.popitem(last=False)
        return future.result() if future is not None else self._encode(text, mine)

    def _encode(self, text: str, future: Future[EncodedQuery]) -> EncodedQuery:
        try:
            if isinstance(self.encoder, BatchedQueries):
                encoded = self.encoder.encoded_query(text)
            else:
                [encoded] = encode_queries(self.encoder, [text])
        except BaseException as error:
            with self._lock:
                self._queries.pop(text, None)
            future.set_exception(error)
            raise
        future.set_result(encoded)
        return encoded
