"""Queries are encoded once, by whoever asks first; failures are nobody's for good."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.errors import EncoderError
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import REMEMBERED, QueryMemo

THREADS = 8


class Counting(HashEncoder):
    """Counts what it encodes; ``hold`` keeps callers waiting, ``broken`` fails them."""

    def __init__(self) -> None:
        super().__init__(8)
        self.texts: list[str] = []
        self.entered, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.broken = False

    def encode_query(self, text: str) -> Any:
        self.texts.append(text)
        self.entered.set()
        assert self.go.wait(30)
        if self.broken:
            raise EncoderError("out of order")
        return super().encode_query(text)


def test_the_same_query_is_encoded_once() -> None:
    encoder = Counting()
    memo = QueryMemo(encoder)
    vectors = [memo.encode(text).vector for text in ("a", "b", "a", "a")]
    assert encoder.texts == ["a", "b"]
    assert np.array_equal(vectors[0], HashEncoder(8).encode_query("a"))
    assert vectors[0] is vectors[2]


def test_who_asks_meanwhile_waits_for_the_first() -> None:
    encoder = Counting()
    encoder.go.clear()
    memo = QueryMemo(encoder)
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(memo.encode, "a") for _ in range(THREADS)]
        assert encoder.entered.wait(30)
        encoder.go.set()
        vectors = [future.result(30) for future in futures]
    assert encoder.texts == ["a"]
    assert all(vector is vectors[0] for vector in vectors)


def test_different_queries_do_not_wait_for_each_other() -> None:
    encoder = Counting()
    encoder.go.clear()
    memo = QueryMemo(encoder)
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(memo.encode, f"{number}") for number in range(THREADS)]
        while len(encoder.texts) < THREADS:
            assert encoder.entered.wait(30)
        encoder.go.set()
        assert len({future.result(30).vector.tobytes() for future in futures}) == THREADS


def test_a_failure_reaches_everybody_who_waited_and_is_forgotten() -> None:
    encoder = Counting()
    encoder.broken = True
    encoder.go.clear()
    memo = QueryMemo(encoder)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(memo.encode, "a") for _ in range(3)]
        assert encoder.entered.wait(30)
        encoder.go.set()
        for future in futures:
            with pytest.raises(EncoderError, match="out of order"):
                future.result(30)
    encoder.broken = False
    assert np.array_equal(memo.encode("a").vector, HashEncoder(8).encode_query("a"))


def test_the_oldest_are_forgotten_first() -> None:
    encoder = Counting()
    memo = QueryMemo(encoder)
    for number in range(REMEMBERED):
        memo.encode(f"{number}")
    memo.encode("0")  # used again: now the youngest
    memo.encode("new")
    assert len(encoder.texts) == REMEMBERED + 1
    memo.encode("0")
    assert len(encoder.texts) == REMEMBERED + 1
    memo.encode("1")
    assert encoder.texts[-1] == "1", "forgotten for the new one"
    assert len(memo._queries) == REMEMBERED


@given(st.lists(st.text(max_size=4), max_size=30))
def test_a_memo_changes_no_vector(texts: list[str]) -> None:
    encoder = Counting()
    memo = QueryMemo(encoder)
    for text in texts:
        assert np.array_equal(memo.encode(text).vector, HashEncoder(8).encode_query(text))
    assert encoder.texts == list(dict.fromkeys(texts))
