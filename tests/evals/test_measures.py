import math
import random

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.measures import MEASURES, measure, metric_of


def log2(value: float) -> float:
    return math.log2(value)


def test_values_by_hand() -> None:
    """Place 2 hits a; place 3 hits b and c at once; d is never found."""
    metrics = measure({"q": [(), ("a",), ("b", "c"), ()]}, {"q": {"a": 1, "b": 1, "c": 1, "d": 1}})
    assert tuple(metrics) == MEASURES
    means = {name: metric.mean for name, metric in metrics.items()}
    found = 1 / log2(3) + 1 / log2(4) + 1 / log2(5)  # b and c follow each other: ranks 2, 3 and 4
    ideal = 1 / log2(2) + 1 / log2(3) + 1 / log2(4) + 1 / log2(5)
    assert means == pytest.approx(
        {"Recall@10": 3 / 4, "RR@10": 1 / 2, "nDCG@10": found / ideal, "P@5": 2 / 5, "Success@1": 0}
    )


def test_judgments_that_share_the_tenth_place_are_all_found() -> None:
    keys = [f"m{number}" for number in range(12)]
    ranking = [*((key,) for key in keys[:9]), (keys[9], keys[10]), (keys[11],)]
    metrics = measure({"q": ranking}, {"q": dict.fromkeys(keys, 1)})
    assert metrics["Recall@10"].mean == pytest.approx(11 / 12), "the eleventh place is not looked at"
    assert metrics["nDCG@10"].mean == pytest.approx(1)


def test_every_judged_query_counts_answered_or_not() -> None:
    """Of four queries one is perfect, one never ran, one found nothing, one found the wrong things."""
    grades = {query: {"a": 1} for query in ("perfect", "never ran", "empty", "wrong")}
    metrics = measure({"perfect": [("a",)], "empty": [], "wrong": [(), ()], "not judged": [("x",)]}, grades)
    for name, value in (("Recall@10", 1), ("RR@10", 1), ("nDCG@10", 1), ("P@5", 1 / 5), ("Success@1", 1)):
        assert metrics[name].mean == pytest.approx(value / 4)
        assert metrics[name].values == pytest.approx({"perfect": value, "never ran": 0, "empty": 0, "wrong": 0})


def test_ids_may_hold_anything() -> None:
    """trec_eval cuts ids at a NUL, cannot encode lone surrogates, and splits its files at blanks."""
    keys = ["a b#L1-2", "a b#L1-3", "\0", "\0x", "\ud800", "ö" * 5000, ""]
    metrics = measure({"q\0": [(key,) for key in keys], "q\0\0": []}, {"q\0": dict.fromkeys(keys, 1), "q\0\0": {"": 1}})
    assert metrics["Recall@10"].values == {"q\0": 1, "q\0\0": 0}
    assert metrics["nDCG@10"].values == {"q\0": pytest.approx(1), "q\0\0": 0}


def test_only_what_is_asked_for() -> None:
    metrics = measure({"q": [("a",)]}, {"q": {"a": 1, "b": 1}}, ("P@5", "Recall@10"))
    assert {name: metric.mean for name, metric in metrics.items()} == {"Recall@10": 0.5, "P@5": pytest.approx(0.2)}
    assert list(metrics) == ["Recall@10", "P@5"]


def test_what_cannot_be_measured() -> None:
    with pytest.raises(ValueError, match="'q' has no judgment above grade 0"):
        measure({}, {"p": {"a": 1}, "q": {"a": 0, "b": -1}})
    with pytest.raises(ValueError, match="no judged query"):
        measure({}, {})


@st.composite
def _runs(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    grades = draw(
        st.dictionaries(
            st.sampled_from([f"q{number}" for number in range(6)]),
            st.dictionaries(st.sampled_from("abcdefghijklmno"), st.integers(-1, 4), min_size=1, max_size=14).filter(
                lambda of_query: max(of_query.values()) > 0
            ),
            min_size=1,
        )
    )
    run = {query: draw(st.lists(st.sampled_from("abcdefghijklmnoxyz"), unique=True, max_size=18)) for query in grades}
    return run, grades


@given(_runs())
def test_the_values_are_those_of_ir_measures_called_directly(
    drawn: tuple[dict[str, list[str]], dict[str, dict[str, int]]],
) -> None:
    """Where no place hits more than one judgment, and with the same cutoff at ten."""
    run, grades = drawn
    rankings = {q: [(key,) if key in grades[q] else () for key in keys] for q, keys in run.items()}
    ours = measure(rankings, grades)
    qrels = {q: {key: max(0, grade) for key, grade in of.items()} for q, of in grades.items()}
    scored = {q: {key: -float(rank) for rank, key in enumerate(keys)} for q, keys in run.items() if keys}
    names = {"Recall@10": "R@10", **{name: name for name in MEASURES[1:]}}
    measures = {name: ir_measures.parse_measure(theirs) for name, theirs in names.items()}
    expected = ir_measures.calc(list(measures.values()), qrels, scored)
    for name, measured in measures.items():
        per_query = {one.query_id: one.value for one in expected.per_query if one.measure == measured}
        assert ours[name].values == {query: per_query.get(query, 0) for query in grades}, "to the last bit"
        assert ours[name].mean == pytest.approx(expected.aggregated[measured])


def test_places_that_share_judgments_are_measured_as_trec_eval_does_in_both_views() -> None:
    """Two thousand queries: grades from below 0 to far above, shared and empty places, far more than ten of them."""
    chance = random.Random(20)
    grades: dict[str, dict[str, int]] = {}
    rankings: dict[str, list[tuple[str, ...]]] = {}
    rows: dict[str, dict[str, float]] = {}
    places: dict[str, dict[str, float]] = {}
    for query in map(str, range(2_000)):
        keys = [f"k{number}" for number in range(chance.randint(1, 30))]
        grades[query] = {key: chance.choice((-1, 0, 0, 1, 1, 2, 3, 40)) for key in keys} | {"k0": 1}
        found = chance.sample(keys, chance.randint(0, len(keys)))
        ranking = rankings[query] = []
        while found or (ranking and chance.random() < 0.3):
            size = chance.choice((0, 1, 1, 2, 3))
            ranking.append(tuple(sorted(found[:size], key=lambda key: -grades[query][key])))
            found = found[size:]
        first_ten = [keys or (f"nothing {place}",) for place, keys in enumerate(ranking[:10])]
        flat = [key for place in first_ten for key in place]
        rows[query] = {key: -float(row) for row, key in enumerate(flat)}
        places[query] = {keys[0]: -float(place) for place, keys in enumerate(first_ten)}
    qrels = {query: {key: max(0, grade) for key, grade in of.items()} for query, of in grades.items()}
    ours = measure(rankings, grades)
    views = {"Recall@10": ("SetR", rows), "nDCG@10": ("nDCG@10", rows), "RR@10": ("RR@10", places)}
    views |= {name: (name, places) for name in ("P@5", "Success@1")}
    for name, (theirs, runs) in views.items():
        asked = {query: run for query, run in runs.items() if run}
        values = {
            one.query_id: one.value for one in ir_measures.iter_calc([ir_measures.parse_measure(theirs)], qrels, asked)
        }
        assert ours[name].values == {query: values.get(query, 0) for query in grades}, name
    assert {len(one) for one in rankings.values()} >= {0, 1, 10, 12} and any(len(rows[query]) > 12 for query in rows)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_the_interval_holds_the_mean_and_stays_within_the_values(values: list[float]) -> None:
    metric = metric_of({str(number): value for number, value in enumerate(values)})
    slack = 1e-9
    assert min(values) - slack <= metric.low <= metric.high <= max(values) + slack
    assert metric.low - slack <= metric.mean <= metric.high + slack


def test_the_interval_agrees_with_the_normal_approximation() -> None:
    """For many queries the bootstrap comes to mean ± 1.96 standard errors."""
    generator = np.random.default_rng(7)
    samples = generator.random(2_000)
    metric = metric_of({str(number): float(value) for number, value in enumerate(samples)})
    error = 1.96 * samples.std() / math.sqrt(len(samples))
    assert metric.low == pytest.approx(metric.mean - error, abs=error / 10)
    assert metric.high == pytest.approx(metric.mean + error, abs=error / 10)


def test_the_draws_are_the_same_in_every_process() -> None:
    metric = metric_of({str(number): number**0.5 for number in range(20)})
    assert (metric.low, metric.high) == pytest.approx((2.3188544, 3.3348295), abs=1e-6)
