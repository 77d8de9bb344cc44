"""Which pairs are proposed: shingles, signatures, and the S-curve of banding."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.fuse.deduplication import minhash
from nornweave.ask.fuse.deduplication.minhash import BANDS, ROWS, pairs_among_few, pairs_among_many, shingle, signatures

WORDS = [f"word{number}" for number in range(500)]


def jaccard(one: str, other: str) -> float:
    first, second = (set(zip(words, words[1:], words[2:], strict=False)) for words in (one.split(), other.split()))
    return len(first & second) / len(first | second)


def edited(words: list[str], edits: int, chance: random.Random) -> list[str]:
    places = set(chance.sample(range(len(words)), edits))
    return [f"{word}x" if place in places else word for place, word in enumerate(words)]


def pairs_of(texts: list[str]) -> set[tuple[int, int]]:
    return {(one, other) for one, other in pairs_among_many(shingle(texts)).tolist()}


def test_words_are_letters_digits_and_underscores_whatever_stands_between() -> None:
    plain, dressed = shingle(["Never delete user_id 42"]), shingle(["**never**\n> delete... `USER_ID`, 42!"])
    assert plain.word_counts().tolist() == [4]
    assert np.array_equal(plain.words, dressed.words)
    assert np.array_equal(plain.shingles, dressed.shingles)


def test_shingles_are_three_words_and_distinct() -> None:
    counted = shingle(["a b c d", "a b c a b c", "a b", "a", "", "—"])
    assert counted.word_counts().tolist() == [4, 6, 2, 1, 0, 1]  # the dash is no ASCII, which may be a letter
    assert counted.sizes().tolist() == [2, 3, 1, 1, 0, 1]


def test_texts_without_blanks_have_a_word_for_each_character() -> None:
    assert shingle(["备份每天运行", "프린터", "ひらがな"]).word_counts().tolist() == [6, 3, 4]


def test_shared_shingles_are_a_share_of_the_smaller_text() -> None:
    counted = shingle(["a b c d e", "x a b c d y z", "q r s t", ""])
    pairs = np.array([[0, 1], [1, 0], [0, 2], [0, 3], [3, 3], [2, 2]])
    # abc, bcd of abc, bcd, cde
    assert counted.shared(pairs).tolist() == pytest.approx([2 / 3, 2 / 3, 0, 0, 0, 1])
    assert counted.shared(pairs[:0]).tolist() == []
    assert shingle(["", ""]).shared(np.array([[0, 1]])).tolist() == [0]


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=12).map(" ".join), min_size=2, max_size=6))
def test_shared_shingles_are_those_of_the_sets_however_many_are_counted_at_a_time(texts: list[str]) -> None:
    counted = shingle(texts)
    sets = [set(counted.shingles[start:end].tolist()) for start, end in pairwise(counted.starts.tolist())]
    pairs = [(one, other) for one in range(len(texts)) for other in range(len(texts))]
    expected = [len(sets[a] & sets[b]) / max(min(len(sets[a]), len(sets[b])), 1) for a, b in pairs]
    for at_once in (1 << 20, 7, 1):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(minhash, "_LOOKED_FOR", at_once)
            assert counted.shared(np.array(pairs)).tolist() == expected


def test_some_texts_are_taken_in_any_order() -> None:
    texts = ["a b c d", "", "e f g", "h i", "a b c d e"]
    taken, alone = shingle(texts).take([4, 1, 0]), shingle([texts[4], texts[1], texts[0]])
    assert np.array_equal(taken.words, alone.words)
    assert taken.sizes().tolist() == alone.sizes().tolist()
    assert taken.shared(np.array([[0, 2]])).tolist() == alone.shared(np.array([[0, 2]])).tolist() == [1]


def test_hashes_are_the_same_in_every_process() -> None:
    assert signatures(shingle(["one two three four"]))[0, :3].tolist() == [1721046392, 3045065194, 808910606]


def test_equal_places_of_signatures_estimate_the_jaccard_similarity() -> None:
    chance = random.Random(3)
    words = chance.choices(WORDS, k=300)
    for edits in (0, 5, 20, 60):
        one, other = " ".join(words), " ".join(edited(words, edits, chance))
        first, second = signatures(shingle([one, other]), count=1024)
        # The standard deviation of the estimate is below .016.
        assert np.mean(first == second) == pytest.approx(jaccard(one, other), abs=0.06)


def test_banding_has_the_documented_curve() -> None:
    """``1 - (1 - s²)³²``: .95 at .3, .996 at .4."""
    chance = random.Random(4)
    met = expected = 0.0
    for _ in range(150):
        words = chance.choices(WORDS, k=60)
        one, other = " ".join(words), " ".join(edited(words, 9, chance))
        first, second = signatures(shingle([one, other])).reshape(2, BANDS, ROWS)
        met += bool(np.any(np.all(first == second, axis=1)))
        expected += 1 - (1 - jaccard(one, other) ** ROWS) ** BANDS
    assert met == pytest.approx(expected, abs=8)


def test_copies_with_a_few_edits_are_proposed() -> None:
    chance = random.Random(5)
    originals = [chance.choices(WORDS, k=chance.randint(12, 150)) for _ in range(300)]
    copies = [edited(words, len(words) // 12, chance) for words in originals]
    found = pairs_of([" ".join(words) for words in (*originals, *copies)])
    assert sum((place, place + 300) in found for place in range(300)) >= 0.98 * 300
    assert len(found) < 450  # and little else


def test_a_short_text_inside_a_long_one_is_proposed() -> None:
    chance = random.Random(6)
    vocabulary = [f"term{number}" for number in range(3000)]
    longer = [chance.choices(vocabulary, k=400) for _ in range(150)]
    parts = [words[start : start + 25] for words, start in ((words, chance.randint(0, 370)) for words in longer)]
    found = pairs_of([" ".join(words) for words in (*longer, *parts)])
    assert sum((place, place + 150) in found for place in range(150)) >= 0.98 * 150


def test_a_phrase_of_the_trade_proposes_nobody() -> None:
    chance = random.Random(7)
    licence = "licensed under the terms of the licence that comes with it"
    texts = [f"{' '.join(chance.choices(WORDS, k=80))} {licence}" for _ in range(300)]
    assert len(pairs_of(texts)) < 60


def test_a_crowd_of_equal_texts_meets_its_first_and_its_neighbours() -> None:
    found = pairs_of(["one two three four five six"] * 500)
    assert all((0, place) in found for place in range(1, 500))
    assert all((place, place + 1) in found for place in range(499))
    assert len(found) < 500 * 10


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8).map(" ".join), max_size=8))
def test_among_few_every_pair_that_shares_enough_is_proposed(texts: list[str]) -> None:
    found = {(one, other) for one, other in pairs_among_few(shingle(texts), 0.5).tolist()}
    for other, text in enumerate(texts):
        for one in range(other):
            first, second = set(texts[one].split()), set(text.split())
            if first and second and len(first & second) >= 0.5 * min(len(first), len(second)):
                assert (one, other) in found


@given(st.lists(st.text(max_size=30), max_size=12))
def test_any_text_can_be_shingled(texts: list[str]) -> None:
    counted = shingle(texts)
    assert len(counted) == len(texts)
    assert (counted.sizes() <= np.maximum(counted.word_counts(), 0)).all()
    found = pairs_among_many(counted)
    assert (found[:, 0] < found[:, 1]).all() if len(found) else found.shape == (0, 2)
