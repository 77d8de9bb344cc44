"""Combining retrieval sources: hand calculations, and what must hold for any legs; picking the best against sorting."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.search.combine import Leg, Ranking, convex_combination, merge, on_one_scale, reciprocal_rank_fusion
from nornweave.index.port import best, found


def numbers_of(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int32)


def leg(name: str, candidates: Sequence[int], scores: Mapping[int, float], ranked: Sequence[int] | None = None) -> Leg:
    order = sorted(scores, key=lambda number: (-scores[number], number)) if ranked is None else ranked
    return Leg(name, np.array([scores.get(number, 0) for number in candidates], np.float32), numbers_of(order))


def as_dict(ranking: Ranking) -> dict[int, float]:
    return dict(zip(ranking.numbers.tolist(), ranking.scores.tolist(), strict=True))


def identical(one: Ranking, other: Ranking) -> bool:
    return (
        one.numbers.tolist() == other.numbers.tolist()
        and one.scores.tolist() == other.scores.tolist()
        and {name: part.tolist() for name, part in one.contributions.items()}
        == {name: part.tolist() for name, part in other.contributions.items()}
    )


def test_convex_by_hand() -> None:
    candidates = [7, 3, 5]
    ranking = convex_combination(
        numbers_of(candidates),
        [leg("dense", candidates, {7: 0.5, 3: 0.25}), leg("sparse", candidates, {3: 0.75, 5: 1.0})],
        {"dense": 3.0, "sparse": 1.0},
    )
    # 7: (3 · .5) / 4 · · · 3: (3 · .25 + .75) / 4 · · · 5: 1 / 4
    assert ranking.numbers.tolist() == [3, 7, 5]
    assert ranking.scores.tolist() == [0.375, 0.375, 0.25]
    assert {name: part.tolist() for name, part in ranking.contributions.items()} == {
        "dense": [0.1875, 0.375, 0.0],
        "sparse": [0.1875, 0.0, 0.25],
    }


def test_a_domains_own_weights_decide_its_order_and_not_what_it_is_worth() -> None:
    candidates, legs = (
        [1, 2, 3],
        [leg("dense", [1, 2, 3], {1: 0.8, 2: 0.4}), leg("sparse", [1, 2, 3], {2: 0.6, 3: 0.2})],
    )
    own = convex_combination(numbers_of(candidates), legs, {"dense": 0.9, "sparse": 0.1})
    ranking = on_one_scale(own, numbers_of(candidates), legs, {"dense": 0.5, "sparse": 0.5})
    assert ranking.numbers.tolist() == [1, 2, 3]
    assert ranking.scores.tolist() == pytest.approx([0.72, 0.42, 0.02])
    # 2 is worth (.4 + .6) / 2, 1 is worth .4 and 3 is worth .1: the places are worth that, whoever takes them.
    assert ranking.places.tolist() == pytest.approx([0.5, 0.4, 0.1])


def test_a_source_that_did_not_answer_still_counts_in_the_scale() -> None:
    """A domain where a source failed must not look better than one where it found nothing."""
    weights = {"dense": 0.6, "sparse": 0.4}
    ranking = convex_combination(numbers_of([1]), [leg("sparse", [1], {1: 1.0})], weights)
    assert ranking.scores.tolist() == pytest.approx([0.4])
    fused = reciprocal_rank_fusion(numbers_of([1]), [leg("sparse", [1], {1: 1.0})], weights)
    assert fused.scores.tolist() == pytest.approx([0.4])


def test_rrf_of_four_lists_by_hand() -> None:
    """Ranks from 1, k = 60, four sources with equal weights (Cormack, Clarke & Büttcher, SIGIR 2009)."""
    a, b, c, d, e, f = range(6)
    lists = {"pinecone": [a, b, c], "bm25": [b, d, a], "mongodb": [c, a, e], "postgresql": [a, f, b]}
    legs = [Leg(name, np.zeros(6, np.float32), numbers_of(ranked)) for name, ranked in lists.items()]
    ranking = reciprocal_rank_fusion(numbers_of(range(6)), legs, dict.fromkeys(lists, 1.0))
    summed = {
        a: 1 / 61 + 1 / 63 + 1 / 62 + 1 / 61,
        b: 1 / 62 + 1 / 61 + 1 / 63,
        c: 1 / 63 + 1 / 61,
        d: 1 / 62,
        e: 1 / 63,
        f: 1 / 62,
    }
    # The source lists D, E, F in the order of the alphabet; by its own formula F (rank 2) goes before E (rank 3).
    assert ranking.numbers.tolist() == [a, b, c, d, f, e]
    assert as_dict(ranking) == pytest.approx({number: total / (4 / 61) for number, total in summed.items()})
    assert [round(summed[number], 3) for number in (a, b, c)] == [0.065, 0.048, 0.032]


def test_first_everywhere_is_one() -> None:
    legs = [leg("x", [4, 9], {4: 0.9}), leg("y", [4, 9], {4: 0.2, 9: 0.1})]
    weights = {"x": 0.3, "y": 0.7}
    assert reciprocal_rank_fusion(numbers_of([4, 9]), legs, weights).scores[0] == pytest.approx(1)
    assert reciprocal_rank_fusion(numbers_of([4, 9]), legs, weights, k=0).scores.tolist() == pytest.approx(
        [1, 0.7 / 2]
    ), "k = 0 leaves the bare ranks"


def test_a_leg_without_a_weight_is_an_error() -> None:
    with pytest.raises(KeyError, match="dense"):
        convex_combination(numbers_of([1]), [leg("dense", [1], {1: 1.0})], {"sparse": 1.0})


def test_nothing_found_is_an_empty_ranking() -> None:
    for combine in (convex_combination, reciprocal_rank_fusion):
        for legs in ([], [leg("dense", [], {})]):
            ranking = combine(numbers_of([]), legs, {"dense": 1.0})
            assert len(ranking) == 0
            assert ranking.scores.tolist() == []


def test_merge_by_hand() -> None:
    first = convex_combination(numbers_of([1, 2]), [leg("s", [1, 2], {1: 0.5, 2: 0.25})], {"s": 1.0})
    variant = convex_combination(numbers_of([2, 3, 4]), [leg("s", [2, 3, 4], {2: 0.5, 3: 0.625, 4: 0.25})], {"s": 1.0})
    merged = merge(first, [variant], 0.8)
    # 1: .5 · · · 2: max(.25, .8 · .5) · · · 3: .8 · .625, a tie with 1 · · · 4: .8 · .25
    assert merged.numbers.tolist() == [1, 3, 2, 4]
    assert merged.scores.tolist() == pytest.approx([0.5, 0.5, 0.4, 0.2])
    assert merged.contributions["s"].tolist() == pytest.approx([0.5, 0.5, 0.4, 0.2])
    assert identical(merge(first, [], 0.8), first)


# Scores from a few values reach ties; most of them are no exact binary fractions.
SCORES = st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 0.7, 0.9, 1.0])
NAMES = ("dense", "fulltext", "sparse", "structured")


@dataclass(frozen=True)
class Case:
    candidates: tuple[int, ...]
    scores: dict[str, tuple[float, ...]]
    weights: dict[str, float]

    def legs(self, candidates: Sequence[int], names: Sequence[str]) -> list[Leg]:
        legs = []
        for name in names:
            known = dict(zip(self.candidates, self.scores[name], strict=True))
            hits = {number: score for number, score in known.items() if score > 0}
            ranked = sorted(hits, key=lambda number: (-hits[number], number))
            legs.append(leg(name, candidates, known, ranked))
        return legs


@st.composite
def cases(draw: st.DrawFn) -> Case:
    candidates = tuple(draw(st.lists(st.integers(0, 60), unique=True, max_size=12)))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    rows = st.tuples(*[SCORES] * len(candidates))
    weights = {name: draw(st.sampled_from([0.0, 0.05, 0.15, 0.4, 1.0])) for name in NAMES}
    if not math.fsum(weights.values()):
        weights["dense"] = 1.0
    return Case(candidates, {name: draw(rows) for name in names}, weights)


COMBINED = (convex_combination, reciprocal_rank_fusion)


@given(cases(), st.randoms(use_true_random=False))
def test_order_of_legs_and_candidates_changes_nothing(case: Case, random: Random) -> None:
    shuffled, names = list(case.candidates), list(case.scores)
    random.shuffle(shuffled)
    random.shuffle(names)
    for combine in COMBINED:
        one = combine(numbers_of(case.candidates), case.legs(case.candidates, list(case.scores)), case.weights)
        other = combine(numbers_of(shuffled), case.legs(shuffled, names), dict(reversed(case.weights.items())))
        assert identical(one, other), "to the last digit, or ties would fall otherwise"


@given(cases())
def test_every_candidate_once_in_order_within_bounds_and_adding_up(case: Case) -> None:
    for combine in COMBINED:
        ranking = combine(numbers_of(case.candidates), case.legs(case.candidates, list(case.scores)), case.weights)
        assert sorted(ranking.numbers.tolist()) == sorted(case.candidates)
        pairs = list(zip((-ranking.scores).tolist(), ranking.numbers.tolist(), strict=True))
        assert pairs == sorted(pairs), "by score, ties by number"
        assert all(0 <= score <= 1 + 1e-9 for score in ranking.scores)
        assert set(ranking.contributions) == set(case.scores)
        for at, score in enumerate(ranking.scores.tolist()):
            assert math.fsum(part[at] for part in ranking.contributions.values()) == pytest.approx(score, abs=1e-12)


@given(cases())
def test_convex_is_its_formula(case: Case) -> None:
    ranking = convex_combination(
        numbers_of(case.candidates), case.legs(case.candidates, list(case.scores)), case.weights
    )
    whole = math.fsum(case.weights.values())
    expected = {
        number: math.fsum(case.weights[name] * np.float32(scores[at]) for name, scores in case.scores.items()) / whole
        for at, number in enumerate(case.candidates)
    }
    assert as_dict(ranking) == pytest.approx(expected)


@given(cases(), st.sampled_from(NAMES))
def test_a_leg_that_counts_nothing_changes_nothing(case: Case, silent: str) -> None:
    weights = {**case.weights, silent: 0.0}
    if not math.fsum(weights.values()):
        weights["dense" if silent != "dense" else "sparse"] = 1.0
    for combine in COMBINED:
        with_it = combine(numbers_of(case.candidates), case.legs(case.candidates, list(case.scores)), weights)
        others = [name for name in case.scores if name != silent]
        without = combine(numbers_of(case.candidates), case.legs(case.candidates, others), weights)
        assert with_it.numbers.tolist() == without.numbers.tolist()
        assert with_it.scores.tolist() == without.scores.tolist()


@given(cases(), cases(), st.sampled_from([0.0, 0.5, 0.8, 1.0]))
def test_merge_keeps_every_candidate_with_its_best_score(one: Case, other: Case, share: float) -> None:
    first = convex_combination(numbers_of(one.candidates), one.legs(one.candidates, list(one.scores)), one.weights)
    second = convex_combination(
        numbers_of(other.candidates), other.legs(other.candidates, list(other.scores)), other.weights
    )
    merged = merge(first, [second], share)
    own, lent = as_dict(first), as_dict(second)
    assert as_dict(merged) == {
        number: max(own.get(number, 0.0), lent.get(number, 0.0) * share) for number in own.keys() | lent.keys()
    }
    pairs = list(zip((-merged.scores).tolist(), merged.numbers.tolist(), strict=True))
    assert pairs == sorted(pairs)
    for at, score in enumerate(merged.scores.tolist()):
        assert math.fsum(part[at] for part in merged.contributions.values()) == pytest.approx(score, abs=1e-12)


HIT_SCORES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.25000003, 0.5, 1.0]), max_size=40)


@given(HIT_SCORES, st.integers(-1, 45))
def test_best_is_a_full_sort_cut_off(values: list[float], k: int) -> None:
    scores = np.array(values, np.float32)
    expected = sorted(range(len(values)), key=lambda number: (-scores[number], number))[: max(k, 0)]
    hits = best(scores, k)
    assert hits.numbers.tolist() == expected
    assert hits.scores.tolist() == [scores[number] for number in expected]


@given(HIT_SCORES, st.integers(0, 45), st.randoms(use_true_random=False))
def test_best_of_some_chunks_names_them_by_number(values: list[float], k: int, random: Random) -> None:
    scores = np.array(values, np.float32)
    numbers = list(range(100, 100 + len(values)))
    random.shuffle(numbers)
    expected = sorted(zip(numbers, scores.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))[:k]
    hits = best(scores, k, numbers_of(numbers))
    assert list(zip(hits.numbers.tolist(), hits.scores.tolist(), strict=True)) == expected


@given(HIT_SCORES, st.integers(0, 45))
def test_found_leaves_out_what_scores_nothing(values: list[float], k: int) -> None:
    scores = np.array(values, np.float32)
    expected = sorted((n for n in range(len(values)) if scores[n] > 0), key=lambda n: (-scores[n], n))[:k]
    assert found(scores, k).numbers.tolist() == expected
