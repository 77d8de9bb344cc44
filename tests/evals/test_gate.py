"""What may not be published: drops beyond margin and chance, means below a floor; on results made up for it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.gate import MEASURES, SHOWN_QUERIES, GateFinding, holds_back, judge, refusals, warnings, worse_queries
from evals.history import Baseline, HistorySubject, to_history_record
from evals.judgments import JudgmentOrigin
from evals.measures import Metric, metric_of
from evals.results import ResultScope, ScopeResult, SetResult, StageResult
from nornweave.config import EvaluationSettings
from nornweave.core.types import Domain
from nornweave.improve.records import Verdict

USUAL = EvaluationSettings()
NOW = datetime(2026, 3, 1, tzinfo=UTC)
NO_OTHERS: Mapping[str, Sequence[float]] = MappingProxyType({})


def metric(values: Mapping[str, float]) -> Metric:
    return metric_of(dict(values))


def result(
    *,
    fused: Sequence[float],
    others: Mapping[str, Sequence[float]] = NO_OTHERS,
    origin: JudgmentOrigin = JudgmentOrigin.PEOPLE,
    digest: str = "d",
    scope: ResultScope = ResultScope.DOMAIN,
) -> SetResult:
    """Return results of the queries q00, q01, …: each stage has the same values for every measure."""
    stages = {**others, "fused": fused}
    ids = [f"q{number:02}" for number in range(len(fused))]
    measured = tuple(
        StageResult(stage, len(values), {name: metric(dict(zip(ids, values, strict=True))) for name in MEASURES})
        for stage, values in stages.items()
    )
    return SetResult(
        name="golden",
        domain=Domain.CODE,
        across_domains=False,
        origin=origin,
        queries=len(ids),
        measured=len(ids),
        unjudged=(),
        unanswerable=0,
        judgments=len(ids),
        missing=(),
        missing_counted=False,
        unmeasured=(),
        digests=MappingProxyType({query: f"{digest} {query}" for query in ids}),
        elsewhere=(),
        scopes=(ScopeResult(scope, measured, 1.0, 2.0, ()),),
    )


def published(was: SetResult) -> Baseline:
    """Return results as history gives them back."""
    subject = HistorySubject(run_id="r", generation="gen-000001", verdict=Verdict.PUBLISHED, at=NOW)
    evaluation, values = to_history_record(was, was.scopes[0], subject)
    known: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for one in values:
        known.setdefault((one.stage, one.measure), {})[one.query, one.digest] = one.value
    return Baseline(evaluation, known)


def refused(after: SetResult, before: SetResult | None, settings: EvaluationSettings = USUAL) -> set[tuple[str, str]]:
    """Return the stages and measures that refuse."""
    findings = judge(after, published(before) if before else None, settings)
    assert bool(refusals(findings)) == any(finding.refuses for finding in findings)
    return {(finding.stage, finding.measure) for finding in findings if finding.refuses}


ANSWERS = {("fused", measure) for measure in MEASURES}


def test_a_drop_beyond_margin_and_chance_refuses() -> None:
    """Six of ten lost .1 each: .06 of the mean, once in 64 ways."""
    assert refused(result(fused=[0.9] * 6 + [1] * 4), result(fused=[1] * 10)) == ANSWERS


def test_a_drop_that_could_be_chance_does_not() -> None:
    """Four of twenty lost all that they had: .2 of the mean, but once in 16 ways."""
    assert refused(result(fused=[0] * 4 + [1] * 16), result(fused=[1] * 20)) == set()
    assert refused(result(fused=[0] * 5 + [1] * 5), result(fused=[1] * 10)) == ANSWERS


def test_a_drop_within_the_margin_does_not() -> None:
    """All of ten lost a little, which is no chance; it is less than the margin, or more."""
    before = result(fused=[1.0] * 10)
    assert refused(result(fused=[0.985] * 10), before) == set()
    assert refused(result(fused=[0.97] * 10), before) == ANSWERS
    assert refused(result(fused=[0.97] * 10), before, EvaluationSettings(margin=0.05)) == set()
    assert refused(result(fused=[0.985] * 10), before, EvaluationSettings(margin=0)) == ANSWERS


def test_gains_make_up_for_losses() -> None:
    assert refused(result(fused=[0] * 10 + [1] * 10), result(fused=[1] * 10 + [0] * 10)) == set()


@pytest.mark.parametrize("source", ["dense", "sparse"])
def test_a_source_is_watched_on_its_own_more_leniently(source: str) -> None:
    def measured(*, of_source: Sequence[float]) -> SetResult:
        return result(fused=[1.0] * 20, others={source: of_source})

    before = measured(of_source=[1.0] * 20)
    of_source = {(source, measure) for measure in MEASURES}
    # Six of 20 is once in 64 ways: enough for the answers, not for a source. Seven is once in 128.
    assert refused(measured(of_source=[0.0] * 6 + [1.0] * 14), before) == set()
    assert refused(measured(of_source=[0.0] * 7 + [1.0] * 13), before) == of_source
    assert refused(measured(of_source=[0.96] * 20), before) == set(), "within its margin"
    assert refused(measured(of_source=[0.94] * 20), before) == of_source
    assert refused(measured(of_source=[0.94] * 20), before, EvaluationSettings(source_margin=0.1)) == set()


def test_a_source_that_answers_nothing_any_more_has_lost_everything() -> None:
    """It fails for every query, and is not among the stages; the other makes up for it."""
    both = result(fused=[1] * 20, others={"dense": [1] * 20, "sparse": [1] * 20})
    alone = result(fused=[1] * 20, others={"sparse": [1] * 20})

    assert refused(alone, both) == {("dense", measure) for measure in MEASURES}
    assert refused(both, alone) == set(), "one that is new is no loss"


@pytest.mark.parametrize("stage", ["fulltext", "structured", "combined", "expanded", "merged"])
def test_other_stages_are_not_watched(stage: str) -> None:
    before, after = (result(fused=[1] * 20, others={stage: [value] * 20}) for value in (1, 0))
    assert refused(after, before) == set()


def test_queries_that_are_not_the_same_are_not_compared() -> None:
    after, before = result(fused=[0] * 20), result(fused=[1] * 20, digest="another text")
    findings = judge(after, published(before), USUAL)

    assert refusals(findings) == ()
    assert all(finding.comparison is None for finding in findings)
    assert all("nothing to compare it with" in finding.text for finding in findings)


def test_only_the_queries_that_both_have_are_compared() -> None:
    """The candidate's new ones are badly answered, and say nothing of what it lost."""
    (first, *_) = judge(result(fused=[1] * 10 + [0] * 10), published(result(fused=[1] * 10)), USUAL)

    assert first.comparison is not None
    assert (first.comparison.queries, first.comparison.difference, first.refuses) == (10, 0, False)
    assert first.value == 0.5


@pytest.mark.parametrize("scope", [ResultScope.UNFILTERED, ResultScope.EVERYWHERE])
def test_only_runs_in_the_own_domain_are_judged(scope: ResultScope) -> None:
    after, before = result(fused=[0] * 20, scope=scope), result(fused=[1] * 20, scope=scope)
    assert judge(after, published(before), EvaluationSettings(floors={"RR@10": 1})) == ()


@pytest.mark.parametrize(("origin", "bound"), [("people", True), ("public", True), ("generated", False)])
def test_floors_bind_what_people_have_judged(origin: str, bound: bool) -> None:
    settings = EvaluationSettings(floors={"RR@10": 0.75})
    low, enough = (result(fused=[value] * 8, origin=JudgmentOrigin(origin)) for value in (0.74, 0.75))

    assert refused(low, None, settings) == ({("fused", "RR@10")} if bound else set())
    assert refused(enough, None, settings) == set()
    assert refused(low, low, settings) == refused(low, None, settings), "also when it never was better"


def test_a_floor_says_what_was_found_and_what_is_expected() -> None:
    (said,) = refusals(judge(result(fused=[0.5] * 4), None, EvaluationSettings(floors={"Recall@10": 0.9})))
    assert said == "golden: Recall@10 of the answers is 0.500; the floor is 0.9"


def test_a_refusal_names_the_worst_queries_and_how_probable_it_is() -> None:
    values = [0.0] * 2 + [0.5] * 10 + [1.0] * 8
    (said, *_) = refusals(judge(result(fused=values), published(result(fused=[1] * 20)), USUAL))

    assert said.startswith("golden: Recall@10 of fused: 1.000 → 0.650 over 20 queries (p 0.000")
    assert "margin 0.02); worse: q00, q01, q02, " in said
    assert said.endswith(f"q{SHOWN_QUERIES - 1:02}, …"), "not all of the twelve"


def test_what_sources_lost_is_said_only_where_the_answers_lost_nothing() -> None:
    before = result(fused=[1] * 20, others={"dense": [1] * 20})
    both = judge(result(fused=[0] * 20, others={"dense": [0] * 20}), published(before), USUAL)
    dense = judge(result(fused=[1] * 20, others={"dense": [0] * 20}), published(before), USUAL)

    assert [" of fused" in said for said in refusals(both)] == [True, True]
    assert [" of dense" in said for said in refusals(dense)] == [True, True]
    assert sum(finding.refuses for finding in both) == 4


def test_what_got_worse_in_the_answers_is_listed_worst_first() -> None:
    before = result(fused=[1, 1, 1, 0], others={"dense": [1, 1, 1, 1]})
    after = result(fused=[0.5, 0, 1, 1], others={"dense": [0, 0, 0, 0]})

    assert worse_queries(judge(after, published(before), USUAL)) == (
        ("golden", "q01", "RR@10", 1, 0),
        ("golden", "q01", "Recall@10", 1, 0),
        ("golden", "q00", "RR@10", 1, 0.5),
        ("golden", "q00", "Recall@10", 1, 0.5),
    )


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40),
    st.floats(0, 0.5),
    st.sampled_from(["fused", "dense", "sparse"]),
)
def test_what_did_not_change_is_never_refused(values: list[float], margin: float, stage: str) -> None:
    same = result(fused=values, others={stage: values})
    settings = EvaluationSettings(margin=margin, source_margin=margin)
    findings: tuple[GateFinding, ...] = judge(same, published(same), settings)

    assert findings
    assert refusals(findings) == ()


@pytest.mark.parametrize(("was", "now", "refuses", "warns"), [
    ([1] * 5, [1, 1, 1, 1, 0], False, True),  # a fifth: named
    ([1] * 5, [1, 1, 1, 0, 0], True, True),
    ([1] * 3, [1, 1, 0], True, True),
    ([1] * 12, [1] * 9 + [0] * 3, False, True),  # a quarter exactly
    ([1] * 12, [1] * 8 + [0] * 4, True, True),
    ([1] * 13, [1] * 9 + [0] * 4, False, True),  # a large set: by chance alone, margin and significance decide
    ([1] * 13, [1] * 8 + [0] * 5, True, True),
    ([1] * 5, [1, 1, 1, 1, 0.5], False, True),  # nothing is lost, and it is worse beyond the margin
    ([0, 1, 1, 1], [1, 1, 1, 0], False, True),  # another one came: no drop, and one is lost
    ([1] * 100, [1] * 99 + [0], False, False),  # within the margin
    ([0] * 4, [0] * 4, False, False),
])  # fmt: skip
def test_what_a_small_set_lost_is_named_and_too_much_of_it_holds_back(
    was: Sequence[float], now: Sequence[float], refuses: bool, warns: bool
) -> None:
    findings = judge(result(fused=now), published(result(fused=was)), USUAL)
    said = (*refusals(findings), *warnings(findings))
    assert (bool(refusals(findings)), bool(said)) == (refuses, warns)
    lost = [
        f"q{number:02}" for number, (before, after) in enumerate(zip(was, now, strict=True)) if before and not after
    ]
    if lost and len(was) <= 12:
        assert any(
            f"{len(lost)} of {len(was)} questions fell out of the first ten: {', '.join(lost)}" == each[8:]
            for each in said
        )
    off = judge(result(fused=now), published(result(fused=was)), EvaluationSettings(lost_share=1))
    assert len(was) > 12 or len(lost) >= 5 or not refusals(off)


def test_a_set_says_from_when_on_it_holds_back() -> None:
    assert holds_back(3, 0.25) == "1 of them fell out of the first ten"
    assert holds_back(12, 0.25) == "4 of them fell out of the first ten or 5 of them, or more, got worse beyond chance"
    assert holds_back(25, 0.25) == "5 of them, or more, got worse beyond chance"
    assert holds_back(4, 1) == holds_back(0, 0.25) == ""
    worst = judge(result(fused=[0.9] * 5), published(result(fused=[1] * 5)), EvaluationSettings(lost_share=1))
    assert refusals(worst), "five that are all worse are beyond chance"
    assert not refusals(judge(result(fused=[0.9] * 4), published(result(fused=[1] * 4)), USUAL))
