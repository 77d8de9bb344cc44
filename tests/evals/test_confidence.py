import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.confidence import TopScore, as_json, best_threshold, confidence_of


def top_scores(answerable: Sequence[float | None], unanswerable: Sequence[float | None]) -> list[TopScore]:
    return [
        *(TopScore(f"a{number}", score, answerable=True) for number, score in enumerate(answerable)),
        *(TopScore(f"u{number}", score, answerable=False) for number, score in enumerate(unanswerable)),
    ]


SCORE = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 0.5000000000000001, 1.0]), st.floats(0, 1))
QUERIES = st.builds(top_scores, st.lists(SCORE, min_size=1, max_size=9), st.lists(SCORE, min_size=1, max_size=9))


def test_the_best_threshold_lies_in_the_middle_of_the_widest_gap() -> None:
    """Everything between .3 and .4 and between .5 and .8 is equally good: one answer lost, or one missed."""
    assert best_threshold(top_scores([0.4, 0.8], [0.3, 0.5])) == (pytest.approx(0.65), pytest.approx(0.75))
    assert best_threshold(top_scores([0.375, 0.625], [0.25, 0.5])) == (0.3125, 0.75), "equally wide: the lower one"


def test_the_best_threshold_when_scores_say_nothing_or_the_contrary() -> None:
    assert best_threshold(top_scores([None, None], [None])) == (None, 0.5)
    assert best_threshold(top_scores([0.5, 0.5], [0.5])) == (None, 0.5)
    assert best_threshold(top_scores([0.1, 0.2], [0.8, 0.9])) == (None, 0.5)
    assert best_threshold(top_scores([0.5], [None])) == (None, 1.0)
    threshold, accuracy = best_threshold(top_scores([None], [0.5]))
    assert threshold is not None
    assert threshold > 0.5, "everything is flagged: half of it rightly"
    assert accuracy == 0.5


def test_between_neighbouring_floats_the_upper_one_is_kept() -> None:
    lower, upper = 0.5, math.nextafter(0.5, 1)
    assert best_threshold(top_scores([upper], [lower])) == (upper, 1.0)


def test_held_out_thresholds_by_hand() -> None:
    """Apart with room between: every query is judged rightly by the threshold of the others."""
    apart = confidence_of(top_scores([0.7, 0.8, 0.9], [0.1, 0.2, 0.3]))
    assert apart is not None
    assert apart.held_out is not None
    assert (apart.best_min_score, apart.best, apart.held_out.value, apart.auc.value) == (pytest.approx(0.5), 1, 1, 1)
    mixed = confidence_of(top_scores([0.75, 0.9375], [0.125, 0.5]))
    assert mixed is not None
    assert mixed.held_out is not None
    # Left out, each meets the middle of the gap between the others: .75 meets .71875 and is kept, .9375 meets .625 and
    # is kept, .125 meets .625 and is flagged, .5 meets .4375 and is missed.
    assert (mixed.best, mixed.held_out.value) == (1, pytest.approx((1 / 2 + 2 / 2) / 2))


def test_one_kind_of_queries_alone_tells_nothing() -> None:
    assert confidence_of(top_scores([0.5, None], []), 0.5) is None
    assert confidence_of(top_scores([], [0.5]), 0.5) is None
    assert confidence_of([]) is None
    with pytest.raises(ValueError, match="2 answerable and 0 unanswerable"):
        best_threshold(top_scores([0.5, None], []))


def test_a_single_query_of_a_kind_cannot_be_left_out() -> None:
    found = confidence_of(top_scores([0.5, 0.6], [0.1]))
    assert found is not None
    assert found.held_out is None
    assert as_json(found)["held_out_balanced_accuracy"] is None


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers(score: float) -> None:
    with pytest.raises(ValueError, match=r"score .* of query 'a0'; expected a finite number"):
        confidence_of(top_scores([score], [0.5]))
    with pytest.raises(ValueError, match=r"min_score .*; expected a finite number"):
        confidence_of(top_scores([0.5], [0.5]), score)


def test_a_query_that_comes_twice() -> None:
    with pytest.raises(ValueError, match="query 'q' comes twice"):
        confidence_of([TopScore("q", 0.1, answerable=True), TopScore("q", 0.2, answerable=False)])


@given(QUERIES, st.floats(0, 1))
def test_the_figures_are_what_their_definitions_say(queries: list[TopScore], min_score: float) -> None:
    found = confidence_of(queries, min_score)
    assert found is not None
    values = {kind: [-1.0 if one.score is None else one.score for one in queries if one.answerable == kind]
              for kind in (True, False)}  # fmt: skip
    sensitivity = sum(value < min_score for value in values[False]) / len(values[False])
    specificity = sum(value >= min_score for value in values[True]) / len(values[True])
    assert found.at_min_score.value == pytest.approx((sensitivity + specificity) / 2)
    pairs = [(kept > flagged) + (kept == flagged) / 2 for kept in values[True] for flagged in values[False]]
    assert found.auc.value == pytest.approx(sum(pairs) / len(pairs))


@settings(max_examples=40)
@given(QUERIES)
def test_no_threshold_beats_the_best(queries: list[TopScore]) -> None:
    threshold, best = best_threshold(queries)
    at_best = confidence_of(queries, threshold)
    assert at_best is not None
    assert at_best.at_min_score.value == pytest.approx(best)
    for one in queries:
        for other in (one.score, None if one.score is None else math.nextafter(one.score, 2)):
            tried = confidence_of(queries, other)
            assert tried is not None
            assert tried.at_min_score.value <= best + 1e-9


@settings(max_examples=40)
@given(st.data(), QUERIES, st.floats(0, 1))
def test_the_order_of_the_queries_has_no_effect(data: st.DataObject, queries: list[TopScore], min_score: float) -> None:
    assert confidence_of(data.draw(st.permutations(queries)), min_score) == confidence_of(queries, min_score)


@given(QUERIES, st.floats(0, 1))
def test_intervals_hold_their_value_and_stay_within_bounds(queries: list[TopScore], min_score: float) -> None:
    found = confidence_of(queries, min_score)
    assert found is not None
    for estimate in (found.at_min_score, found.auc, *([found.held_out] if found.held_out else [])):
        assert -1e-9 <= estimate.low <= estimate.value + 1e-9
        assert estimate.value - 1e-9 <= estimate.high <= 1 + 1e-9


def test_the_interval_narrows_with_more_queries() -> None:
    """Of 3/4 flagged and 3/4 kept, by the normal approximation: 1.96 · √(2 · (3/4 · 1/4) / n) / 2."""
    for count in (40, 400):
        quarter = count // 4
        kept, flagged = [0.9] * 3 * quarter + [0.1] * quarter, [0.1] * 3 * quarter + [0.9] * quarter
        found = confidence_of(top_scores(kept, flagged), 0.5)
        assert found is not None
        expected = 1.96 * math.sqrt(2 * 0.75 * 0.25 / count) / 2
        assert found.at_min_score.high - found.at_min_score.value == pytest.approx(expected, rel=0.2)
        assert found.at_min_score.value - found.at_min_score.low == pytest.approx(expected, rel=0.2)


def test_the_document_for_machines() -> None:
    found = confidence_of(top_scores([0.7, 0.9], [0.1, 0.5]), 1 / 3)
    assert found is not None
    document = as_json(found)
    assert document["min_score"] == 0.3333
    assert document["balanced_accuracy"]["value"] == 0.75
    assert (document["best_min_score"], document["best_balanced_accuracy"]) == (0.6, 1.0)
    assert (document["answerable"], document["unanswerable"], document["auc"]["value"]) == (2, 2, 1.0)
