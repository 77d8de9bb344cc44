"""The worked example of the fusion stages, end to end: its conflict, its demotion, its order, its gap, its JSON."""

import json
from dataclasses import replace

import pytest
from fusion_support import day, item, response
from questions import question_of

from nornweave.ask.fuse.records import Recalled
from nornweave.ask.pipeline import answer_from
from nornweave.ask.search.question import ConflictStrategy
from nornweave.ask.search.records import CoverageGap, SearchSignals
from nornweave.ask.views.answer import answer_document
from nornweave.config.workspace import FusionSettings
from nornweave.disagree.conflicts.records import Detector

QUERY = "what's the error handling behavior in the payment module"
CODE = (
    item(
        "c-001",
        "def handle_payment_error(e: PaymentError) → Response: return JSONResponse(status_code=422, ...)",
        0.91,
        path="src/payments/handlers.py",
        written="2026-01-20",
    ),
    item(
        "c-002",
        'class PaymentValidator: def validate(self, req): if not req.amount: raise PaymentError("missing amount")',
        0.84,
        path="src/payments/validator.py",
        written="2026-01-18",
    ),
    item(
        "c-003",
        "# Payment retry logic with exponential backoff",
        0.65,
        path="src/payments/retry.py",
        written="2026-01-10",
    ),
)
DOCS = (
    item(
        "d-001",
        "## Error Handling — The payment module returns HTTP 400 for malformed requests and HTTP 500 for downstream "
        "failures.",
        0.88,
        domain="documentation",
        path="docs/api/payments.md",
        written="2025-12-01",
    ),
    item(
        "d-002",
        "## Payment Module Overview — Handles all payment processing including validation, authorization, and "
        "settlement.",
        0.72,
        domain="documentation",
        path="docs/api/payments.md",
        written="2025-12-01",
    ),
)
QUESTION = question_of(QUERY, strategy=ConflictStrategy.RECENCY, now=day("2026-01-23"))
RECALLED = Recalled(
    asked={"code": "code-memory", "documentation": "docs-memory"},
    responses=(
        response("code", *CODE, searched=1500),
        response("documentation", *DOCS, agent="docs-memory", searched=870),
    ),
    coverage_gaps=(CoverageGap("conversations", "convo-memory", "timeout after 5000ms"),),
    domain_signals={"code": 0.85, "documentation": 0.55},
)
SETTINGS = FusionSettings()


def test_the_order_of_the_example() -> None:
    answered = answer_from(QUESTION, RECALLED, SETTINGS)
    assert [one.chunk_id for one in answered.items] == ["c-001", "c-002", "d-001", "c-003", "d-002"]


def test_the_scores_of_the_example() -> None:
    """The figures, worked out and rounded by hand, are within three hundredths."""
    scores = {one.chunk_id: one.score for one in answer_from(QUESTION, RECALLED, SETTINGS).items}
    expected = {"c-001": 0.831, "c-002": 0.693, "d-001": 0.582, "c-003": 0.283, "d-002": 0.232}
    assert scores == pytest.approx(expected, abs=0.03)


def test_normalised_scores_and_the_demotion() -> None:
    """(0.84 − 0.65) / 0.26 = 0.73; the loser's 1.00 goes down by 0.30."""
    items = {one.chunk_id: one for one in answer_from(QUESTION, RECALLED, SETTINGS).items}
    scores = {chunk_id: fused.relevance for chunk_id, fused in items.items()}
    assert scores == pytest.approx({"c-001": 1.0, "c-002": 0.19 / 0.26, "d-001": 0.7, "c-003": 0.0, "d-002": 0.0})
    assert [chunk_id for chunk_id, fused in items.items() if fused.demoted] == ["d-001"]


def test_the_conflict_of_the_example() -> None:
    (conflict,) = answer_from(QUESTION, RECALLED, SETTINGS).conflicts
    assert conflict.items == ("c-001", "d-001")
    assert (conflict.resolution, conflict.resolved_to) == (ConflictStrategy.RECENCY, "c-001")
    assert conflict.detector is Detector.SAME_ENTITY_DIVERGENCE
    assert conflict.attribute == "http_status"
    assert "2026-01-20" in conflict.reason
    assert "2025-12-01" in conflict.reason
    assert next(side.fact.value for side in conflict.sides if side.fact) == "422"
    assert all(value in conflict.explanation for value in ("422", "400"))


@pytest.mark.parametrize(("score", "answering", "near"), [(0.9, True, False), (0.2, False, True), (0.0, False, False)])
def test_the_sentences_of_a_doubtful_answer_are_called_the_nearest(score: float, answering: bool, near: bool) -> None:
    names = ("margin", "sparse", "sparse_margin", "agreement", "background", "lost", "unknown")
    signals = SearchSignals(frozenset(QUERY.split()), {"score": score, **dict.fromkeys(names, 0.0)})
    recalled = replace(RECALLED, responses=(replace(response("code", CODE[2]), signals=signals),))
    document = answer_document(answer_from(QUESTION, recalled, SETTINGS))
    assert (bool(document["extract"]), bool(document["nearest"])) == (answering, near)
    said = [sentence["text"] for sentence in document["extract"] + document["nearest"]]
    assert said == ["Payment retry logic with exponential backoff"] * (answering or near)


def test_the_json_of_the_example() -> None:
    document = json.loads(json.dumps(answer_document(answer_from(QUESTION, RECALLED, SETTINGS))))
    assert document["domains_queried"] == ["code", "documentation"]
    assert document["coverage_gaps"] == [
        {"domain_id": "conversations", "agent_id": "convo-memory", "reason": "timeout after 5000ms"}
    ]
    assert document["synthesis"] is None
    assert document["conflicts"][0]["items"] == ["c-001", "d-001"]
    assert document["conflicts"][0]["resolution"] == "RECENCY"
    assert document["conflicts"][0]["resolved_to"] == "c-001"
    assert [claim["source_path"] for claim in document["conflicts"][0]["claims"]] == [
        "src/payments/handlers.py",
        "docs/api/payments.md",
    ]
    roles = {one["chunk_id"]: one["conflict"] and one["conflict"]["role"] for one in document["items"]}
    assert roles == {"c-001": "holds", "c-002": None, "d-001": "demoted", "c-003": None, "d-002": None}
    for one in document["items"]:
        assert sum(one["score"]["signals"].values()) == pytest.approx(one["score"]["value"], abs=1e-5)
    assert document["stats"]["total_items"] == 5
    assert document["stats"]["final_items"] == 5
    assert document["duplicates_removed"] == 0
    assert set(document["stage_latency_ms"]) >= {"collect", "normalize", "deduplicate", "conflicts", "rank"}
