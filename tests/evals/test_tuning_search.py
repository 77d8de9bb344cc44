"""Folds, the space of plans, and the search in it: pure, on values that are made up."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evals.judgments import JudgedQuery, JudgedSet, Judgment
from evals.targets import RunTarget
from evals.tuning.cases import TuningCase, cases_of, folds_of
from evals.tuning.results import Change, flattened, refusal
from evals.tuning.search import COORDINATES, SearchResult, neighbours, search
from nornweave.config import FieldWeights, PlanSettings, SourceWeights
from nornweave.core.types import Domain


def case(name: str, *documents: str, text: str | None = None) -> TuningCase:
    judgments = tuple(Judgment(name, document, (1, 2 + at), None, 1) for at, document in enumerate(documents))
    query = JudgedQuery(name, text or name)
    target = RunTarget(judged=JudgedSet("set", (query,), judgments), queries=(query,), relevant={name: judgments},
                       domain=Domain.CODE, held={}, missing=())  # fmt: skip
    return TuningCase(target, query)


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
    groups = {document: {fold for one, fold in zip(cases, folds, strict=True) if document in one.keys}
              for one in cases for document in one.keys}  # fmt: skip
    biggest = max(sum(document in one.keys for one in cases) for document in groups)
    if len(groups) >= 5 and biggest <= 0.4 * len(cases):
        assert all(len(its) == 1 for its in groups.values())
    shuffled = random.Random(seed).sample(cases, len(cases))
    again = dict(zip((one.id for one in shuffled), folds_of(shuffled), strict=True))
    assert [again[one.id] for one in cases] == list(folds)


def test_a_chain_of_documents_hangs_together_and_one_big_document_does_not() -> None:
    chain = [case("a", "1", "2"), case("b", "2", "3"), case("c", "3", "4")]
    others = [case(f"q{at}", f"d{at}") for at in range(20)]
    folds = dict(zip((one.id for one in [*chain, *others]), folds_of([*chain, *others]), strict=True))
    assert len({folds[one.id] for one in chain}) == 1
    # Everything is judged in one book: there are five folds still.
    book = [case(f"q{at}", "book") for at in range(20)]
    assert set(folds_of(book)) == {0, 1, 2, 3, 4}


def test_the_same_question_is_in_one_fold_whoever_asked_it() -> None:
    cases = [case(f"q{at}", f"d{at}") for at in range(20)]
    twice = [case("x", "d-x", text="Where is  it?"), case("y", "d-y", text="where is it?")]
    folds = dict(zip((one.id for one in [*cases, *twice]), folds_of([*cases, *twice]), strict=True))
    assert folds["code/set/x"] == folds["code/set/y"]


def test_a_sample_of_a_set_is_the_same_whatever_the_order() -> None:
    queries = tuple(JudgedQuery(f"q{at}", f"q{at}") for at in range(30))
    judgments = {query.id: (Judgment(query.id, "d", None, None, 1),) for query in queries}
    target = RunTarget(judged=JudgedSet("set", queries, ()), queries=queries, relevant=judgments, domain=Domain.CODE,
                       held={}, missing=())  # fmt: skip
    chosen = [case.id for case in cases_of([target], most=10)]
    assert len(chosen) == 10
    assert chosen == sorted(chosen)
    assert [case.id for case in cases_of([replace(target, queries=queries[::-1])], most=10)] == chosen
    assert {case.id for case in cases_of([target], most=5)} <= set(chosen)


# The space.

SHARES = st.integers(0, 100).map(lambda percent: percent / 100)
WEIGHTS = st.builds(
    SourceWeights, dense=SHARES.map(lambda share: share or 0.01), sparse=SHARES, fulltext=SHARES, structured=SHARES
)
FIELDS = st.builds(FieldWeights, path=SHARES, title=SHARES, content=st.sampled_from([0, 1])).filter(
    lambda one: one.title
)
PLANS = st.builds(PlanSettings, weights=WEIGHTS, fields=FIELDS, document_share=SHARES, function_words=SHARES)


@given(plan=PLANS)
def test_every_neighbour_is_a_plan_that_differs_in_one_number(plan: PlanSettings) -> None:
    for key in COORDINATES:
        for neighbour in neighbours(plan, key):
            assert PlanSettings.model_validate(neighbour.model_dump()) == neighbour
            before, after = flattened(plan.model_dump()), flattened(neighbour.model_dump())
            assert [name for name in before if before[name] != after[name]] == [key]


# The search, over the five values of one number.

START = PlanSettings(document_share=0)
SHARES_TRIED = COORDINATES["document_share"]
FOLDS = [at % 5 for at in range(50)]


def at_share(share: float) -> PlanSettings:
    return START.model_copy(update={"document_share": share})


def searched(values: Sequence[NDArray[np.float64]], folds: Sequence[int] = FOLDS) -> SearchResult:
    """Search where ``values`` are those of each share that is tried."""
    tried = {at_share(share): of_share for share, of_share in zip(SHARES_TRIED, values, strict=True)}
    return search(START, lambda plans: {plan: tried[plan] for plan in plans}, folds, coordinates=["document_share"])


def held_out(found: SearchResult, folds: Sequence[int] = FOLDS) -> Change:
    after = np.array([found.values[found.of_folds[fold]][at] for at, fold in enumerate(folds)])
    return Change.of("held out", found.values[START], after)


def test_the_best_is_found_and_every_plan_is_scored_once() -> None:
    asked: list[PlanSettings] = []

    def score(plans: Sequence[PlanSettings]) -> dict[PlanSettings, NDArray[np.float64]]:
        asked.extend(plans)
        return {
            plan: np.full(50, 1 - abs(plan.document_share - 0.3) - abs(plan.function_words - 0.6)) for plan in plans
        }

    found = search(START, score, FOLDS)
    assert (found.of_all.document_share, found.of_all.function_words, found.of_all.weights) == (0.3, 0.6, START.weights)
    assert set(found.of_folds) == {found.of_all}
    assert found.finished
    assert len(asked) == len(set(asked)) == len(found.values)


@settings(max_examples=20)
@given(values=st.lists(st.floats(0, 1), min_size=10, max_size=10), seed=st.integers(0, 1000))
def test_a_fold_never_sees_its_own_queries(values: Sequence[float], seed: int) -> None:
    base = np.random.default_rng(seed).random((5, 50))

    def choice(of_fold_0: Sequence[float]) -> PlanSettings:
        changed = base.copy()
        for at, row in enumerate(changed):
            row[0::5] = np.roll(of_fold_0, at)
        return searched(list(changed)).of_folds[0]

    assert choice(values) == choice([0.0] * 10)


def test_a_gain_within_one_standard_error_changes_nothing() -> None:
    noise = np.random.default_rng(5).normal(0, 0.1, 200)
    folds = [at % 5 for at in range(200)]
    base = np.full(200, 0.5)
    barely = [base, *[0.505 + noise - noise.mean()] * 4]
    assert searched(barely, folds).of_all == START
    clearly = [base, *[0.55 + noise - noise.mean()] * 4]
    assert searched(clearly, folds).of_all == at_share(0.1)


def test_plans_that_are_equally_good_are_hardly_ever_kept() -> None:
    """What the test of significance is for: with nothing to be gained, less than one tuning in ten may go wrong."""
    kept = 0
    for seed in range(60):
        found = searched(list(np.random.default_rng(seed).random((5, 50))))
        kept += not refusal(held_out(found), (), changed=found.of_all != START)
    assert kept <= 5


def test_a_real_gain_is_kept() -> None:
    generator = np.random.default_rng(3)
    # Some queries are harder than others, every plan is a little better than the one before, by and large.
    values = generator.random(50) * 0.5 + np.arange(5)[:, None] / 10 + generator.normal(0, 0.03, (5, 50))
    change = held_out(searched(list(values)))
    assert refusal(change, (change,), changed=True) == ""
    assert change.p_gain < 0.001
    # The other way round it is a loss, which one set alone is enough to refuse for.
    loss = Change.of("set", np.array([1.0] + [0.9] * 7), np.array([1.0] + [0.2] * 7))
    assert "set gets worse" in refusal(change, (change, loss), changed=True)
    assert "no more than chance" in refusal(loss, (), changed=True)
    assert refusal(change, (change,), changed=False)


def test_the_deadline_ends_the_search_with_what_is_known() -> None:
    late = iter([False, True])
    found = search(
        START,
        lambda plans: {plan: np.full(50, 0.5 + plan.document_share) for plan in plans},
        FOLDS,
        coordinates=["document_share", "function_words"],
        is_late=lambda: next(late),
    )
    assert (found.finished, found.of_all, set(found.of_folds)) == (False, at_share(0.5), {at_share(0.5)})


def test_a_change_is_what_the_comparison_says() -> None:
    change = Change.of("x", np.array([0.0, 0.5, 1.0]), np.array([0.5, 1.0, 1.0]))
    assert change.difference == pytest.approx(1 / 3)
    # Two differing queries: one of four ways to flip them gains as much.
    assert change.p_gain == pytest.approx(0.25)
    assert change.p_drop == 1
    with pytest.raises(ValueError, match="no query"):
        Change.of("x", np.array([]), np.array([]))
