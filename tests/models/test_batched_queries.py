"""Queries that come while one is encoded are encoded together, each gets its own vector, and nothing waits for ever."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from waiting import WITHIN_S

from nornweave.core.errors import EncoderError
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import MOST_TOGETHER, Progress, QueryMemo, Vectors


class SlowEncoder(HashEncoder):
    """Waits before the first query until it is told to go on, and notes what it encoded together."""

    def __init__(self) -> None:
        super().__init__(64)
        self.started, self.may_go_on = threading.Event(), threading.Event()
        self.batches: list[int] = []

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        self.batches.append(len(texts))
        if "broken" in texts:
            raise EncoderError("broken")
        return np.stack([super(SlowEncoder, self).encode_query(text) for text in texts])

    def encode_query(self, text: str) -> Vectors:
        self.batches.append(1)
        self.started.set()
        assert self.may_go_on.wait(WITHIN_S)
        if text == "broken":
            raise EncoderError("broken")
        return super().encode_query(text)


@pytest.mark.parametrize("count", [1, 2, MOST_TOGETHER + 3])
def test_those_that_come_meanwhile_are_encoded_together(count: int) -> None:
    encoder = SlowEncoder()
    queries = QueryMemo(encoder, together=True)
    texts = [f"question {number}" for number in range(count)]
    first = queries.begin("first")
    assert encoder.started.wait(WITHIN_S)
    others = [queries.begin(text) for text in texts]
    assert queries.load.waiting == count
    encoder.may_go_on.set()
    found = {text: future.result(WITHIN_S).vector for text, future in zip(texts, others, strict=True)}
    assert np.array_equal(first.result(WITHIN_S).vector, HashEncoder(64).encode_query("first"))
    assert all(np.array_equal(found[text], HashEncoder(64).encode_query(text)) for text in texts)
    assert encoder.batches == [1, min(count, MOST_TOGETHER), *([3] if count > MOST_TOGETHER else [])]


def test_a_query_alone_is_encoded_at_once() -> None:
    encoder = SlowEncoder()
    encoder.may_go_on.set()
    queries = QueryMemo(encoder, together=True)
    for text in ("one", "two"):
        assert np.array_equal(queries.encode(text).vector, HashEncoder(64).encode_query(text))
    assert encoder.batches == [1, 1]


def test_an_error_reaches_everybody_of_its_batch_nobody_else_and_is_forgotten() -> None:
    encoder = SlowEncoder()
    queries = QueryMemo(encoder, together=True)
    first = queries.begin("first")
    assert encoder.started.wait(WITHIN_S)
    others = [queries.begin(text) for text in ("broken", "a", "b")]
    encoder.may_go_on.set()
    assert np.array_equal(first.result(WITHIN_S).vector, HashEncoder(64).encode_query("first"))
    for future in others:
        with pytest.raises(EncoderError, match="broken"):
            future.result(WITHIN_S)
    assert np.array_equal(queries.encode("a").vector, HashEncoder(64).encode_query("a"))
