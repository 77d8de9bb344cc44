"""``GET /evaluations``: what the history holds, and two generations beside each other."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from api_support import Ask, conforms, is_problem

from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument
from nornweave.config import Settings
from nornweave.improve.history import HistoryFile
from nornweave.improve.records import Evaluation, QueryValue, StageMetric, Verdict

VALUES = {"gen-000001": {"q1": 1.0, "q2": 1.0, "q3": 0.0}, "gen-000002": {"q1": 1.0, "q2": 0.5, "q3": 0.25}}


def evaluation(generation: str, set_name: str = "golden") -> tuple[Evaluation, list[QueryValue]]:
    values = VALUES[generation]
    return (
        Evaluation(
            evaluation_id=f"{generation}-{set_name}",
            run_id="run",
            at=datetime(2026, 1, int(generation[-1]), tzinfo=UTC),
            domain="code",
            set_name=set_name,
            origin="people",
            scope="domain",
            generation=generation,
            verdict=Verdict.PUBLISHED,
            commit="0.1.0+abc1234",
            queries=3,
            measured=3,
            missing=0,
            failed=0,
            p50_ms=4.25,
            p95_ms=None,
            metrics=(StageMetric("fused", "RR@10", sum(values.values()) / 3, 0.0, 1.0),),
        ),
        [QueryValue("fused", query, "digest", "RR@10", value) for query, value in values.items()],
    )


@pytest.fixture
def get(settings: Settings, ask: Ask) -> Callable[[str], httpx.Response]:
    HistoryFile(settings.data_dir / "evaluations").record(
        [evaluation("gen-000001"), evaluation("gen-000002"), evaluation("gen-000002", "other")]
    )
    return lambda url: ask("GET", url)


def test_what_was_measured_comes_newest_first(get: Any) -> None:
    document = get("/evaluations").json()
    conforms(EvaluationsDocument, document)
    assert [one["evaluation_id"] for one in document["evaluations"]] == [
        "gen-000002-golden", "gen-000002-other", "gen-000001-golden"
    ]  # fmt: skip
    first = document["evaluations"][-1]
    assert (first["set"], first["generation"], first["commit"]) == ("golden", "gen-000001", "0.1.0+abc1234")
    assert first["stages"] == {"fused": {"RR@10": {"mean": 0.6667, "interval": [0.0, 1.0]}}}
    assert first["latency_ms"] == {"p50": 4.25, "p95": None}


@pytest.mark.parametrize(("query", "found"), [
    ("set=other", 1), ("generation=gen-000002", 2), ("limit=1", 1), ("domain=code&scope=domain", 3),
    ("domain=all", 0),
])  # fmt: skip
def test_it_can_be_narrowed(get: Any, query: str, found: int) -> None:
    assert len(get(f"/evaluations?{query}").json()["evaluations"]) == found


def test_two_generations_are_compared_query_by_query(get: Any) -> None:
    document = get("/evaluations/compare?domain=code&before=gen-000001&after=gen-000002").json()
    conforms(ComparisonDocument, document)
    (measure,) = document["measures"]
    assert (measure["set"], measure["before"], measure["after"], measure["better"]) == ("golden", 0.6667, 0.5833, 1)
    assert measure["worse"] == [{"query_id": "q2", "before": 1.0, "after": 0.5}]
    # Two differing queries, -.5 and +.25: all four ways to flip their signs move the sum by .25 or more.
    assert measure["p_value"] == 1.0


def test_the_page_shows_series_the_last_refusal_and_a_comparison(settings: Settings, ask: Ask) -> None:
    refused = replace(evaluation("gen-000002", "other")[0], verdict=Verdict.REFUSED, generation="gen-000003")
    values = [replace(value, value=0.0) for value in evaluation("gen-000002", "other")[1]]
    history = HistoryFile(settings.data_dir / "evaluations")
    history.record([evaluation("gen-000001", "other"), evaluation("gen-000001"), evaluation("gen-000002")])
    history.record([(replace(refused, evaluation_id="refused", at=datetime(2026, 1, 3, tzinfo=UTC)), values)])
    page = ask("GET", "/quality?domain=code&before=gen-000001&after=gen-000002").text
    assert 'aria-label="MRR: 2 measurements, the last 0.583 (95 % interval 0.000 to 1.000) on 2026-01-02"' in page
    assert "The last candidate that was refused" in page
    assert "code gen-000003, 2026-01-03" in page
    assert "<code>q1</code></bdi> 1.00 → 0.00" in page, "the queries of the refusal"
    assert "<code>q2</code></bdi> 1.00 → 0.50" in page, "those of the comparison"


def test_a_generation_that_was_never_measured_is_said(get: Any) -> None:
    document = get("/evaluations/compare?domain=code&before=gen-000001&after=gen-000009").json()
    assert document["measures"] == []
    assert document["notices"] == ["code: gen-000009 was never measured; `nornweave evaluations` lists what was"]


@pytest.mark.parametrize(("url", "field"), [
    ("/evaluations?limit=0", "limit"), ("/evaluations?limit=x", "limit"), ("/evaluations?from=1", "from"),
    ("/evaluations?set=%00", "set"), ("/evaluations/compare?domain=code&before=gen-000001", "after"),
    ("/evaluations/compare?domain=nothing&before=a&after=b", "domain"),
])  # fmt: skip
def test_wrong_parameters_are_named(look: Ask, url: str, field: str) -> None:
    problem = is_problem(look("GET", url), 422)
    assert field in str(problem["errors"])


def test_before_the_first_evaluation_there_is_nothing(look: Ask) -> None:
    assert look("GET", "/evaluations").json() == {"evaluations": []}
