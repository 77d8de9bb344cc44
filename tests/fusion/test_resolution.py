"""Stage 4: what follows from a disagreement, by each of the five strategies."""

from dataclasses import replace

import pytest
from fact_support import fact
from fusion_support import day, fused, item

from nornweave.ask.fuse.conflict_resolution import ConflictRules, resolve_conflicts
from nornweave.ask.fuse.rank import QueryType
from nornweave.ask.fuse.records import ConflictRecord, ConflictStrategy, FusedItem, ResolvedItems
from nornweave.ask.views.answer import conflict_document
from nornweave.core.types import Fact, Origin
from nornweave.disagree.conflicts.records import NO_NOTES, LedgerNotes, LineKey, key_of, pair_id

RECENCY, AUTHORITY, CONFIDENCE, FLAG, THEN_FLAG = (
    ConflictStrategy.RECENCY,
    ConflictStrategy.SOURCE_AUTHORITY,
    ConflictStrategy.CONFIDENCE,
    ConflictStrategy.FLAG,
    ConflictStrategy.RECENCY_THEN_FLAG,
)


_SIDES = {"code": "code", "conversations": "conversation"}


def timeout(seconds: int, domain: str) -> Fact:
    return fact("webhook_delivery_timeout", f"{seconds} seconds", side=_SIDES.get(domain, "documentation"))


def side(chunk_id: str, domain: str, seconds: int, written: str | None = None, score: float = 0.5) -> FusedItem:
    return fused(item(chunk_id, domain=domain, written=written, score=score, facts=(timeout(seconds, domain),)))


ASKED = "how long is the webhook delivery timeout, and what is its size"


def resolved(
    *items: FusedItem, strategy: ConflictStrategy = RECENCY, notes: LedgerNotes = NO_NOTES, **more: object
) -> ResolvedItems:
    """Settle conflicts that are asked about, however certain they are: how certain is not what strategies are about."""
    rules = {"settle_from": 0.5, "question": ASKED, "is_chosen": True, **more}
    return resolve_conflicts(items, ConflictRules(strategy=strategy, **rules), notes)  # type: ignore[arg-type]


def the_conflict(*items: FusedItem, strategy: ConflictStrategy = RECENCY, **more: object) -> ConflictRecord:
    (conflict,) = resolved(*items, strategy=strategy, **more).conflicts  # type: ignore[arg-type]
    return conflict


CODE, DOCS = side("c", "code", 10, "2026-01-20"), side("d", "documentation", 30, "2025-12-01", 0.9)


def test_the_newer_side_holds() -> None:
    conflict = the_conflict(CODE, DOCS)
    assert (conflict.items, conflict.resolved_to) == (("c", "d"), "c")
    assert conflict.reason == "newer: 2026-01-20 against 2025-12-01"
    assert [side.fact.value for side in conflict.sides if side.fact] == ["10", "30"]


@pytest.mark.parametrize(("path", "count"), [("pay.py", 1), ("tests/pay.py", 0), ("examples/shop/pay.py", 0)])
def test_what_a_test_or_an_example_sets_contradicts_nothing(path: str, count: int) -> None:
    code = fused(item("c", path=path, written="2026-01-20", facts=(timeout(10, "code"),)))
    assert len(resolved(code, DOCS).conflicts) == count


@pytest.mark.parametrize(("stretched", "left"), [(True, 0.6), (False, 0.63)])
def test_the_loser_is_demoted_and_kept(stretched: bool, left: float) -> None:
    """0.9 − 0.3 where min-max stretched the scores, 0.9 · (1 − 0.3) where they are calibrated."""
    result = resolved(CODE, DOCS, stretched=stretched)
    assert [(one.item.chunk_id, one.demoted) for one in result.items] == [("c", False), ("d", True)]
    assert [one.relevance for one in result.items] == pytest.approx([0.5, left])


def test_a_score_does_not_fall_below_zero() -> None:
    low = side("d", "documentation", 30, "2025-12-01", 0.1)
    assert resolved(CODE, low).items[1].relevance == 0


def test_dropping_removes_the_loser_and_keeps_the_record() -> None:
    result = resolved(CODE, DOCS, policy="drop")
    assert [one.item.chunk_id for one in result.items] == ["c"]
    assert result.conflicts[0].items == ("c", "d")


def test_a_side_without_a_time_loses_to_one_with() -> None:
    conflict = the_conflict(side("c", "code", 10), DOCS)
    assert conflict.resolved_to == "d"
    assert conflict.reason == "written 2025-12-01; the other side does not say when"


def test_nobody_holds_when_no_time_is_known() -> None:
    conflict = the_conflict(side("c", "code", 10), side("d", "documentation", 30))
    assert (conflict.resolution, conflict.resolved_to) == (FLAG, None)


def test_files_of_one_checkout_do_not_settle_each_other() -> None:
    """Their times are seconds apart and say in which order they were written to this disk."""
    conflict = the_conflict(
        side("c", "code", 10, "2026-01-20T10:00:00"), side("d", "documentation", 30, "2026-01-20T10:00:40")
    )
    assert conflict.resolved_to is None
    assert "a minute" in conflict.reason


def test_what_is_not_nearly_certain_is_shown_and_costs_nobody_anything() -> None:
    result = resolved(CODE, DOCS, settle_from=1.0)
    (conflict,) = result.conflicts
    assert [(one.relevance, one.demoted) for one in result.items] == [(0.5, False), (0.9, False)]
    assert (conflict.resolution, conflict.resolved_to) == (FLAG, None)
    assert conflict.reason.startswith(f"may disagree (confidence {conflict.confidence:.2f})")
    assert conflict.reason.endswith("newer: 2026-01-20 against 2025-12-01"), "what the strategy would say"
    assert 0.5 <= conflict.confidence < 1


@pytest.mark.parametrize(
    "question",
    ["which storage does the tenant use", "what is the webhook", "delivery timeout of mails", "", "hooks of the web"],
)
def test_what_nobody_asked_about_is_not_shown_and_changes_no_order(question: str) -> None:
    result = resolved(CODE, DOCS, question=question)
    assert [(one.relevance, one.demoted) for one in result.items] == [(0.5, False), (0.9, False)]
    assert result.conflicts == ()


@pytest.mark.parametrize(
    "question", ["webhook delivery timeout", "WEBHOOK_DELIVERY_TIMEOUT_MS?", "how long do deliveries of webhooks wait"]
)
def test_what_is_asked_about_is_named_in_any_spelling(question: str) -> None:
    conflict = the_conflict(CODE, DOCS, question=question)
    assert conflict.resolved_to == "c"


def test_only_conflicts_that_are_asked_about_are_shown() -> None:
    items = [
        fused(item("c", facts=(timeout(10, "code"), retries(3, "code")))),
        fused(item("d", domain="documentation", facts=(timeout(30, "documentation"), retries(5, "documentation")))),
    ]
    for asked in ("retry limit", "webhook delivery timeout"):
        assert [each.entity for each in resolved(*items, question=asked).conflicts] == [asked]


def test_by_default_nobody_loses_whom_the_ledger_would_let_hold() -> None:
    """A page that is newer than the code: the ledger suggests the code, recency the page; neither is demoted."""
    newer = side("d", "documentation", 30, "2026-03-01", 0.9)
    result = resolved(CODE, newer, is_chosen=False)
    assert not any(one.demoted for one in result.items)
    assert result.conflicts[0].reason.startswith("the side that is closer to what runs says otherwise")
    assert resolved(CODE, newer).conflicts[0].resolved_to == "d", "who asks for recency gets it"
    assert resolved(CODE, DOCS, is_chosen=False).conflicts[0].resolved_to == "c", "recency and the ledger agree"


def test_the_day_a_pdf_was_printed_is_no_date_of_its_text() -> None:
    printed = side("d", "documentation", 30, "2026-03-01", 0.9)
    printed = replace(printed, item=replace(printed.item, citation=replace(printed.citation, source_path="a/B.PDF")))
    assert the_conflict(CODE, printed).resolved_to == "c"


def test_three_values_agree_with_nobody() -> None:
    """Who is not compared with the winner has not said what the winner says: two pages are one side."""
    third = side("e", "documentation", 60, "2025-12-02")
    roles = {one.chunk_id: one.role for one in the_conflict(CODE, DOCS, third).sides}
    assert roles == {"c": "holds", "d": "differs", "e": "differs"}
    talk, older = side("t", "conversations", 20, "2026-02-01"), side("u", "conversations", 10, "2025-01-01")
    conflict = the_conflict(CODE, DOCS, talk, older)
    assert (conflict.resolved_to, {one.chunk_id: one.role for one in conflict.sides}["u"]) == ("t", "says")


def test_a_dismissed_pair_is_no_conflict() -> None:
    (conflict,) = resolved(CODE, DOCS).conflicts
    assert conflict.id == pair_id(DOCS.facts[0], CODE.facts[0]), "whatever the order"
    assert resolved(CODE, DOCS, notes=LedgerNotes(dismissed=frozenset({conflict.id}))).conflicts == ()
    moved = side("c", "code", 11, "2026-01-20")
    assert resolved(moved, DOCS, notes=LedgerNotes(dismissed=frozenset({conflict.id}))).conflicts, (
        "it says another value"
    )


def test_lines_are_newer_or_older_than_lines() -> None:
    """The code's file was touched last, but not the line that the page contradicts."""
    code, docs = Origin(revision="a", author="Ann", written_at=day("2025-01-01")), day("2025-11-01")
    page = Origin(revision="b", author="Bo", written_at=docs)
    conflict = the_conflict(CODE, DOCS, notes=LedgerNotes({line(CODE): code, line(DOCS): page}))
    assert (conflict.resolved_to, conflict.reason) == ("d", "newer: 2025-11-01 against 2025-01-01")
    assert {side.chunk_id: side.origin for side in conflict.sides} == {"c": code, "d": page}
    one_known = the_conflict(CODE, DOCS, notes=LedgerNotes({line(CODE): code}))
    assert (one_known.resolved_to, one_known.reason) == ("c", "newer: 2026-01-20 against 2025-12-01")
    assert {side.chunk_id: side.origin for side in one_known.sides} == {"c": code, "d": None}


def line(fused: FusedItem) -> LineKey:
    citation = fused.citation
    return key_of((fused.domain, citation.source_id, citation.source_path), fused.facts[0])


def test_all_that_two_items_disagree_on_is_shown() -> None:
    """A value and a denial, where both are asked about; what sentences deny is left out where it is not."""
    says, denies = (f"The gateway {verb} OAuth." for verb in ("supports", "does not support"))
    code = fused(item("c", says, written="2026-01-20", facts=(timeout(10, "code"), retries(3, "code"))))
    page = item("d", denies, domain="documentation", facts=(timeout(30, "documentation"), retries(5, "documentation")))
    code = replace(code, item=replace(code.item, content=f'"""{says}"""'))
    values = {"retry limit", "webhook delivery timeout"}
    asked = "the webhook delivery timeout and the retry limit"
    assert {each.entity for each in resolved(code, fused(page), question=asked).conflicts} == values
    conflicts = resolved(code, fused(page), question="Does the gateway support OAuth?").conflicts
    assert {conflict.entity for conflict in conflicts} == {"gateway oauth"}
    (denial,) = (conflict for conflict in conflicts if conflict.attribute == "holds")
    stated = {side["chunk_id"]: side["value"] for side in conflict_document(denial)["claims"]}
    assert stated == {"c": "true", "d": "false"}


def test_a_pair_whose_facts_disagree_on_a_thing_is_not_shown_again_by_its_sentences() -> None:
    stated = {"code": ("2.1", 'API_VERSION = "v2.1"'), "documentation": ("2.0", "The current API version is v2.0.")}
    sides = [
        fused(
            item(
                domain,
                text,
                domain=domain,
                facts=(fact("api_version", value, attribute="value", side=_SIDES.get(domain, domain)),),
            )
        )
        for domain, (value, text) in stated.items()
    ]
    asked = "what is the current API version of payments"
    (conflict,) = resolved(*sides, question=asked).conflicts
    assert conflict.attribute == "value"
    (of_sentences,) = resolved(*(replace(each, facts=()) for each in sides), question=asked).conflicts
    assert (of_sentences.entity, of_sentences.attribute) == ("api version", "requires")


@pytest.mark.parametrize(("path", "disagrees"), [
    ("docs/config.yml", False), ("conf/config.yml", True), ("docs/config.schema.json", True),
])  # fmt: skip
def test_a_configuration_among_documentation_is_a_sample(path: str, disagrees: bool) -> None:
    code = item("c", "webhook_delivery_timeout: 10", facts=(timeout(10, "code"),))
    code = replace(code, citation=replace(code.citation, source_path=path))
    page = item("d", "documented", domain="documentation", facts=(timeout(30, "documentation"),))
    assert bool(resolved(fused(code), fused(page)).conflicts) == disagrees


def retries(count: int, domain: str) -> Fact:
    return fact("retry_limit", str(count), side=_SIDES.get(domain, "documentation"))


def test_flagging_keeps_both_as_they_are() -> None:
    result = resolved(CODE, DOCS, strategy=FLAG)
    assert [(one.relevance, one.demoted) for one in result.items] == [(0.5, False), (0.9, False)]
    assert (result.conflicts[0].resolution, result.conflicts[0].resolved_to) == (FLAG, None)


@pytest.mark.parametrize(
    ("other", "holds"),
    [("2026-01-20T14:00", None), ("2026-01-21T10:00", None), ("2026-01-21T10:01", "d"), ("2026-01-25", "d")],
)
def test_recency_then_flag_has_a_window(other: str, holds: str | None) -> None:
    code, docs = side("c", "code", 10, "2026-01-20T10:00"), side("d", "documentation", 30, other)
    conflict = the_conflict(code, docs, strategy=THEN_FLAG)
    assert conflict.resolved_to == holds
    assert conflict.resolution == (THEN_FLAG if holds else FLAG)
    assert the_conflict(code, docs, strategy=THEN_FLAG, tie_window_hours=1).resolved_to == "d"


@pytest.mark.parametrize(("kind", "holds"), [
    (QueryType.AMBIGUOUS, "c"),
    (QueryType.CURRENT_BEHAVIOUR, "c"),
    (QueryType.INTENDED_DESIGN, "d"),
    (QueryType.HISTORICAL_DECISION, "t"),
])  # fmt: skip
def test_authority_depends_on_what_is_asked(kind: QueryType, holds: str) -> None:
    talk = side("t", "conversations", 20, "2026-01-01")
    conflict = the_conflict(CODE, DOCS, talk, strategy=AUTHORITY, query_type=kind)
    assert conflict.resolved_to == holds
    assert set(conflict.items) == {"c", "d", "t"}, "three sides of one question are one conflict"


def test_foreign_agents_have_the_least_authority() -> None:
    conflict = the_conflict(side("w", "web", 5, "2026-02-01"), DOCS, strategy=AUTHORITY)
    assert conflict.resolved_to == "d"
    unknown = the_conflict(side("w", "web", 5), side("n", "news", 6), strategy=AUTHORITY)
    assert unknown.resolved_to is None


def test_confidence() -> None:
    conflict = the_conflict(CODE, DOCS, strategy=CONFIDENCE)
    assert (conflict.resolved_to, conflict.reason) == ("d", "more relevant: 0.900 against 0.500")
    tied = the_conflict(CODE, side("d", "documentation", 30, "2025-12-01", 0.5), strategy=CONFIDENCE)
    assert tied.resolved_to is None


def test_who_agrees_with_the_winner_is_not_demoted() -> None:
    agreeing = side("t", "conversations", 10, "2026-01-22")
    result = resolved(CODE, DOCS, agreeing)
    assert result.conflicts[0].resolved_to == "t"
    assert {one.item.chunk_id for one in result.items if one.demoted} == {"d"}
    roles = {side.chunk_id: side.role for side in result.conflicts[0].sides}
    assert roles == {"t": "holds", "c": "agrees", "d": "differs"}


def test_sides_of_one_domain_are_the_agents_own_problem() -> None:
    assert resolved(CODE, side("c2", "code", 30, "2025-12-01")).conflicts == ()


def test_agreement_is_no_conflict() -> None:
    assert resolved(CODE, side("d", "documentation", 10)).conflicts == ()
    assert resolved().conflicts == ()


def test_facts_whose_sentences_answer_the_question_are_asked_about_whatever_their_name() -> None:
    sides = [
        fused(item(domain, text, domain=domain, facts=(fact("retention", f"{days} days", attribute="value", side=said,
                                                            statement=text),)))
        for domain, said, days, text in (
            ("documentation", "documentation", 90, "Lost hats are kept for 90 days."),
            ("code", "code", 60, "# Lost hats are kept for 60 days."),
        )
    ]  # fmt: skip
    (conflict,) = resolved(*sides, question="for how long are lost hats kept?").conflicts
    assert conflict.entity == "retention"
    assert resolved(*sides, question="where are gloves sold?").conflicts == ()
