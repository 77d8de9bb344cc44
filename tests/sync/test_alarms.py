"""Alarms: told once when they begin, ``recovered`` once when they are over, whatever happens in between."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import HASHED, nornweave
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.types import Domain
from nornweave.ingest.alarms import MAX_ITEMS, OF_A_SYNC, Alarm, AlarmBook, AlarmKind

NOW = datetime(2026, 1, 20, tzinfo=UTC)


def alarm(kind: AlarmKind, subject: str, text: str = "why", *, lasts: bool = True) -> Alarm:
    return Alarm(kind=kind, subject=subject, text=text, lasts=lasts)


def book_of(folder: Path) -> AlarmBook:
    return AlarmBook(folder / "alarms" / "code.json", Domain.CODE)


def update(book: AlarmBook, *alarms: Alarm, looked_at: Any = OF_A_SYNC) -> list[tuple[str, str | None, list[str]]]:
    """Return the events: name, what is over, subjects."""
    events: list[Mapping[str, Any]] = []
    book.update(alarms, looked_at, send=events.append, run_id="run", at=NOW)
    return [(one["event"], one.get("of"), [item["subject"] for item in one["items"]]) for one in events]


def test_an_alarm_is_told_when_it_begins_and_when_it_is_over(tmp_path: Path) -> None:
    book = book_of(tmp_path)
    failed, other = alarm(AlarmKind.DOCUMENT_FAILED, "s/a.md"), alarm(AlarmKind.DOCUMENT_FAILED, "s/b.md")
    assert update(book, failed) == [("document_failed", None, ["s/a.md"])]
    assert update(book, failed) == []
    assert update(book, failed, other) == [("document_failed", None, ["s/b.md"])]
    assert update(book_of(tmp_path), other) == [("recovered", "document_failed", ["s/a.md"])]
    assert update(book) == [("recovered", "document_failed", ["s/b.md"])]
    assert update(book) == []


def test_what_was_not_looked_at_stays(tmp_path: Path) -> None:
    book = book_of(tmp_path)
    update(book, alarm(AlarmKind.SOURCE_UNAVAILABLE, "wiki"))
    failed = update(book, alarm(AlarmKind.SYNC_FAILED, "code"), looked_at=[AlarmKind.SYNC_FAILED])
    assert failed == [("sync_failed", None, ["code"])]
    assert {kind for kind, _ in book.active()} == {AlarmKind.SOURCE_UNAVAILABLE, AlarmKind.SYNC_FAILED}


def test_a_drop_is_told_and_forgotten(tmp_path: Path) -> None:
    book = book_of(tmp_path)
    drop = alarm(AlarmKind.QUALITY_DROPPED, "golden fused Recall@10", lasts=False)
    told = [("quality_dropped", None, ["golden fused Recall@10"])]
    assert update(book, drop, looked_at=[AlarmKind.QUALITY_DROPPED]) == told
    assert update(book, looked_at=[AlarmKind.QUALITY_DROPPED]) == []
    assert update(book, drop, looked_at=[AlarmKind.QUALITY_DROPPED]) == told


def test_an_event_says_what_when_and_where_and_is_bounded(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    alarms = [alarm(AlarmKind.DOCUMENT_FAILED, f"s/{number}", "x" * 9000) for number in range(MAX_ITEMS + 5)]
    book_of(tmp_path).update(alarms, OF_A_SYNC, send=events.append, run_id="run", at=NOW)
    [event] = events
    assert (event["domain"], event["run_id"], event["created_at"]) == ("code", "run", "2026-01-20T00:00:00+00:00")
    assert event["count"] == MAX_ITEMS + 5 and len(event["items"]) == MAX_ITEMS
    assert len(event["items"][0]["text"]) == 500


def test_who_is_killed_before_the_alarms_are_written_sends_them_twice(tmp_path: Path) -> None:
    def killed(_: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    book, failed = book_of(tmp_path), alarm(AlarmKind.SYNC_FAILED, "code")
    with pytest.raises(KeyboardInterrupt):
        book.update([failed], OF_A_SYNC, send=killed, run_id="run", at=NOW)
    assert update(book, failed) == [("sync_failed", None, ["code"])]


@pytest.mark.parametrize("content", ["", "{}", "[1]", '[{"kind": "nonsense", "subject": "x", "text": ""}]', "\xff"])
def test_a_damaged_file_counts_as_no_alarms(tmp_path: Path, content: str) -> None:
    (tmp_path / "alarms").mkdir()
    (tmp_path / "alarms/code.json").write_text(content, encoding="latin-1")
    assert book_of(tmp_path).active() == {}
    assert update(book_of(tmp_path), alarm(AlarmKind.SYNC_FAILED, "code"))


@given(st.lists(st.sets(st.sampled_from("abc")), max_size=8))
def test_beginnings_and_ends_alternate_for_each_subject(
    tmp_path_factory: pytest.TempPathFactory, runs: list[set[str]]
) -> None:
    book = book_of(tmp_path_factory.mktemp("alarms"))
    told: dict[str, list[str]] = {}
    for failing in [*runs, set()]:
        alarms = [alarm(AlarmKind.DOCUMENT_FAILED, subject) for subject in sorted(failing)]
        for name, _, subjects in update(book, *alarms):
            for subject in subjects:
                told.setdefault(subject, []).append(name)
    for names in told.values():
        assert names == ["document_failed", "recovered"] * (len(names) // 2)


@pytest.mark.slow
def test_a_sync_tells_what_it_did_what_goes_wrong_and_what_is_over_as_soon_as_somebody_listens(tmp_path: Path) -> None:
    from test_events import NOBODY, webhook

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n\nOne page.\n")
    (tmp_path / "docs/b.pdf").write_bytes(b"%PDF-1.4 broken")
    source = {"id": "s", "domain": "research", "type": "files", "path": "docs"}
    config = {"sources": [source], "domains": {"research": HASHED}}
    received: list[Any] = []

    def sync(url: str, wanted: int) -> None:
        (tmp_path / "nornweave.yaml").write_text(json.dumps({**config, "webhook": url}))
        done = nornweave(tmp_path, "sync", "--domain", "research")
        assert done.returncode == wanted, done.stderr

    sync(NOBODY, 0)
    with webhook(200, received) as url:
        (tmp_path / "docs").rename(tmp_path / "gone")
        sync(url, 1)
        (tmp_path / "gone").rename(tmp_path / "docs")
        (tmp_path / "docs/b.pdf").unlink()
        sync(url, 0)
    assert next(one["added"] for one in received if one["event"] == "publication") == ["s/a.md"]
    told = [(event["event"], event.get("of"), event.get("items", [{}])[0].get("subject")) for event in received]
    assert [one for one in told if one[0] != "publication"] == [
        ("document_failed", None, "s/b.pdf"),
        ("source_unavailable", None, "s"),
        ("recovered", "source_unavailable", "s"),
        ("recovered", "document_failed", "s/b.pdf"),
    ]
