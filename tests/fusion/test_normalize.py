"""Stage 2: one scale for all agents."""

import pytest
from fusion_support import item, response
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.fuse.collect import MAX_COMPARED, collect, normalize, scale_of
from nornweave.ask.fuse.records import FusedItem

SCORES = st.lists(st.floats(-1e308, 1e308, allow_nan=False), max_size=8)


def normalized(items: tuple[FusedItem, ...], how: str = "auto") -> tuple[FusedItem, ...]:
    return normalize(items, scale_of(items, how))  # type: ignore[arg-type]


def scores_of(*answers: list[float], calibrated: bool = False, how: str = "auto") -> list[float]:
    responses = [
        response(
            f"domain-{place}",
            *(item(f"{place}-{number}", score=score, facts=()) for number, score in enumerate(scores)),
            calibrated=calibrated,
        )
        for place, scores in enumerate(answers)
    ]
    return [one.relevance for one in normalized(collect(responses), how)]


def test_min_max_per_agent() -> None:
    """(0.84 − 0.65) / (0.91 − 0.65) = 0.7308; the other agent has a range of its own."""
    assert scores_of([0.91, 0.84, 0.65], [0.88, 0.72]) == pytest.approx([1.0, 0.19 / 0.26, 0.0, 1.0, 0.0])


def test_a_single_item_and_equal_scores_are_a_half() -> None:
    assert scores_of([0.93], [0.2, 0.2]) == [0.5, 0.5, 0.5]


def test_a_zero_is_a_score_like_any_other() -> None:
    assert scores_of([0.5, 0.25, 0.0]) == [1.0, 0.5, 0.0]


def test_calibrated_scores_stay() -> None:
    assert scores_of([0.5, 0.2], [0.1], calibrated=True) == [0.5, 0.2, 0.1]
    assert scores_of([1.5, -0.2], calibrated=True) == [1.0, 0.0]


def test_a_foreign_agent_joins_by_its_ranking_and_our_scores_stay() -> None:
    """Foreign ranks 1 and 2: midway between ours of ranks 1 and 2, then 2 and what a third of ours would have had."""
    ours = response("code", item("a", score=0.5, facts=()), item("b", score=0.3, facts=()), calibrated=True)
    foreign = response("web", item("c", score=17.0, facts=()), item("d", score=3.0, facts=()))
    items = collect([ours, foreign])
    assert scale_of(items) == "mixed"
    third = 0.3 * 62 / 63
    assert [one.relevance for one in normalized(items)] == [0.5, 0.3, 0.4, (0.3 + third) / 2]


def test_the_way_can_be_chosen() -> None:
    assert scores_of([0.5, 0.3], calibrated=True, how="minmax") == [1.0, 0.0]
    assert scores_of([0.5, 0.3], how="calibrated") == [0.5, 0.3]


def test_nothing_is_a_valid_input() -> None:
    assert normalized(collect([])) == ()
    assert normalized(collect([response("code")])) == ()


@given(SCORES, SCORES)
def test_scores_end_in_the_unit_interval_in_their_order(first: list[float], second: list[float]) -> None:
    for scores in (scores_of(first, second)[: len(first)], scores_of(first, second)[len(first) :]):
        assert all(0.0 <= score <= 1.0 for score in scores)
    ours = scores_of(first, second)
    for one, before in zip(ours, first, strict=False):
        for other, than in zip(ours, first, strict=False):
            assert (before >= than) <= (one >= other), "the agent's own order stays"


def test_what_is_compared_of_an_answer_is_bounded() -> None:
    said = "The webhook timeout is {} s.\n"
    long = "".join(said.format(number) for number in range(2_000))
    (fused,) = collect([response("documentation", item("a", long))])
    assert fused.facts and all(fact.span.end <= MAX_COMPARED for fact in fused.facts)
    assert fused.item.content == long
    many = [
        response("documentation", *(item(f"{agent}{n}", said.format(n) * 20) for n in range(600)), agent=agent)
        for agent in "ab"
    ]
    read = [bool(fused.facts) for fused in collect(many)]
    first, second = read[:600], read[600:]
    assert first == sorted(first, reverse=True), "the best of each answer"
    assert 0 < sum(first) < 300 and abs(sum(first) - sum(second)) < 2
