"""What ``GET /evaluations`` and ``nornweave evaluations`` show: the history, and two generations beside each other."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nornweave.ask.views.evaluations import WORST, comparison_document, evaluations_document
from nornweave.core.types import Domain
from nornweave.improve.history import HistoryFile
from nornweave.improve.records import Evaluation, QueryValue, StageMetric, Verdict

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIRST, SECOND = "gen-000001", "gen-000002"


@pytest.fixture
def history(tmp_path: Path) -> HistoryFile:
    return HistoryFile(tmp_path)


def measured(
    generation: str,
    values: Mapping[str, float],
    *,
    minutes: int = 0,
    set_name: str = "golden",
    scope: str = "domain",
    domain: str = "code",
    digest: str = "d",
    verdict: Verdict = Verdict.PUBLISHED,
) -> tuple[Evaluation, list[QueryValue]]:
    """Return an evaluation as history keeps it, with the values of one measure of the answers."""
    mean = sum(values.values()) / len(values)
    evaluation = Evaluation(
        evaluation_id=f"{generation} {set_name} {scope} {minutes}",
        run_id="run",
        at=NOON + timedelta(minutes=minutes),
        domain=domain,
        set_name=set_name,
        origin="people",
        scope=scope,
        generation=generation,
        verdict=verdict,
        commit="0.1.0+abc",
        queries=len(values) + 1,
        measured=len(values),
        missing=1,
        failed=2,
        p50_ms=1.23456,
        p95_ms=None,
        metrics=(
            StageMetric("sparse", "RR@10", 0.5, 0.1, 0.9),
            StageMetric("fused", "RR@10", mean, mean - 0.012345, mean + 0.1),
        ),
    )
    return evaluation, [QueryValue("fused", query, digest, "RR@10", value) for query, value in values.items()]


def test_an_empty_history_is_an_empty_document(history: HistoryFile) -> None:
    assert evaluations_document(history.evaluations()) == {"evaluations": []}


def test_an_evaluation_is_shown_whole(history: HistoryFile) -> None:
    history.record([measured(FIRST, {"a": 1, "b": 1 / 3}, verdict=Verdict.PASSED)])

    (shown,) = json.loads(json.dumps(evaluations_document(history.evaluations())))["evaluations"]
    assert shown == {
        "evaluation_id": f"{FIRST} golden domain 0",
        "run_id": "run",
        "at": "2026-03-01T12:00:00+00:00",
        "domain": "code",
        "set": "golden",
        "origin": "people",
        "scope": "domain",
        "generation": FIRST,
        "verdict": "passed",
        "commit": "0.1.0+abc",
        "queries": 3,
        "measured": 2,
        "missing_documents": 1,
        "failed_queries": 2,
        "latency_ms": {"p50": 1.235, "p95": None},
        "stages": {
            "sparse": {"RR@10": {"mean": 0.5, "interval": [0.1, 0.9]}},
            "fused": {"RR@10": {"mean": 0.6667, "interval": [0.6543, 0.7667]}},
        },
    }


def test_the_newest_come_first_and_can_be_asked_for(history: HistoryFile) -> None:
    history.record(
        [
            measured(FIRST, {"a": 1}, minutes=1),
            measured(SECOND, {"a": 1}, minutes=2, set_name="generated"),
            measured(SECOND, {"a": 1}, minutes=3, scope="all domains", domain="research"),
        ]
    )

    def at(**asked: Any) -> list[str]:
        return [one["at"][14:16] for one in evaluations_document(history.evaluations(**asked))["evaluations"]]

    assert at() == ["03", "02", "01"]
    assert at(limit=1) == ["03"]
    assert at(domain=Domain.CODE) == ["02", "01"]
    assert at(set_name="golden") == ["03", "01"]
    assert at(scope="domain") == ["02", "01"]
    assert at(generation=SECOND) == ["03", "02"]


def test_two_generations_are_compared_query_by_query(history: HistoryFile) -> None:
    history.record(
        [
            measured(FIRST, {"a": 1, "b": 1, "c": 0.5, "d": 0}),
            measured(SECOND, {"a": 0.5, "b": 0, "c": 1, "e": 1}, minutes=1),
        ]
    )

    document = comparison_document(history, Domain.CODE, FIRST, SECOND)

    assert (document["domain"], document["before"], document["after"]) == ("code", FIRST, SECOND)
    assert document["notices"] == []
    (measure,) = document["measures"]
    low, high = measure["interval"]
    assert -1 <= low < measure["after"] - measure["before"] < high <= 1
    assert {key: value for key, value in measure.items() if key != "interval"} == {
        "set": "golden",
        "scope": "domain",
        "stage": "fused",
        "measure": "RR@10",
        "queries": 3,
        "before": 0.8333,
        "after": 0.5,
        # Differences −½, −1, +½: sums of ±1 come four ways of eight, ±2 twice, 0 twice: as extreme as −1 are six.
        "p_value": 0.75,
        "better": 1,
        "worse": [{"query_id": "b", "before": 1, "after": 0}, {"query_id": "a", "before": 1, "after": 0.5}],
    }


def test_the_largest_losses_come_first(history: HistoryFile) -> None:
    losses = {"a little": 0.1, "much": 0.8, "nothing": 0, "gain": -0.2, "some": 0.4}
    for name, loss in losses.items():
        history.record(
            [measured(FIRST, {"q": 0.8}, set_name=name), measured(SECOND, {"q": 0.8 - loss}, set_name=name, minutes=1)]
        )

    found = comparison_document(history, Domain.CODE, FIRST, SECOND)["measures"]
    assert [one["set"] for one in found] == ["much", "some", "a little", "nothing", "gain"]
    (only,) = comparison_document(history, Domain.CODE, FIRST, SECOND, "some")["measures"]
    assert only["set"] == "some"

    back = comparison_document(history, Domain.CODE, SECOND, FIRST)["measures"]
    assert [one["set"] for one in back] == ["gain", "nothing", "a little", "some", "much"]


def test_only_the_worst_queries_are_named(history: HistoryFile) -> None:
    queries = [f"q{number:03}" for number in range(WORST + 10)]
    history.record(
        [
            measured(FIRST, dict.fromkeys(queries, 1.0)),
            measured(SECOND, {query: number / 100 for number, query in enumerate(queries)}, minutes=1),
        ]
    )

    (measure,) = comparison_document(history, Domain.CODE, FIRST, SECOND)["measures"]
    assert [one["query_id"] for one in measure["worse"]] == queries[:WORST]


def test_what_differs_in_digest_set_or_scope_is_not_compared(history: HistoryFile) -> None:
    history.record(
        [
            measured(FIRST, {"a": 1}),
            measured(SECOND, {"a": 0}, minutes=1, digest="reworded"),
            measured(SECOND, {"a": 0}, minutes=2, set_name="generated"),
            measured(SECOND, {"a": 0}, minutes=3, scope="all domains"),
        ]
    )

    document = comparison_document(history, Domain.CODE, FIRST, SECOND)
    assert document["measures"] == []
    assert document["notices"] == [
        "golden, domain: the single queries' values are not kept any more, or none is the same"
    ]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ([(0.5, 3, Verdict.PASSED), (0, 5, Verdict.REFUSED)], 0.5),
        ([(0.5, 3, Verdict.PASSED), (0, 1, Verdict.REFUSED)], 0.5),
        ([(0.5, 3, Verdict.PASSED), (0, 5, Verdict.OUTDATED)], 0.5),
        ([(0.25, 1, Verdict.REFUSED)], 0.25),
        ([(0.25, 2, Verdict.PUBLISHED), (0.75, 1, Verdict.PUBLISHED)], 0.25),
    ],
    ids=["refused later", "refused before", "outdated", "only refused", "the newest"],
)
def test_a_generation_is_what_it_was_published_as(
    history: HistoryFile, second: list[tuple[float, int, Verdict]], expected: float
) -> None:
    """A refused candidate's name goes to the next one; what newer code has measured comes second as well."""
    history.record([measured(FIRST, {"a": 1})])
    history.record([measured(SECOND, {"a": of}, minutes=at, verdict=verdict) for of, at, verdict in second])

    (measure,) = comparison_document(history, Domain.CODE, FIRST, SECOND)["measures"]
    assert measure["after"] == expected
