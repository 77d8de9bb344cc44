"""Picking the best: a full sort, whatever is zero and whatever is equal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nornweave.index.searching.ranked_chunks import found


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40), st.integers(0, 45))
def test_the_highest_above_zero_come_first_and_equal_ones_by_number(values: list[float], k: int) -> None:
    scores = np.array(values, np.float32)
    expected = sorted((number for number, value in enumerate(values) if value > 0), key=lambda one: (-values[one], one))
    hits = found(scores, k)
    assert hits.numbers.tolist() == expected[:k]
    assert hits.scores.tolist() == [values[number] for number in expected[:k]]
