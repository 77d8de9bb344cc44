"""The reranking formulas of the domains, calculated by hand, and what reranking must never do."""

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranked_items import citation

from nornweave.ask.search.records import RecallItem
from nornweave.ask.search.rerank import Ranked, rerank
from nornweave.config import RerankingSettings, RerankingWeights
from nornweave.connect.connectors import load_settings
from nornweave.core.types import ChunkId, Domain, JsonValue

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Domain, RerankingSettings]:
    """The domain files, as they come."""
    file = tmp_path_factory.mktemp("settings") / "nornweave.yaml"
    file.write_text("", encoding="utf-8")
    return {domain: domain_settings.reranking for domain, domain_settings in load_settings(file, {}).domains.items()}


def candidate(
    name: str,
    score: float,
    *,
    path: str = "a.md",
    section: str | None = None,
    age: float | None = None,
    domain: Domain = Domain.DOCUMENTATION,
    metadata: Mapping[str, JsonValue] | None = None,
    **more: JsonValue,
) -> RecallItem:
    return RecallItem(
        chunk_id=ChunkId(name),
        score=score,
        content=f"content of {name}",
        citation=citation(
            domain.value, path, section=section, timestamp=None if age is None else NOW - timedelta(days=age)
        ),
        sources={},
        metadata={
            **(metadata or {}),
            **({} if age is None else {"message_timestamp": (NOW - timedelta(days=age)).isoformat()}),
            **({} if age is None else {"publication_date": (NOW - timedelta(days=age)).isoformat()}),
            **more,
        },
    )


def finals(ranked: tuple[Ranked, ...]) -> dict[str, float]:
    return {one.item.chunk_id: one.final_score for one in ranked}


def names(ranked: tuple[Ranked, ...]) -> list[str]:
    return [one.item.chunk_id for one in ranked]


def test_the_code_formula(settings: Mapping[Domain, RerankingSettings]) -> None:
    ranked = rerank(
        [
            candidate("both", 0.1, path="src/pay/retry.py", function_name="retry_refund"),
            candidate("symbol", 0.2, path="b.py", class_name="RefundClient", function_name="run"),
            candidate("none", 0.3, path="c.py", function_name="retry"),
        ],
        query="why does RefundClient call retry_refund in pay/retry.py",
        domain=Domain.CODE,
        settings=settings[Domain.CODE],
        now=NOW,
        model_scores=[0.6, 0.65, 0.7],
    )
    # .6 · .7 + (.15 + .10) · .3 · · · .65 · .7 + .15 · .3 · · · .7 · .7
    assert finals(ranked) == pytest.approx({"both": 0.495, "symbol": 0.5, "none": 0.49})
    assert names(ranked) == ["symbol", "both", "none"]
    assert dict(ranked[1].bonuses) == {"symbol_match": 0.15, "path_match": 0.10}
    assert [one.model_score for one in ranked] == [0.65, 0.6, 0.7]


@pytest.mark.parametrize(("domain", "found", "model_score", "expected"), [
    # .8 · .7 + .10 · .2 · · · .8 · .7 + (.05 · 45/90) · .1
    (
        Domain.DOCUMENTATION,
        {"old": {"section": "Guides > Refunds", "age": 400}, "new": {"section": "Guides > Payments", "age": 45}},
        0.8,
        {"old": 0.58, "new": 0.5625},
    ),
    # .4 · .65 + .15 · .25 + .05 · .10 · · · .4 · .65 + .15/e · .25
    (
        Domain.CONVERSATIONS,
        {"today": {"age": 0, "reaction_count": 10}, "month": {"age": 30, "reaction_count": 0}},
        0.4,
        {"today": 0.3025, "month": 0.26 + 0.0375 / math.e},
    ),
    # .9 · .70 + (.02 · 3) · .20 · · · .9 · .70 + .05 · .20 + (.05 · 72/90) · .10
    (
        Domain.RESEARCH,
        {"cited": {"age": 3_000, "citation_count": 999}, "accepted": {"age": 18, "is_accepted": True}},
        0.9,
        {"cited": 0.642, "accepted": 0.644},
    ),
])  # fmt: skip
def test_the_formulas_of_other_domains(
    settings: Mapping[Domain, RerankingSettings],
    domain: Domain,
    found: Mapping[str, Mapping[str, Any]],
    model_score: float,
    expected: Mapping[str, float],
) -> None:
    candidates = [candidate(name, 0.5, domain=domain, **facts) for name, facts in found.items()]
    scores = [model_score] * len(candidates)
    ranked = rerank(
        candidates, query="how are refunds made", domain=domain, settings=settings[domain], now=NOW, model_scores=scores
    )
    assert finals(ranked) == pytest.approx(expected)


def test_the_formula_is_clamped_and_a_general_weight_goes_before_the_tables() -> None:
    settings = RerankingSettings.model_validate({"weights": {"model": 1.0, "heuristic": 1.0}})
    items = [candidate("a", 0.95, function_name="do_refund"), candidate("b", 0.5, function_name="do_refund")]
    ranked = rerank(items, query="do_refund", domain=Domain.CODE, settings=settings, now=NOW)
    assert finals(ranked) == pytest.approx({"a": 1.0, "b": 0.65})


def test_without_a_model_the_combined_score_takes_its_place(settings: Mapping[Domain, RerankingSettings]) -> None:
    ranked = rerank(
        [candidate("first", 0.62, function_name="other"), candidate("second", 0.60, function_name="retry_refund")],
        query="retry_refund",
        domain=Domain.CODE,
        settings=settings[Domain.CODE],
        now=NOW,
    )
    # .62 · .7 · · · .60 · .7 + .15 · .3
    assert finals(ranked) == pytest.approx({"first": 0.434, "second": 0.465})
    assert names(ranked) == ["second", "first"]
    assert [one.score for one in ranked] == [0.62, 0.60]
    assert [one.model_score for one in ranked] == [None, None]


def test_switched_off_without_a_model_nothing_changes(settings: Mapping[Domain, RerankingSettings]) -> None:
    ranked = rerank(
        [candidate("b", 0.3, age=0), candidate("c", 0.3, age=0), candidate("a", 0.2999999999999), candidate("d", 1.0)],
        query="anything",
        domain=Domain.CONVERSATIONS,
        settings=settings[Domain.CONVERSATIONS],
        now=NOW,
        heuristics=False,
    )
    assert [(one.item.chunk_id, one.score) for one in ranked] == [
        ("d", 1.0),
        ("b", 0.3),
        ("c", 0.3),
        ("a", 0.2999999999999),
    ]
    assert all(one.final_score == one.score and not one.bonuses for one in ranked)


def test_switched_off_with_a_model_its_score_alone_decides(settings: Mapping[Domain, RerankingSettings]) -> None:
    ranked = rerank(
        [candidate("a", 0.9, age=0), candidate("b", 0.1)],
        query="anything",
        domain=Domain.CONVERSATIONS,
        settings=settings[Domain.CONVERSATIONS],
        now=NOW,
        model_scores=np.array([0.25, 0.5], dtype=np.float32),
        heuristics=False,
    )
    assert [(one.item.chunk_id, one.final_score, one.score) for one in ranked] == [("b", 0.5, 0.9), ("a", 0.25, 0.1)]


def test_equal_places_are_told_apart_by_the_order(settings: Mapping[Domain, RerankingSettings]) -> None:
    for score in (0.0, 0.5, 1.0):
        ranked = rerank(
            [candidate(name, score) for name in "abc"],
            query="q",
            domain=Domain.CODE,
            settings=settings[Domain.CODE],
            now=NOW,
            model_scores=[0.1, 0.3, 0.2],
        )
        assert names(ranked) == ["b", "c", "a"]
        assert ranked[0].score > ranked[1].score > ranked[2].score
        assert [one.score for one in ranked] == pytest.approx([score] * 3, abs=1e-6)


@pytest.mark.parametrize(("scores", "model_scores", "problem"), [
    ([0.5, math.nan], None, "nan"), ([0.5, 1.5], None, r"1\.5"), ([0.5, 0.5], [0.5], "1 model scores for 2"),
    ([0.5, 0.5], [0.5, -2.0], r"-2\.0"), ([0.5, 0.5], [0.5, math.inf], "inf"),
])  # fmt: skip
def test_scores_that_are_none_are_refused(scores: list[float], model_scores: list[float] | None, problem: str) -> None:
    found = [candidate(f"c{at}", score) for at, score in enumerate(scores)]
    with pytest.raises(ValueError, match=problem):
        rerank(found, query="q", domain=Domain.CODE, settings=RerankingSettings(), now=NOW, model_scores=model_scores)


def test_a_chunk_given_twice_is_refused_and_rounding_is_not() -> None:
    with pytest.raises(ValueError, match="twice"):
        rerank(
            [candidate("a", 0.1), candidate("a", 0.2)],
            query="q",
            domain=Domain.CODE,
            settings=RerankingSettings(),
            now=NOW,
        )
    ranked = rerank(
        [candidate("a", 1.0 + 1e-12), candidate("b", -1e-12)],
        query="q",
        domain=Domain.CODE,
        settings=RerankingSettings(),
        now=NOW,
    )
    assert [one.score for one in ranked] == [1.0, 0.0]
    assert rerank([], query="q", domain=Domain.CODE, settings=RerankingSettings(), now=NOW) == ()


SCORES = st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0])
CANDIDATES = st.lists(
    st.tuples(
        SCORES,
        SCORES,
        st.sampled_from(["src/payments/handlers.py", "docs/ü.md", ""]),
        st.none() | st.integers(-5, 200),
        st.fixed_dictionaries(
            {},
            optional={
                "function_name": st.sampled_from(["do_refund", "run"]),
                "reaction_count": st.integers(0, 20),
                "citation_count": st.integers(0, 10**6),
                "is_accepted": st.booleans(),
            },
        ),
    ),
    max_size=12,
)
BONUS = st.sampled_from(["symbol_match_bonus", "heading_match_bonus", "recency_bonus_max"])
SETTINGS = st.builds(
    RerankingSettings,
    heuristics=st.dictionaries(BONUS, SCORES),
    weights=st.builds(RerankingWeights, model=st.floats(0.1, 1), heuristic=st.none() | SCORES),
)
DOMAINS = st.sampled_from(Domain)


@given(
    found=CANDIDATES,
    domain=DOMAINS,
    settings=SETTINGS,
    modelled=st.booleans(),
    heuristics=st.booleans(),
    seed=st.integers(0, 99),
)
def test_reranking_only_orders(
    found: list[tuple[float, float, str, int | None, dict[str, JsonValue]]],
    domain: Domain,
    settings: RerankingSettings,
    modelled: bool,
    heuristics: bool,
    seed: int,
) -> None:
    candidates = [
        candidate(f"c{at:02}", score, path=path, age=age, metadata=metadata)
        for at, (score, _, path, age, metadata) in enumerate(found)
    ]
    models = [model for _, model, *_ in found]

    def run(order: list[int]) -> tuple[Ranked, ...]:
        return rerank(
            [candidates[at] for at in order],
            query="do_refund in payments/handlers.py",
            domain=domain,
            settings=settings,
            now=NOW,
            model_scores=[models[at] for at in order] if modelled else None,
            heuristics=heuristics,
        )

    straight = list(range(len(found)))
    ranked = run(straight)
    shuffled = random.Random(seed).sample(straight, len(straight))
    assert run(shuffled) == ranked
    assert sorted(names(ranked)) == [one.chunk_id for one in candidates]
    assert all(0 <= one.score <= 1 and 0 <= one.final_score <= 1 for one in ranked)
    # The order is that of the final score and of the score alike, ties by chunk id.
    by_final_score = sorted(ranked, key=lambda one: (-one.final_score, one.item.chunk_id))
    by_score = sorted(ranked, key=lambda one: (-one.score, one.item.chunk_id))
    assert names(ranked) == names(tuple(by_final_score)) == names(tuple(by_score))
    # What the domain was worth beside others, it is still.
    before = sorted((one.score for one in candidates), reverse=True)
    assert [one.score for one in ranked] == pytest.approx(before, abs=1e-6)


@given(found=CANDIDATES, domain=DOMAINS, settings=SETTINGS)
def test_a_better_model_score_never_ranks_lower(
    found: list[tuple[float, float, str, int | None, dict[str, JsonValue]]], domain: Domain, settings: RerankingSettings
) -> None:
    candidates = [
        candidate(f"c{at:02}", score, path=path, age=age, metadata=metadata)
        for at, (score, _, path, age, metadata) in enumerate(found)
    ]
    models = [model for _, model, *_ in found]
    for at, model in enumerate(models[:3]):
        better = [*models[:at], min(1.0, model + 0.2), *models[at + 1 :]]
        name = candidates[at].chunk_id
        ranks = [
            names(rerank(candidates, query="q", domain=domain, settings=settings, now=NOW, model_scores=scores)).index(
                name
            )
            for scores in (models, better)
        ]
        assert ranks[1] <= ranks[0]
