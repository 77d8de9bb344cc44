"""The labelled pairs are what their README says, and deduplication reaches on them what it must."""

from collections import Counter

import pytest

from lab.duplicates import LabelledPair, MeasuredPairs, embed, judge, measure, read_pairs
from nornweave.models.encoders.port import Wanted


@pytest.fixture(scope="module")
def pairs() -> tuple[LabelledPair, ...]:
    return read_pairs()


def test_the_set_is_large_and_mostly_hard(pairs: tuple[LabelledPair, ...]) -> None:
    assert len(pairs) >= 160
    assert sum(not pair.duplicate for pair in pairs) >= len(pairs) / 2
    assert max(Counter(pair.id for pair in pairs).values()) == 1
    for split in ("dev", "test"):
        labels = Counter(pair.duplicate for pair in pairs if pair.split == split)
        assert min(labels.values()) >= 30
    assert all(pair.note and pair.a.text.strip() and pair.b.text.strip() for pair in pairs)


def test_no_pair_stands_in_both_splits(pairs: tuple[LabelledPair, ...]) -> None:
    texts = {split: {frozenset((p.a.text, p.b.text)) for p in pairs if p.split == split} for split in ("dev", "test")}
    assert not texts["dev"] & texts["test"]


def test_words_alone_are_precise(pairs: tuple[LabelledPair, ...]) -> None:
    for split in ("dev", "test"):
        found = measure([judge(pair) for pair in pairs if pair.split == split])
        assert found.precision >= 0.95
        assert found.f1 >= 0.90


def test_the_outcome_does_not_depend_on_which_comes_first(pairs: tuple[LabelledPair, ...]) -> None:
    for pair in pairs:
        turned = LabelledPair(pair.id, pair.b, pair.a, pair.duplicate, pair.note, pair.split)
        assert judge(pair).merged == judge(turned).merged, pair.id


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float", "int8"])
def test_words_and_vectors_reach_the_goal(pairs: tuple[LabelledPair, ...], precision: Wanted) -> None:
    vectors = embed(pairs, precision)
    for split in ("dev", "test"):
        found = measure([judge(p, v) for p, v in zip(pairs, vectors, strict=True) if p.split == split])
        assert found.f1 >= 0.90


def test_measures_are_what_they_are_called() -> None:
    found = MeasuredPairs(right=6, wrong=2, missed=4)
    assert (found.precision, found.recall) == (0.75, 0.6)
    assert found.f1 == pytest.approx(2 * 0.75 * 0.6 / (0.75 + 0.6))
    assert (MeasuredPairs(0, 0, 0).precision, MeasuredPairs(0, 0, 0).recall, MeasuredPairs(0, 0, 3).f1) == (
        1.0,
        1.0,
        0.0,
    )
