"""The bonus of each heuristic, calculated by hand, and the inputs that must not earn one."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st
from ranked_items import citation

from nornweave.ask.search.records import RecallItem
from nornweave.ask.search.rerank import TABLE, all_bonuses, cues_of, heuristics_of
from nornweave.config import RerankingSettings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.text.dates import dated
from nornweave.core.types import ChunkId, Domain, JsonValue

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CODE, DOCS, CHAT, RESEARCH = Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS, Domain.RESEARCH


def candidate(
    path: str = "src/payments/handlers.py",
    *,
    section: str | None = None,
    title: str | None = None,
    timestamp: datetime | None = None,
    metadata: Mapping[str, JsonValue] | None = None,
    domain: Domain = DOCS,
) -> RecallItem:
    return RecallItem(
        chunk_id=ChunkId("one"),
        score=0.5,
        content="text",
        citation=citation(domain.value, path, title=title, section=section, timestamp=timestamp),
        sources={},
        metadata=metadata or {},
    )


def said(moment: datetime | None) -> RecallItem:
    return candidate(domain=CHAT, metadata={"message_timestamp": moment.isoformat()} if moment else {})


def given_to(one: RecallItem, query: str, domain: Domain, **settings: float) -> dict[str, float]:
    known = heuristics_of(domain, RerankingSettings(heuristics=settings))  # type: ignore[arg-type]
    return dict(all_bonuses([one], query, known, NOW)[0])


@pytest.mark.parametrize(("query", "function", "owner", "matches"), [
    ("what does handle_payment_error return", "handle_payment_error", "PaymentHandler", True),
    ("where is PaymentHandler built", "refund", "PaymentHandler", True),
    ("why does `handlePaymentError()` retry", "handlePaymentError", None, True),
    ("what does __init__ take", "__init__", "Client", True),
    ("MAX_RETRIES too low", "MAX_RETRIES", None, True),
    ("who owns Inner", "run", "Outer.Inner", True),
    ("who owns Entry", "post", "ledger::Entry", True),
    # Part of a symbol, a symbol that is longer, other case, a plain word: none is the symbol itself.
    ("what raises PaymentError", "handlePaymentError", None, False),
    ("what does handle_payment do", "handle_payment_error", None, False),
    ("what does Handle_Payment_Error do", "handle_payment_error", None, False),
    ("how do I refund a payment", "refund", None, False),
    ("handle_payment_error", None, None, False),
])  # fmt: skip
def test_symbols_match_whole(query: str, function: str | None, owner: str | None, matches: bool) -> None:
    one = candidate("a.py", metadata={"function_name": function, "class_name": owner})
    assert given_to(one, query, CODE) == ({"symbol_match": 0.15} if matches else {})


@pytest.mark.parametrize(("query", "path", "matches"), [
    ("what is in src/payments/handlers.py", "src/payments/handlers.py", True),
    ("bug in payments/handlers.py:42", "src/payments/handlers.py", True),
    ("see `handlers.py`.", "src/payments/handlers.py", True),
    ("what does src/payments do", "src/payments/handlers.py", True),
    ("Src/Payments/Handlers.py", "src/payments/handlers.py", True),
    ("handlers.py#L42-L51", "src/payments/handlers.py", True),
    (".github/workflows/ci.yaml fails", ".github/workflows/ci.yaml", True),
    # Only whole components in one run.
    ("what does src/pay do", "src/payments/handlers.py", False),
    ("payments/hand", "src/payments/handlers.py", False),
    ("src/handlers.py", "src/payments/handlers.py", False),
    ("andlers.py", "src/payments/handlers.py", False),
    ("handlers.pyi", "src/payments/handlers.py", False),
    ("what does payments do", "src/payments/handlers.py", False),
    ("/app/main.py", "main.py", False),
    ("https://example.com/src/payments/handlers.py", "src/payments/handlers.py", False),
    ("version 3.5 and/or later...", "3.5/and", False),
])  # fmt: skip
def test_paths_match_by_whole_components(query: str, path: str, matches: bool) -> None:
    assert given_to(candidate(path), query, CODE) == ({"path_match": 0.10} if matches else {})


@pytest.mark.parametrize(("query", "section", "title", "matches"), [
    ("how are refunds retried", "API > Refund policy", None, True),
    ("configuring webhooks", None, "Webhook configuration", True),
    ("how do I use it", "How to use it", None, True),  # "use" is a word of the topic
    ("what is the limit", "What is the API", None, False),  # all they share are function words
    ("refund", "API > Payments", "Refund", False),  # the heading path is there, so it decides
    ("refund", None, None, False),
    ("?!", "API", None, False),
])  # fmt: skip
def test_headings_match_by_the_analyzers_terms(
    query: str, section: str | None, title: str | None, matches: bool
) -> None:
    assert given_to(candidate(section=section, title=title), query, DOCS) == (
        {"heading_match": 0.10} if matches else {}
    )


@pytest.mark.parametrize(
    ("days", "bonus"),
    [(0, 0.05), (45, 0.025), (89, 0.05 / 90), (90, 0.0), (4_000, 0.0), (-3, 0.05)],
    ids=lambda value: str(value),
)
def test_linear_recency_is_gone_after_ninety_days(days: float, bonus: float) -> None:
    found = given_to(candidate(timestamp=NOW - timedelta(days=days)), "", DOCS).get("recency", 0.0)
    assert found == pytest.approx(bonus, abs=1e-12)


@pytest.mark.parametrize(("days", "bonus"), [(0, 0.15), (30, 0.055), (90, 0.007), (-1, 0.15)])
def test_exponential_recency_has_the_figures_of_the_source(days: float, bonus: float) -> None:
    found = given_to(said(NOW - timedelta(days=days)), "", CHAT)["recency"]
    assert found == pytest.approx(bonus, abs=0.0005)
    assert found == pytest.approx(0.15 * math.exp(-max(days, 0) / 30))


def test_a_date_without_a_zone_is_utc_and_no_date_gives_nothing() -> None:
    there = timezone(timedelta(hours=-5))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    moments = [noon, noon.replace(tzinfo=None), noon.astimezone(there)]
    assert len({given_to(said(moment), "", CHAT)["recency"] for moment in moments}) == 1
    assert given_to(said(None), "", CHAT) == {}


@pytest.mark.parametrize(
    ("reactions", "bonus"),
    [(0, 0.0), (1, 0.05 * math.log(2) / math.log(11)), (10, 0.05), (5_000, 0.05), (10**400, 0.05)],
    ids=["0", "1", "10", "5000", "huge"],
)
def test_engagement_grows_with_the_logarithm_of_reactions(reactions: int, bonus: float) -> None:
    found = given_to(candidate(metadata={"reaction_count": reactions}), "", CHAT).get("engagement", 0.0)
    assert found == pytest.approx(bonus)


@pytest.mark.parametrize(
    ("cited", "bonus"),
    [(0, 0.0), (9, 0.02), (99, 0.04), (99_999, 0.10), (120_000, 0.10), (10**400, 0.10)],
    ids=["0", "9", "99", "99999", "120000", "huge"],
)
def test_citations_count_by_powers_of_ten(cited: int, bonus: float) -> None:
    found = given_to(candidate(metadata={"citation_count": cited}), "", RESEARCH).get("citations", 0.0)
    assert found == pytest.approx(bonus)


@pytest.mark.parametrize("count", [None, "many", True, -5, math.nan, math.inf, -math.inf, [3], {}], ids=repr)
def test_what_is_no_count_gives_nothing(count: JsonValue) -> None:
    one = candidate(metadata={"reaction_count": count, "citation_count": count})
    assert [given_to(one, "", domain) for domain in Domain] == [{}] * 4


def test_only_an_accepted_answer_is_rewarded() -> None:
    assert given_to(candidate(metadata={"is_accepted": True}), "", RESEARCH) == {"accepted_answer": 0.05}
    for other in (False, None, "true", 1):
        assert given_to(candidate(metadata={"is_accepted": other}), "", RESEARCH) == {}


def test_the_configuration_sets_the_highest_bonus_of_three_and_the_weight_of_all() -> None:
    everything = candidate(section="Refund", timestamp=NOW, metadata={"function_name": "do_refund"})
    query = "do_refund in src/payments/handlers.py"
    assert given_to(everything, query, CODE) == {"symbol_match": 0.15, "path_match": 0.10}
    assert given_to(everything, query, CODE, symbol_match_bonus=0, heading_match_bonus=0.5) == {
        "path_match": 0.10,
        "heading_match": 0.5,
    }
    changed = RerankingSettings.model_validate(
        {"heuristics": {"recency_bonus_max": 0.4}, "weights": {"heuristic": 0.5}}
    )
    assert heuristics_of(DOCS, changed) == {"heading_match": (0.10, 0.5), "recency": (0.4, 0.5)}
    assert heuristics_of(CODE, changed)["recency"] == (0.4, 0.5)


def test_each_domain_counts_from_its_own_date() -> None:
    changed = datetime(2026, 1, 2, tzinfo=UTC)
    metadata = {"message_timestamp": "2026-01-16T14:22:00Z", "publication_date": "2017-06-12"}
    assert dated(Domain.CODE, metadata, changed) == changed
    assert dated(Domain.DOCUMENTATION, metadata, changed) == changed
    assert dated(Domain.CONVERSATIONS, metadata, changed) == datetime(2026, 1, 16, 14, 22, tzinfo=UTC)
    assert dated(Domain.RESEARCH, metadata, changed) == datetime(2017, 6, 12, tzinfo=UTC)
    # When its file changed says nothing about when something was said or published.
    for domain in (Domain.CONVERSATIONS, Domain.RESEARCH):
        assert dated(domain, {}, changed) is None
        assert dated(domain, {"message_timestamp": "soon", "publication_date": 2017}, changed) is None


METADATA = st.dictionaries(
    st.sampled_from(["function_name", "class_name", "reaction_count", "citation_count", "is_accepted"]),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.lists(st.integers(), max_size=2),
)


@given(
    query=st.text(max_size=80),
    path=st.text(max_size=30),
    section=st.none() | st.text(max_size=30),
    timestamp=st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC)),
    metadata=METADATA,
)
def test_bonuses_stay_within_their_settings_whatever_comes(
    query: str, path: str, section: str | None, timestamp: datetime | None, metadata: dict[str, JsonValue]
) -> None:
    for domain in Domain:
        one = candidate(path, section=section, timestamp=timestamp, metadata=metadata, domain=domain)
        found = given_to(one, query, domain)
        assert all(0.0 < bonus <= TABLE[domain][name][0] for name, bonus in found.items())


@pytest.mark.parametrize("piece", ["a", "A", "a_", "a.", "a/", ":1", "#L1-", "(", "🧾", "x:", "Aa_", ".a"])
def test_long_queries_are_read_in_linear_time(piece: str) -> None:
    assert_subquadratic(lambda query: cues_of(query, NOW), lambda size: (piece * size)[:size], 4_096)


@pytest.mark.parametrize(("reranking", "problem"), [
    ("heuristics: {recency_bonus: 0.1}", "recency_bonus_max"),
    ("heuristics: {path_match_bonus: 0.1}", "path_match_bonus.*symbol_match_bonus"),
    ("heuristics: {symbol_match_bonus: .nan}", "symbol_match_bonus"),
    ("heuristics: {symbol_match_bonus: -0.1}", "symbol_match_bonus"),
    ("weights: {recency: 0.5}", "weights.recency.*heuristic"),
    ("weights: {model: .inf}", "weights.model"),
    ("model: ''", "reranking.model"),
])  # fmt: skip
def test_numbers_that_cannot_be_are_named(tmp_path: Path, reranking: str, problem: str) -> None:
    file = tmp_path / "nornweave.yaml"
    file.write_text(f"domains: {{code: {{reranking: {{{reranking}}}}}}}", encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        load_settings(file, {})
