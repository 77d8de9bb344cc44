"""Two measurements beside each other: values by hand, the exact test by counting, what must hold for any values."""

import itertools
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.improve.comparison import EXACT_UP_TO, FLIPS, EvaluationComparison, compare

VALUES = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 1.0]) | st.floats(0, 1)
MEASURED = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), VALUES, max_size=25)


def compared(before: Mapping[str, float], after: Mapping[str, float]) -> EvaluationComparison:
    found = compare(before, after)
    assert found is not None
    return found


def series(*values: float) -> dict[str, float]:
    """Return values of the queries q00, q01, …"""
    return {f"q{number:02}": value for number, value in enumerate(values)}


def by_counting(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[float, float]:
    """Return both probabilities over all ways to swap the two values of each query, equal ones included."""
    differences = [after[query] - before[query] for query in before]
    found = math.fsum(differences)
    sums = [
        math.fsum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    slack = 1e-9 * math.fsum(map(abs, differences))
    two_sided = sum(abs(one) >= abs(found) - slack for one in sums)
    lower = sum(one <= found + slack for one in sums)
    return two_sided / len(sums), lower / len(sums)


def test_means_and_changes_by_hand() -> None:
    found = compared(series(1, 1, 0.5, 0), series(0, 0.5, 0.5, 1))

    assert (found.queries, found.before, found.after) == (4, 0.625, 0.5)
    assert found.difference == -0.125
    assert [(one.query, one.before, one.after, one.difference) for one in found.worse] == [
        ("q00", 1, 0, -1),
        ("q01", 1, 0.5, -0.5),
    ]
    assert found.better == 1
    # Differences −1, −½, +1: the sums of the eight sign patterns are ±½ twice each, ±1½ and ±2½ once.
    assert (found.p_value, found.p_drop) == (1, 0.5)


def test_more_than_a_few_differences_are_flipped_at_random() -> None:
    count = EXACT_UP_TO + 1
    found = compared(series(*[1] * count), series(*[0] * count))
    # No sample of 10,000 is likely to hold the one pattern of 16,384 more than some times; it is never said to be 0.
    assert 1 / (FLIPS + 1) <= found.p_drop <= 5 / (FLIPS + 1)

    halves = compared(series(*[1, 0] * 20), series(*[0, 1] * 20))
    assert halves.p_value == 1
    assert halves.p_drop == pytest.approx(0.5 + math.comb(40, 20) / 2**41, abs=0.02)


def test_the_sampled_probability_is_near_the_binomial_one() -> None:
    """Of 30 that differ by the same, 20 got worse: as likely as 20 heads or more of 30."""
    found = compared(series(*[1] * 20, *[0] * 10), series(*[0] * 20, *[1] * 10))
    tail = sum(math.comb(30, heads) for heads in range(20, 31)) / 2**30

    assert found.p_drop == pytest.approx(tail, abs=0.007)
    assert found.p_value == pytest.approx(2 * tail, abs=0.01)


def test_only_queries_that_both_have_are_compared() -> None:
    found = compared({"a": 1, "b": 0, "gone": 1}, {"new": 1, "b": 1, "a": 1})

    assert (found.queries, found.before, found.after, found.better, found.worse) == (2, 0.5, 1, 1, ())
    assert compare({"a": 1}, {"b": 1}) is None
    assert compare({}, {}) is None


def test_the_interval_of_one_difference_for_all_is_that_difference() -> None:
    found = compared(series(*[0.75] * 9), series(*[0.5] * 9))

    assert (found.low, found.high) == pytest.approx((-0.25, -0.25))


def test_the_interval_is_about_two_standard_errors_each_way() -> None:
    """Half of 400 gain 1, the others lose it: the standard error of the mean is 1 / √400."""
    found = compared(series(*[0, 1] * 200), series(*[1, 0] * 200))

    assert (found.low, found.high) == pytest.approx((-1.96 / 20, 1.96 / 20), abs=0.012)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=9))
def test_few_differences_are_flipped_in_all_ways(pairs: list[tuple[float, float]]) -> None:
    before, after = series(*(one for one, _ in pairs)), series(*(other for _, other in pairs))
    found = compared(before, after)

    assert (found.p_value, found.p_drop) == pytest.approx(by_counting(before, after))


@given(MEASURED)
def test_equal_measurements_do_not_differ(values: dict[str, float]) -> None:
    found = compare(values, dict(values))

    if not values:
        assert found is None
    else:
        assert found is not None
        assert (found.p_value, found.p_drop, found.worse, found.better) == (1, 1, (), 0)
        assert (found.low, found.high, found.difference) == (0, 0, 0)


@given(MEASURED, MEASURED)
def test_the_other_way_round_is_the_mirror_image(one: dict[str, float], other: dict[str, float]) -> None:
    there, back = compare(one, other), compare(other, one)

    assert (there is None) == (back is None) == (not one.keys() & other.keys())
    if there and back:
        assert there.p_value == back.p_value
        assert there.difference == -back.difference
        assert (len(there.worse), there.better) == (back.better, len(back.worse))
        assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-9)


@given(MEASURED, st.data())
def test_the_order_of_the_queries_plays_no_part(before: dict[str, float], data: st.DataObject) -> None:
    after = {query: data.draw(VALUES) for query in before}
    shuffled = data.draw(st.permutations(list(before)))

    assert compare(before, after) == compare(
        {query: before[query] for query in shuffled}, {query: after[query] for query in reversed(shuffled)}
    )


@given(MEASURED, MEASURED)
def test_what_got_worse_is_sorted_and_complete(before: dict[str, float], after: dict[str, float]) -> None:
    found = compare(before, after)

    if found:
        keys = [(one.after - one.before, one.query) for one in found.worse]
        assert keys == sorted(keys)
        common = before.keys() & after.keys()
        assert {one.query for one in found.worse} == {query for query in common if after[query] < before[query]}
        assert found.better == sum(after[query] > before[query] for query in common)
        assert found.low <= found.high
        assert 0 < found.p_value <= 1
        assert 0 < found.p_drop <= 1
