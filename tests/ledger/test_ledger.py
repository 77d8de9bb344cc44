"""The ledger over time: what is new, what stays, what is settled, what could not be read."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from fact_support import DAY, located

from nornweave.disagree.conflicts import LocatedFact, find_conflicts
from nornweave.disagree.conflicts.comparable import pairs
from nornweave.disagree.drift.ranking import FEW_FILES, RIGHT
from nornweave.disagree.ledger import UNSUPPORTED, LedgerEntry, entries_of, likely_conflicts, update
from nornweave.ingest.ledger import copied_sources

GENERATIONS = {"code": "gen-000001", "documentation": "gen-000001"}


def timeout(seconds: int, path: str, *, day: datetime | None = DAY) -> LocatedFact:
    return located("webhook_delivery_timeout", f"{seconds} seconds", path, day=day)


def entries(code: list[LocatedFact], docs: list[LocatedFact], now: datetime = DAY) -> tuple[LedgerEntry, ...]:
    return entries_of(find_conflicts([*docs, *code]), now)


def test_two_values_of_one_thing_are_an_entry() -> None:
    (entry,) = entries([timeout(10, "hooks.py")], [timeout(30, "hooks.md", day=DAY - timedelta(days=50))])
    assert [(side.domain, side.fact.value) for side in entry.sides] == [("code", "10"), ("documentation", "30")]
    assert (entry.suggested, entry.entity, entry.attribute) == ("code", "webhook delivery timeout", "default")
    assert "2026-01-20 against 2025-12-01" in entry.reason
    assert entry.first_seen == DAY
    assert entry.settled is None


@pytest.mark.parametrize(("later", "says"), [
    (timedelta(days=1), "but the other side is newer (2026-01-21 against 2026-01-20)"),
    (timedelta(seconds=1), "both sides are of 2026-01-20"),  # as files of one checkout
])  # fmt: skip
def test_the_suggestion_says_when_the_other_side_is_newer(later: timedelta, says: str) -> None:
    (entry,) = entries([timeout(10, "hooks.py")], [timeout(30, "hooks.md", day=DAY + later)])
    assert entry.suggested == "code"
    assert says in entry.reason


@pytest.mark.parametrize(("later", "suggested"), [(1, None), (0, "documentation"), (-1, "documentation")])
def test_an_old_page_does_not_hold_against_what_people_wrote_later(later: int, suggested: str | None) -> None:
    talk = located(
        "webhook_delivery_timeout", "10 seconds", "general.json", side="conversation", day=DAY + timedelta(days=later)
    )
    (entry,) = entries_of(find_conflicts([timeout(30, "hooks.md"), talk]), DAY)
    assert [side.domain for side in entry.sides] == ["documentation", "conversations"]
    assert entry.suggested == suggested


OTHERS = ("webhook delivery limit", "webhook queue length", "webhook worker count", "webhook signature age")


def corpus(*more: LocatedFact) -> list[LocatedFact]:
    """Return a page and a file that differ about one name, among eleven other files, and more."""
    apart = [located(f"thing_{number}_width", "1", f"{number}.py") for number in range(FEW_FILES + 1)]
    return [timeout(10, "hooks.py"), timeout(30, "hooks.md"), *apart, *more]


def likely(facts: list[LocatedFact]) -> list[float]:
    found = likely_conflicts(facts, list(pairs(facts)))
    return [one.confidence for one in found if one.name == "webhook delivery timeout"]


def test_a_conflict_is_likely_where_its_files_agree_about_other_names() -> None:
    both = [located(name, "7", path) for name in OTHERS for path in ("hooks.py", "hooks.md")]
    assert likely(corpus(*both)) == [RIGHT]
    (alone,) = find_conflicts(corpus())
    assert likely(corpus()) == [UNSUPPORTED * alone.confidence]


def test_where_there_are_few_files_the_pair_decides_and_always_for_what_people_say() -> None:
    few = [timeout(10, "hooks.py"), timeout(30, "hooks.md")]
    assert likely(few) == [round(RIGHT * one.confidence, 4) for one in find_conflicts(few)]
    said = located("webhook_delivery_timeout", "30 seconds", "chat.json", side="conversation", form="sentence")
    talk = [fact for fact in corpus() if not fact.path.endswith(".md")]
    assert likely([*talk, said]) == [one.confidence for one in find_conflicts([*talk, said])] != []


def test_what_is_likely_comes_first() -> None:
    (entry,) = entries([timeout(10, "hooks.py")], [timeout(30, "hooks.md")])
    newer = replace(entry, entity="b", entry_id="1", confidence=0.2, first_seen=DAY + timedelta(days=1))
    assert [one.entry_id for one in update(None, [newer, entry], GENERATIONS, DAY).open] == [entry.entry_id, "1"]


def test_agreement_is_no_entry() -> None:
    assert entries([timeout(10, "hooks.py")], [timeout(10, "hooks.md")]) == ()


def test_the_same_statement_made_twice_is_one_entry() -> None:
    assert len(entries([timeout(10, "hooks.py"), timeout(10, "hooks.py")], [timeout(30, "hooks.md")])) == 1


def test_an_entry_keeps_its_first_day_and_is_settled_when_it_is_gone() -> None:
    code, docs = [timeout(10, "hooks.py")], [timeout(30, "hooks.md")]
    first = update(None, entries(code, docs), GENERATIONS, DAY)
    later = DAY + timedelta(days=1)
    second = update(first, entries(code, docs, later), GENERATIONS, later)
    assert [entry.first_seen for entry in second.open] == [DAY]
    assert (second.settled, second.made_at) == ((), later)

    third = update(second, entries(code, [timeout(10, "hooks.md")]), GENERATIONS, later + timedelta(days=1))
    assert third.open == ()
    assert [(entry.entry_id, entry.settled) for entry in third.settled] == [
        (first.open[0].entry_id, later + timedelta(days=1))
    ]
    fourth = update(third, entries(code, docs, later), GENERATIONS, later)
    assert fourth.open[0].first_seen == later, "it came back: it is a new disagreement"
    assert len(fourth.settled) == 1


def test_another_value_is_another_disagreement() -> None:
    code = [timeout(10, "hooks.py")]
    first = update(None, entries(code, [timeout(30, "hooks.md")]), GENERATIONS, DAY)
    second = update(first, entries(code, [timeout(20, "hooks.md")]), GENERATIONS, DAY)
    assert len(second.open) == len(second.settled) == 1


def test_what_a_domain_said_that_cannot_be_read_stays_open() -> None:
    first = update(None, entries([timeout(10, "hooks.py")], [timeout(30, "hooks.md")]), GENERATIONS, DAY)
    unread = update(first, (), {"code": "gen-000002"}, DAY, unread={"documentation"})
    assert [entry.entry_id for entry in unread.open] == [first.open[0].entry_id]
    assert update(first, (), {"code": "gen-000002"}, DAY).open == ()


def test_the_newest_entity_comes_first() -> None:
    base = entries([timeout(10, "hooks.py")], [timeout(30, "hooks.md")])[0]
    old, new = replace(base, entity="b", entry_id="1"), replace(base, entity="z", entry_id="2")
    also = replace(base, entity="b", entry_id="3")
    first = update(None, [old], GENERATIONS, DAY)
    later = DAY + timedelta(days=1)
    found = [replace(one, first_seen=later) for one in (old, new, also)]
    ledger = update(first, found, GENERATIONS, later)
    assert [entry.entry_id for entry in ledger.open] == ["3", "1", "2"]
    assert ledger.open[1].first_seen == DAY


def test_dates_that_say_when_a_folder_was_copied_are_no_dates_of_its_files() -> None:
    copied = [("documentation", "wiki", DAY + timedelta(hours=9, seconds=seconds)) for seconds in (0, 20, 3_000)]
    stated = [("research", "papers", DAY), ("research", "papers", DAY + timedelta(days=1)), ("code", "app", None)]
    same = [("conversations", "chat", DAY + timedelta(hours=1))] * 2
    lived = [("code", "site", DAY + timedelta(hours=hours)) for hours in (1, 40)]
    assert copied_sources([*copied, *stated, *same, *lived]).keys() == {("documentation", "wiki")}
