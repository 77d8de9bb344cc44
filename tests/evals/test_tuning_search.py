"""Folds, the space of plans, and the search in it: pure, on values that are made up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evals.judgments import Judgment, JudgmentOrigin
from evals.matches import JudgedHits
from evals.tuning.cases import TuningCase, folds_of, sample
from evals.tuning.results import Change, differing, drop, flattened, refusal
from evals.tuning.search import OutOfTimeError, SearchResult, search, select
from evals.tuning.space import Space, normalised, plan_space, ranking_space
from nornweave.config import FieldWeights, PlanSettings, SourceWeights
from nornweave.config.fusion import CALIBRATED_WEIGHTS
from nornweave.core.types import Domain


def case(name: str, *documents: str, text: str | None = None) -> TuningCase:
    judgments = [Judgment(name, document, (1, 2 + at), None, 1) for at, document in enumerate(documents)]
    return TuningCase(
        id=f"set/{name}",
        judged="set",
        origin=JudgmentOrigin.PEOPLE,
        domain=Domain.CODE,
        text=text or name,
        filters={},
        hidden={},
        hits=JudgedHits(judgments, Domain.CODE, {}),
        grades={one.key: 1 for one in judgments},
        documents=frozenset(documents),
        places=frozenset(f"{name}-{one.key}" for one in judgments),
    )


# Folds.

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=40, max_size=80)


@settings(max_examples=40)
@given(pairs=PAIRS, seed=st.integers(0, 5))
def test_what_is_judged_in_one_document_is_in_one_fold_in_whatever_order(
    pairs: Sequence[tuple[int, int]], seed: int
) -> None:
    cases = [case(f"q{at}", f"d{one // 2}") for at, (one, _) in enumerate(pairs)]
    folds = folds_of(cases)
    assert len(folds) == len(cases)
    assert set(folds) <= set(range(5))
    groups = {document: {fold for one, fold in zip(cases, folds, strict=True) if document in one.documents}
              for one in cases for document in one.documents}  # fmt: skip
    biggest = max(sum(document in one.documents for one in cases) for document in groups)
    if len(groups) >= 5 and biggest <= 0.4 * len(cases):
        assert all(len(its) == 1 for its in groups.values())
    shuffled = random.Random(seed).sample(cases, len(cases))
    again = dict(zip((one.id for one in shuffled), folds_of(shuffled), strict=True))
    assert [again[one.id] for one in cases] == list(folds)


def test_folds_are_of_about_equal_size() -> None:
    folds = folds_of([case(f"q{at}", f"d{at}") for at in range(52)])
    assert sorted(folds.count(fold) for fold in range(5)) == [10, 10, 10, 11, 11]


def test_a_chain_of_documents_hangs_together_and_one_big_document_does_not() -> None:
    chain = [case("a", "1", "2"), case("b", "2", "3"), case("c", "3", "4")]
    others = [case(f"q{at}", f"d{at}") for at in range(20)]
    folds = dict(zip((one.id for one in [*chain, *others]), folds_of([*chain, *others]), strict=True))
    assert len({folds[one.id] for one in chain}) == 1
    # Everything is judged in one book: its places are kept together instead, and there are five folds still.
    book = [case(f"q{at}", "book") for at in range(20)]
    assert set(folds_of(book)) == {0, 1, 2, 3, 4}


def test_the_same_question_is_in_one_fold_whoever_asked_it() -> None:
    cases = [case(f"q{at}", f"d{at}") for at in range(20)]
    twice = [case("x", "d-x", text="Where is  it?"), case("y", "d-y", text="where is it?")]
    folds = dict(zip((one.id for one in [*cases, *twice]), folds_of([*cases, *twice]), strict=True))
    assert folds["set/x"] == folds["set/y"]


def test_a_sample_is_the_same_whatever_the_order() -> None:
    cases = [case(f"q{at}", f"d{at}") for at in range(30)]
    chosen = sample(cases, 10)
    assert len(chosen) == 10
    assert sample(cases[::-1], 10) == chosen
    assert [one.id for one in chosen] == sorted(one.id for one in chosen)
    assert {one.id for one in sample(cases, 5)} <= {one.id for one in chosen}


# The space.

SHARES = st.integers(0, 100).map(lambda percent: percent / 100)
WEIGHTS = st.builds(
    SourceWeights, dense=SHARES.map(lambda share: share or 0.01), sparse=SHARES, fulltext=SHARES, structured=SHARES
)
FIELDS = st.builds(FieldWeights, path=SHARES, title=SHARES, content=st.sampled_from([0, 1])).filter(
    lambda one: one.title
)
PLANS = st.builds(
    PlanSettings, weights=WEIGHTS, literal_weights=WEIGHTS, fields=FIELDS, document_share=SHARES, function_words=SHARES
)


@given(plan=PLANS)
def test_every_neighbour_is_a_plan_whose_weights_sum_to_1(plan: PlanSettings) -> None:
    space = plan_space(plan, literal=True, reranks=True)
    for key in space.coordinates:
        for neighbour in space.neighbours(space.configured, key):
            assert PlanSettings.model_validate(neighbour.model_dump()) == neighbour
            assert neighbour != space.configured
            for weights in (neighbour.weights, neighbour.literal_weights):
                assert sum(weights.model_dump().values()) == pytest.approx(1, abs=3e-4)
            assert 0 < space.distance(neighbour) <= 1.01


def test_equal_proportions_are_equal_plans() -> None:
    half = PlanSettings(weights=SourceWeights(dense=0.5, sparse=0.5, fulltext=0, structured=0))
    whole = PlanSettings(weights=SourceWeights(dense=1, sparse=1, fulltext=0, structured=0))
    assert normalised(half) == normalised(whole)


def test_a_tenth_of_the_weight_moved_is_a_tenth_away() -> None:
    plan = PlanSettings(weights=SourceWeights(dense=0.5, sparse=0.5, fulltext=0, structured=0))
    moved = plan.model_copy(update={"weights": SourceWeights(dense=0.6, sparse=0.4, fulltext=0, structured=0)})
    distance = plan_space(plan, literal=True, reranks=True).distance
    assert distance(plan) == 0
    assert distance(moved) == pytest.approx(0.1)
    assert distance(plan.model_copy(update={"expand": True})) == 0.25
    assert distance(plan.model_copy(update={"function_words": 1.0})) == pytest.approx(0.35)
    assert distance(plan.model_copy(update={"fields": FieldWeights(path=0)})) == 0.25
    assert distance(plan.model_copy(update={"fields": FieldWeights(path=3, title=1 / 3)})) == pytest.approx(0.25)


def test_only_what_can_be_fitted_is_searched() -> None:
    def searched(*, literal: bool, reranks: bool) -> set[str]:
        space = plan_space(PlanSettings(), literal=literal, reranks=reranks)
        for key in space.coordinates:
            for one in space.neighbours(space.configured, key):
                changed = {
                    name.partition(".")[0] for name in differing(one.model_dump(), space.configured.model_dump())
                }
                assert changed == {key.partition(".")[0]}
        return {key.partition(".")[0] for key in space.coordinates}

    always = {"weights", "fields", "document_share", "function_words", "heuristics", "expand"}
    assert searched(literal=False, reranks=False) == always
    assert searched(literal=True, reranks=True) == always | {"literal_weights", "rerank"}


def test_what_the_signals_take_the_score_gives() -> None:
    space = ranking_space(CALIBRATED_WEIGHTS)
    for key in space.coordinates:
        for weights in space.neighbours(CALIBRATED_WEIGHTS, key):
            assert sum(asdict(weights).values()) == pytest.approx(1)
            assert weights.score > 0.5
            assert space.distance(weights) == pytest.approx(
                abs(getattr(weights, key) - getattr(CALIBRATED_WEIGHTS, key))
            )


# The search, over numbers: any number may follow any other, and the configured one is 0.

FOLDS = [at % 5 for at in range(50)]
LINE: Space[float] = Space(0.0, {"at": tuple(range(-20, 21))}, lambda at: {"at": at / 100}, lambda _, __, to: to)


def searched(values: Sequence[NDArray[np.float64]], folds: Sequence[int] = FOLDS) -> SearchResult[float]:
    """Search where ``values`` are those of -20, -19, …"""
    return search(LINE, lambda points: {point: values[int(point) + 20] for point in points}, folds)


def held_out(found: SearchResult[float], folds: Sequence[int]) -> Change:
    before = {str(at): float(value) for at, value in enumerate(found.values[0.0])}
    after = {str(at): float(found.values[found.of_folds[fold]][at]) for at, fold in enumerate(folds)}
    return Change.of("held out", before, after)


def test_the_top_of_a_hill_is_found_and_every_point_is_scored_once() -> None:
    asked: list[float] = []

    def score(points: Sequence[float]) -> dict[float, NDArray[np.float64]]:
        asked.extend(points)
        return {point: np.full(50, 1 - abs(point - 7) / 40) for point in points}

    found = search(LINE, score, FOLDS, known=[3.0])
    assert found.of_all == 7
    assert set(found.of_folds) == {7}
    assert found.finished
    assert sorted(asked) == sorted(set(asked)) == sorted(found.values)


@settings(max_examples=20)
@given(values=st.lists(st.floats(0, 1), min_size=10, max_size=10), seed=st.integers(0, 1000))
def test_a_fold_never_sees_its_own_queries(values: Sequence[float], seed: int) -> None:
    base = np.random.default_rng(seed).random((41, 50))

    def choice(of_fold_0: Sequence[float]) -> float:
        changed = base.copy()
        for at, row in enumerate(changed):
            row[0::5] = np.roll(of_fold_0, at)
        return searched(list(changed)).of_folds[0]

    assert choice(values) == choice([0.0] * 10)


def test_the_nearest_of_what_cannot_be_told_apart_is_taken() -> None:
    noise = np.random.default_rng(5).normal(0, 0.1, 200)
    barely = {0.0: np.full(200, 0.5), 3.0: 0.505 + noise - noise.mean()}
    assert select(LINE, barely) == 0
    clearly = {0.0: np.full(200, 0.5), 1.0: 0.549 + noise - noise.mean(), 3.0: 0.55 + noise[::-1] - noise.mean()}
    assert select(LINE, clearly) == 1


def test_points_that_are_equally_good_are_hardly_ever_kept() -> None:
    """What the test of significance is for: with nothing to be gained, less than one tuning in ten may go wrong."""
    kept = 0
    for seed in range(60):
        found = searched(list(np.random.default_rng(seed).random((41, 50))))
        kept += not refusal(held_out(found, FOLDS), (), changed=found.of_all != 0)
    assert kept <= 5


def test_a_real_gain_is_kept() -> None:
    generator = np.random.default_rng(3)
    # Some queries are harder than others, every point is a little better than the one before, by and large.
    values = generator.random(50) * 0.5 + np.arange(41)[:, None] / 80 + generator.normal(0, 0.03, (41, 50))
    change = held_out(searched(list(values)), FOLDS)
    assert refusal(change, (change,), changed=True) == ""
    assert change.p_gain < 0.001
    # The other way round it is a loss, which one set alone is enough to refuse for.
    loss = Change.of("set", {"a": 1.0, **dict.fromkeys("bcdefgh", 0.9)}, {"a": 1.0, **dict.fromkeys("bcdefgh", 0.2)})
    assert "set gets worse" in drop((change, loss))
    assert "set gets worse" in refusal(change, (change, loss), changed=True)
    assert "no more than chance" in refusal(loss, (), changed=True)
    assert refusal(change, (change,), changed=False)


def test_the_deadline_ends_the_search_with_what_is_known() -> None:
    # Another number for each of five coordinates, of which there is time for three.
    space: Space[float] = Space(0.0, {str(at): (float(at),) for at in range(1, 6)}, lambda at: {"at": at / 100},
                                lambda _, __, to: to)  # fmt: skip

    def score(points: Sequence[float]) -> dict[float, NDArray[np.float64]]:
        if max(points) > 3:
            raise OutOfTimeError
        return {point: np.full(50, 0.5 + point / 100) for point in points}

    found = search(space, score, FOLDS)
    assert (found.finished, found.of_all, set(found.of_folds), len(found.values)) == (False, 3, {3}, 4)
    with pytest.raises(OutOfTimeError):
        search(space, score, FOLDS, known=[4.0])


def test_a_change_is_what_the_comparison_says() -> None:
    change = Change.of("x", {"a": 0.0, "b": 0.5, "c": 1.0}, {"a": 0.5, "b": 1.0, "c": 1.0})
    assert change.difference == pytest.approx(1 / 3)
    # Two differing queries: one of four ways to flip them gains as much.
    assert change.p_gain == pytest.approx(0.25)
    assert change.p_drop == 1
    with pytest.raises(ValueError, match="no query"):
        Change.of("x", {}, {})


def test_values_differ_by_dotted_keys() -> None:
    assert flattened({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a.b": 1, "a.c.d": 2, "e": 3}
    assert differing({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}) == {"a.c": 2}
