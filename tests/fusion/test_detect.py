"""What contradicts what: hand-made claims, the worked example of PIPELINE, properties, cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.claims.extract import extract_claims
from nornweave.claims.passage import Passage
from nornweave.claims.vocabulary import topics_of
from nornweave.fusion.agreement import sameness
from nornweave.fusion.compatible import compatible, families_of
from nornweave.fusion.detect import clash, disagree, find_disagreements
from nornweave.fusion.records import Detector, Disagreement, TaggedItem
from nornweave.recall.records import Citation, RecallItem
from nornweave.types import ChunkId, Claim, Metadata, Span, freeze


def claim(entity: str, attribute: str, value: str, unit: str | None = None, **known: Any) -> Claim:
    """Make a claim as extraction does: topics are the stems of the entity and of ``about``."""
    about = known.pop("about", "")
    fields: dict[str, Any] = {
        "kind": "number",
        "span": Span(0, 1),
        "statement": f"{entity} {attribute} {value}",
        "topics": topics_of(entity, about, without=(attribute,)),
    }
    return Claim(entity=entity, attribute=attribute, value=value, unit=unit, **{**fields, **known})


def tagged(
    domain: str,
    *claims: Claim,
    content: str = "",
    path: str = "",
    score: float = 0.5,
    chunk_id: str = "",
    metadata: Metadata | None = None,
) -> TaggedItem:
    path = path or f"{domain}/page"
    citation = Citation(
        domain_id=domain,
        source_id="test",
        source_path=path,
        timestamp=None,
        line_range=None,
        char_range=(0, len(content)),
        page=None,
        section=None,
        message_ids=None,
        url=None,
        title=None,
        revision=None,
        stale=False,
    )
    item = RecallItem(
        chunk_id=ChunkId(chunk_id or path),
        content=content,
        score=score,
        citation=citation,
        sources={},
        metadata=metadata or freeze({}),
    )
    return TaggedItem(
        item=item, source_agent=domain, source_domain=domain, agent_latency_ms=1.0, score=score, claims=claims
    )


def said(domain: str, text: str, path: str = "", **known: Any) -> TaggedItem:
    """Make an item whose claims are read from its text."""
    claims = extract_claims(Passage(text=text, domain=domain, path=path, **known))
    return tagged(domain, *claims, content=text, path=path)


TEN = claim("webhook", "timeout", "10", "s")
THIRTY = claim("webhook", "timeout", "30", "s", about="delivery endpoint")


def test_two_values_of_one_thing_contradict_each_other() -> None:
    code, page = tagged("code", TEN, path="src/webhooks.py"), tagged("documentation", THIRTY, path="docs/webhooks.md")
    (found,) = find_disagreements([code, page])
    assert (found.first, found.second) == (0, 1)
    assert found.detector is Detector.SAME_ENTITY_DIVERGENCE
    assert found.claims == (TEN, THIRTY)
    assert (found.entity, found.attribute) == ("webhook", "timeout")
    assert found.explanation == "src/webhooks.py says timeout 10 seconds; docs/webhooks.md says 30 seconds"
    assert 0.5 <= found.confidence <= 1


def test_items_of_one_domain_are_the_agents_problem() -> None:
    assert find_disagreements([tagged("code", TEN, path="a"), tagged("code", THIRTY, path="b")]) == ()


WORKED_EXAMPLE = (
    (
        "c-001",
        "code",
        "def handle_payment_error(e: PaymentError) → Response: return JSONResponse(status_code=422, ...)",
        "src/payments/handlers.py",
    ),
    (
        "c-002",
        "code",
        'class PaymentValidator: def validate(self, req): if not req.amount: raise PaymentError("missing amount")',
        "src/payments/validator.py",
    ),
    ("c-003", "code", "# Payment retry logic with exponential backoff", "src/payments/retry.py"),
    (
        "d-001",
        "documentation",
        "## Error Handling — The payment module returns HTTP 400 for malformed requests and HTTP 500 for downstream "
        "failures.",
        "docs/api/payments.md",
    ),
    (
        "d-002",
        "documentation",
        "## Payment Module Overview — Handles all payment processing including validation, authorization, and "
        "settlement.",
        "docs/api/payments.md",
    ),
)


def test_the_worked_example_has_one_conflict() -> None:
    items = [said(domain, text, path) for _, domain, text, path in WORKED_EXAMPLE]
    (found,) = find_disagreements(items)
    assert (found.first, found.second) == (0, 3)
    assert found.attribute == "http_status"
    assert found.explanation == "src/payments/handlers.py says http status 422; docs/api/payments.md says 400 and 500"


@pytest.mark.parametrize(
    "other",
    [
        replace(THIRTY, mood="history"),
        replace(THIRTY, mood="planned"),
        replace(THIRTY, mood="example"),
        replace(THIRTY, mood="other"),
        claim("webhook", "retries", "30"),
        claim("card network read", "timeout", "30", "s"),
        claim("webhook", "timeout", "10000", "ms"),
        claim("sandbox webhook", "timeout", "30", "s"),
        claim(
            "webhook", "timeout", "30", "s", statement="In version 1 the webhook timeout is 30 s, version 2.0 differs"
        ),
    ],
    ids=lambda one: f"{one.mood} {one.entity} {one.attribute} {one.value} {one.unit}",
)
def test_what_is_no_contradiction(other: Claim) -> None:
    mine = replace(TEN, statement="webhook timeout of v3 is 10 s")
    expected_none = other if other.unit != "ms" else replace(other, value="10", unit="s")
    assert disagree(mine, expected_none) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (claim("photo", "size_limit", "10000000", "byte"), claim("photo", "size_limit", "10485760", "byte")),
        (claim("key", "lifetime", "2592000", "s"), claim("key", "lifetime", "1", "month")),
        (claim("key", "timeout", "5000"), claim("key", "timeout", "5", "s")),
        (claim("coverage", "threshold", "0.8"), claim("coverage", "threshold", "80", "percent")),
        (claim("api", "version", "2.1", kind="version"), claim("api", "version", "2.1.0", kind="version")),
        (claim("api", "version", "2", kind="version"), claim("api", "version", "2.1", kind="version")),
        (claim("x", "released", "monday", kind="date"), claim("x", "released", "2026-01-19", kind="date")),
        (claim("x", "released", "2026-01", kind="date"), claim("x", "released", "2026-01-19", kind="date")),
        (claim("x", "http_status", "4xx", kind="http_status"), claim("x", "http_status", "422", kind="http_status")),
        (claim("x", "http_status", "201", kind="http_status"), claim("x", "http_status", "422", kind="http_status")),
        (claim("x", "owner", "platform", kind="owner"), claim("x", "owner", "the Platform team", kind="owner")),
        (claim("x", "support", "removed", kind="support"), claim("x", "support", "unsupported", kind="support")),
        (claim("x", "support", "deprecated", kind="support"), claim("x", "support", "supported", kind="support")),
        (claim("x", "enabled", "on", kind="switch"), claim("x", "enabled", "true", kind="default")),
        (claim("x", "latency", "1234567", "s"), claim("x", "latency", "1234000", "s")),
    ],
    ids=lambda one: f"{one.attribute} {one.value} {one.unit}",
)
def test_values_that_can_both_hold(a: Claim, b: Claim) -> None:
    assert compatible(a, b)
    assert compatible(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (claim("key", "lifetime", "1209600", "s"), claim("key", "lifetime", "1", "month")),
        (claim("key", "timeout", "30"), claim("key", "timeout", "10", "s")),
        (claim("key", "retries", "3"), claim("key", "retries", "5")),
        (claim("api", "version", "2.0", kind="version"), claim("api", "version", "2.1", kind="version")),
        (claim("x", "released", "monday", kind="date"), claim("x", "released", "2026-01-21", kind="date")),
        (claim("x", "released", "monday", kind="date"), claim("x", "released", "wednesday", kind="date")),
        (claim("x", "http_status", "400", kind="http_status"), claim("x", "http_status", "422", kind="http_status")),
        (claim("x", "owner", "platform", kind="owner"), claim("x", "owner", "finance engineering", kind="owner")),
        (claim("x", "support", "removed", kind="support"), claim("x", "support", "supported", kind="support")),
        (claim("x", "enabled", "on", kind="switch"), claim("x", "enabled", "off", kind="switch")),
        (claim("x", "currency", "eur", kind="default"), claim("x", "currency", "usd", kind="default")),
    ],
    ids=lambda one: f"{one.attribute} {one.value} {one.unit}",
)
def test_values_of_which_one_is_wrong(a: Claim, b: Claim) -> None:
    assert not compatible(a, b)
    assert not compatible(b, a)


def test_a_limit_in_bytes_is_a_size_limit() -> None:
    size = claim("photo", "size_limit", "2", "byte")
    assert families_of(claim("photo", "limit", "1", "byte"))[0] == families_of(size)[0]
    assert not set(families_of(claim("photo", "limit", "1"))) & set(families_of(size))


def test_a_range_allows_what_lies_in_it() -> None:
    span = claim("webhook", "timeout", "5..15", "s", mood="range")
    assert disagree(TEN, span) is None
    assert disagree(span, THIRTY) is None, "a range states nothing, so nothing contradicts it"


def status(value: str, **known: Any) -> Claim:
    return claim("payment error", "http_status", value, kind="http_status", **known)


@pytest.mark.parametrize(
    ("mine", "theirs", "contradict"),
    [
        (["422"], ["400", "500"], True),
        (["422"], ["422", "500"], False),
        (["201"], ["400", "404"], False),
        (["201", "409"], ["202", "409"], True),
        (["404"], ["4xx"], False),
    ],
)
def test_status_codes_are_compared_as_sets(mine: Sequence[str], theirs: Sequence[str], contradict: bool) -> None:
    found = clash([status(code) for code in mine], [status(code) for code in theirs])
    assert (found is not None) == contradict


def test_a_claim_that_the_other_side_repeats_contradicts_nothing_there() -> None:
    code = [claim("access token", "lifetime", "900", "s"), claim("id token", "lifetime", "60", "s")]
    page = [claim("access token", "lifetime", "900", "s"), claim("id token", "lifetime", "60", "s")]
    assert clash(code, page) is None
    assert clash(code[:1], [replace(page[0], value="3600")]) is not None


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("live key", "test key"),
        ("connect", "read"),
        ("access token", "refresh token"),
        ("client upload", "server upload"),
        ("primary database", "replica database"),
        ("android sync", "ios sync"),
        ("minimum password", "maximum password"),
    ],
)
def test_qualifiers_keep_things_apart(mine: str, theirs: str) -> None:
    about = "gateway ledger"
    a, b = claim(mine, "limit", "5", about=about), claim(theirs, "limit", "9", about=about)
    assert sameness(a, b).score == 0
    assert sameness(a, replace(a, value="9")).score == 1


def test_words_of_every_project_do_not_make_two_claims_one() -> None:
    assert disagree(claim("api service", "port", "80"), claim("api service", "port", "81")) is None
    assert disagree(claim("ledger service", "port", "80"), claim("ledger service", "port", "81")) is not None


def test_topics_that_the_corpus_is_full_of_do_not_either() -> None:
    a, b = claim("heron", "port", "80"), claim("heron", "port", "81")
    assert disagree(a, b) is not None
    assert disagree(a, b, weights={"heron": 0.1}) is None


def test_the_same_file_name_is_evidence() -> None:
    a = claim("webhook", "timeout", "10", "s", about="sender worker pool")
    b = claim("webhook", "timeout", "30", "s", about="delivery guide")
    elsewhere = find_disagreements([tagged("code", a, path="x/a.py"), tagged("documentation", b, path="y/b.md")])
    same_name = find_disagreements(
        [tagged("code", a, path="x/hooks.py"), tagged("documentation", b, path="y/hooks.md")]
    )
    assert same_name[0].confidence > elsewhere[0].confidence


def test_dates_of_one_event() -> None:
    a = claim("payments 2.1.0", "released", "2026-01-19", kind="date")
    b = claim("payments 2.1.0", "released", "2026-01-21", kind="date")
    (found,) = find_disagreements([tagged("conversations", a), tagged("documentation", b)])
    assert found.detector is Detector.TEMPORAL_CONTRADICTION


def test_supported_and_removed() -> None:
    a, b = claim("oauth", "support", "supported", kind="support"), claim("oauth", "support", "removed", kind="support")
    (found,) = find_disagreements([tagged("documentation", a), tagged("code", b)])
    assert found.detector is Detector.NEGATION
    assert found.explanation == "documentation/page says support supported; code/page says removed"


@pytest.mark.parametrize(
    ("page", "chat", "detector"),
    [
        ("Drafts are saved automatically.", "Drafts are never saved automatically.", Detector.NEGATION),
        ("Lists are sorted in ascending order.", "Lists are sorted in descending order.", Detector.SEMANTIC_OPPOSITION),
        ("The email field is optional.", "The email field is required.", Detector.SEMANTIC_OPPOSITION),
        ("The email field is not optional.", "The email field is required.", None),
        ("Drafts are never saved automatically.", "Drafts are not saved automatically.", None),
        ("Attachments are encrypted at rest.", "Thumbnails are not encrypted at rest.", None),
        ("Drafts are saved automatically.", "If the disk is full, drafts are not saved automatically.", None),
        ("Drafts are saved automatically.", "Are drafts not saved automatically?", None),
        ("Drafts of the old editor are saved automatically.", "Drafts are not saved automatically.", None),
        ("Readers block writers.", "The scheduler unblocks workers.", None),
    ],
)
def test_sentences(page: str, chat: str, detector: Detector | None) -> None:
    found = find_disagreements([said("documentation", page, "docs/a.md"), said("conversations", f"ann: {chat}", "b")])
    assert [one.detector for one in found] == ([detector] if detector else [])
    if found:
        assert found[0].claims is None
        assert chat.rstrip(".") in found[0].explanation


def test_a_sentence_that_is_also_affirmed_is_no_contradiction() -> None:
    page = "Messages of one key are delivered in order. Messages of many keys are not delivered in order."
    chat = "ann: messages of one key are delivered in order"
    assert find_disagreements([said("documentation", page, "docs/a.md"), said("conversations", chat, "b")]) == ()


ENTITIES = ("webhook", "refund", "ledger", "")
VALUES = ("10", "20", "30")
ITEMS = st.lists(
    st.tuples(
        st.sampled_from(("code", "documentation", "conversations")),
        st.lists(
            st.tuples(st.sampled_from(ENTITIES), st.sampled_from(("timeout", "port")), st.sampled_from(VALUES)),
            max_size=3,
        ),
    ),
    max_size=6,
)


def made(rows: Sequence[tuple[str, Sequence[tuple[str, str, str]]]]) -> list[TaggedItem]:
    return [
        tagged(domain, *(claim(*parts, about="gateway") for parts in claims), path=f"{place}.md", chunk_id=f"{place}")
        for place, (domain, claims) in enumerate(rows)
    ]


def by_chunk(items: Sequence[TaggedItem], found: Sequence[Disagreement]) -> set[frozenset[str]]:
    return {frozenset((items[one.first].item.chunk_id, items[one.second].item.chunk_id)) for one in found}


@given(ITEMS)
def test_what_comes_back_is_ordered_and_between_domains(rows: Any) -> None:
    items = made(rows)
    found = find_disagreements(items)
    pairs = [(one.first, one.second) for one in found]
    assert pairs == sorted(set(pairs))
    for one in found:
        assert one.first < one.second
        assert items[one.first].source_domain != items[one.second].source_domain
        assert one.claims is not None
        assert one.claims[0] in items[one.first].claims
        assert one.claims[1] in items[one.second].claims
        assert not compatible(*one.claims)


@given(ITEMS, st.randoms(use_true_random=False))
def test_order_of_the_items_is_no_matter(rows: Any, random: Any) -> None:
    items = made(rows)
    mixed = list(items)
    random.shuffle(mixed)
    assert by_chunk(items, find_disagreements(items)) == by_chunk(mixed, find_disagreements(mixed))


@given(ITEMS)
def test_two_claims_disagree_in_both_directions(rows: Any) -> None:
    claims = [one for item in made(rows) for one in item.claims]
    for a, b in permutations(claims[:6], 2):
        there, back = disagree(a, b), disagree(b, a)
        assert (there is None) == (back is None)
        assert there is None or back is None or there.confidence == back.confidence


def test_other_items_change_nothing_between_two() -> None:
    pair = [tagged("code", TEN, path="a.py"), tagged("documentation", THIRTY, path="b.md")]
    others = made([("conversations", [("refund", "timeout", "20")]), ("research", [("ledger", "port", "10")])])
    assert find_disagreements([*pair, *others])[0] == find_disagreements(pair)[0]


def test_a_thousand_items_about_one_thing_stay_cheap() -> None:
    domains = ("code", "documentation", "conversations")
    items = [
        tagged(
            domains[at % 3], claim("webhook", "timeout", f"{at}", "s"), path=f"{at}", content="It is not open. " * 20
        )
        for at in range(1000)
    ]
    begin = time.process_time()
    found = find_disagreements(items)
    assert time.process_time() - begin < 1.0, "25 ms on an idle machine; every pair would take minutes"
    assert found


@pytest.mark.parametrize(
    "text",
    [
        "not " * 20_000,
        "a, b c d " * 10_000,
        "# " * 40_000,
        '"""' * 20_000,
        "/*" * 30_000,
        "is not " * 10_000,
        "x: " * 30_000,
    ],
    ids=lambda text: text[:8],
)
def test_hostile_text_stays_cheap(text: str) -> None:
    items = [tagged("code", content=text, path="a.py"), tagged("documentation", content=text, path="b.md")]
    begin = time.process_time()
    find_disagreements(items)
    assert time.process_time() - begin < 1.0
