"""The diff: what is looked at, what goes, what is held."""

from dataclasses import replace
from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nornweave.connect.files.skip import EXCLUDED, UNNAMED
from nornweave.connect.files.walk import LINK
from nornweave.core.types import Domain, Entry, Listing, Skip, document_id
from nornweave.index.port import Failure, Stored
from nornweave.ingest.diff import Changes, Unavailable, describe_repeated_work, diff
from nornweave.ingest.left_out import readings

PATHS = st.sets(st.text("abcdef/", min_size=1, max_size=4), max_size=60)


def entry(path: str, gate: str = "1") -> Entry:
    return Entry(path=path, gate=gate)


def stored(path: str, gate: str = "1", pipeline: str = "p", **more: str | None) -> tuple[tuple[str, str], Stored]:
    known = Stored(
        document_id=document_id("s", path), source_id="s", path=path, gate=gate, pipeline=pipeline,
        **{"content_hash": "h", **more},  # type: ignore[arg-type]
    )  # fmt: skip
    return ("s", path), known


def compare(listed: list[Entry], known: dict[tuple[str, str], Stored], **options: bool) -> Changes:
    return diff({"s": Listing(tuple(listed))}, known, {"s": "p"}, **options)


@given(PATHS)
def test_the_same_listing_twice_is_no_work(paths: set[str]) -> None:
    changes = compare([entry(path) for path in paths], dict(stored(path) for path in paths))
    assert (changes.due, changes.removed, changes.held) == ((), (), ())
    assert changes.unchanged == changes.listed == len(paths)


@given(PATHS, PATHS)
def test_every_document_is_looked_at_kept_removed_or_held(before: set[str], after: set[str]) -> None:
    changes = compare([entry(path) for path in after], dict(stored(path) for path in before))
    looked_at = {wanted.entry.path for wanted in changes.due}
    removed = {one.path for one in changes.removed}
    held = {path for one in changes.held for path in one.paths}
    assert looked_at == after - before
    assert removed | held == before - after
    assert not removed & held
    assert changes.listed == len(after | held)
    assert [wanted.entry.path for wanted in changes.due] == sorted(looked_at)


@pytest.mark.parametrize(("known", "due"), [
    (stored("a"), False), (stored("a", gate="0"), True), (stored("a", pipeline="older"), True),
    (stored("a", outcome="failed"), False), (stored("a", outcome="transient"), True),
    (stored("a", outcome="skipped"), False),
])  # fmt: skip
def test_what_is_due(known: tuple[tuple[str, str], Stored], due: bool) -> None:
    assert bool(compare([entry("a")], dict([known])).due) is due


@pytest.mark.parametrize(("gate", "pipeline", "changed", "said"), [
    ("1", "p", {}, ""),
    ("0", "older", {"chunker": "2"}, ""),  # its source changed it
    ("1", "older", {}, "1 documents are read again: another parser"),
    ("1", "older", {"chunker": "2"}, "1 documents are read again: another chunker"),
    ("1", "older", {"encoder": "2"}, "1 documents are read again and 5,000 chunks are encoded again: another encoder"),
    ("1", "p", {"token_vectors": "2"}, "5,000 chunks are encoded again: another late_interaction"),
    ("1", "p", {"token_vectors": ""}, ""),  # tokens that nobody wants are forgotten
])  # fmt: skip
def test_a_sync_says_what_it_makes_again_and_why(gate: str, pipeline: str, changed: dict[str, str], said: str) -> None:
    before = dict.fromkeys(("encoder", "token_vectors", "chunker", "analyzer", "facts"), "1")
    changes = compare([entry("a")], dict([stored("a", gate=gate, pipeline=pipeline)]))
    assert describe_repeated_work(changes, {"s": "p"}, before, {**before, **changed}, 5_000) == (
        said and f"{said} than before"
    )
    assert "encoded" not in describe_repeated_work(
        changes, {"s": "p"}, {}, {**before, **changed}, 5_000
    )  # nothing is published


def test_full_looks_at_everything() -> None:
    assert len(compare([entry("a")], dict([stored("a")]), full=True).due) == 1


@pytest.mark.parametrize(("before", "after", "held"), [
    (3, 0, 3),  # lists nothing at all
    (1, 0, 1),
    (12, 5, 7),  # more than a third, however few
    (3, 1, 2),
    (2, 1, 0),  # one document is removed by hand
    (30, 20, 0),  # exactly a third
    (100, 60, 40),
    (100, 67, 0),  # less than a third, however many
])  # fmt: skip
def test_the_brake(before: int, after: int, held: int) -> None:
    known = dict(stored(f"{number}") for number in range(before))
    changes = compare([entry(f"{number}") for number in range(after)], known)
    assert sum(len(one.paths) for one in changes.held) == held
    assert len(changes.removed) == before - after - held
    assert len(compare([], known, confirm_deletes=True).removed) == before


def test_what_moved_or_was_never_stored_is_not_lost() -> None:
    known = dict([stored(f"{number}", gate=f"g{number}") for number in range(6)])
    moved = [entry(f"new/{number}", gate=f"g{number}") for number in range(4)]
    assert not compare([entry("4", gate="g4"), entry("5", gate="g5"), *moved], known).held
    assert compare([entry("4", gate="g4"), entry("5", gate="g5"), *moved[:2], entry("x")], known).held == ()
    assert compare([entry("4", gate="g4"), entry("5", gate="g5"), entry("x", gate="g0")], known).held
    failed = dict([stored("a"), *(stored(f"f{number}", outcome="failed", content_hash=None) for number in range(5))])
    assert not compare([entry("a")], failed).held


def test_an_unavailable_source_keeps_everything() -> None:
    known = dict(stored(f"{number}") for number in range(20))
    changes = diff({"s": Unavailable("gone")}, known, {"s": "p"}, confirm_deletes=True)
    assert (changes.removed, changes.held, changes.unavailable) == ((), (), {"s": "gone"})


@pytest.mark.parametrize(("listed_at", "removed"), [(None, 0), (datetime(2026, 1, 1, tzinfo=UTC), 1)])
def test_a_listing_that_ended_early_removes_what_was_said_to_be_gone_once_all_was_listed(
    listed_at: datetime | None, removed: int
) -> None:
    known = dict(stored(f"{number}") for number in range(20))
    listing = Listing(tuple(entry(f"{number}") for number in range(1, 20)), problem="is down", listed_at=listed_at)
    changes = diff({"s": listing}, known, {"s": "p"})
    assert (len(changes.removed), changes.unavailable) == (removed, {"s": "is down"})
    assert changes.unlisted == (() if removed else (("s", "0"),))


def test_a_source_that_is_not_configured_any_more_goes() -> None:
    assert len(diff({}, dict(stored(f"{number}") for number in range(50)), {}).removed) == 50


@pytest.mark.parametrize(("reason", "held"), [(UNNAMED, ("b",)), (EXCLUDED, ())])
def test_what_only_leaves_out_is_asked_about_however_little_it_is(reason: str, held: tuple[str, ...]) -> None:
    known = dict(stored(path) for path in "abcdefgh")
    listing = Listing(tuple(entry(path) for path in "acdefgh"), (Skip("b", reason),))
    changes = diff({"s": listing}, known, {"s": "p"})
    assert tuple(path for each in changes.held for path in each.paths) == held
    assert bool(changes.removed) is not bool(held)
    assert diff({"s": listing}, known, {"s": "p"}, confirm_deletes=True).held == ()


def test_a_document_that_moved_is_not_lost() -> None:
    known = dict(stored(path, gate=f"5-{path}@1") for path in "abc")
    moved = [entry(f"new/{path}", gate=f"5-{path}@2") for path in "abc"]
    assert compare(moved, known).held == ()
    assert compare([entry(f"new/{path}", gate=f"6-{path}@2") for path in "abc"], known).held != ()


def test_of_a_link_is_said_what_is_done_with_its_target() -> None:
    links = {
        "a/one": "../m.go",
        "two": "page.html",
        "three": "./logo.png",
        "four": "a",
        "five": "/etc/passwd",
        "six": ".",
    }
    skipped = [Skip(path, f"{LINK}{target}") for path, target in links.items()] + [Skip("logo.png", "binary: .png")]
    listing = Listing((entry("m.go"), entry("page.html")), tuple(skipped))
    unread = [Failure("page.html", "no text: a page that a program fills", "s")]
    reading = readings({"s": Domain.CODE}, {"s": listing}, unread)["s"]
    assert {skip.path: skip.reason for skip in reading.left_out if skip.path in links} == {
        "a/one": "link: its target is read where it lies",
        "two": "link: its target is left out (no text)",
        "three": "binary: .png",
        "four": "link: what lies in the folder that it leads to is read or left out there",
        "five": "link: it leads out of the source, or nowhere",
        "six": "link: what lies in the folder that it leads to is read or left out there",
    }


def test_what_is_left_out_is_counted_by_its_reasons() -> None:
    reasons = {f"{path}.go": "vendored: below vendor, LICENSE came with it; name it" for path in "abc"}
    reasons |= {"x/": "ignored: git ignores it", "y.go": EXCLUDED, "z.zzz": ".zzz: not a file type of code; add"}
    skipped = tuple(Skip(path, reason) for path, reason in reasons.items())
    listing = Listing((entry("m.go"), entry("n.go"), entry("o.go")), skipped)
    unread = [Failure("o.go", "too large: 9 bytes", "s")]
    reading = readings({"s": Domain.CODE}, {"s": listing, "t": Unavailable(None)}, unread)["s"]
    assert (reading.files, reading.read, len(reading.left_out)) == (9, 2, 7)
    said = "9 files: 2 read, 3 vendored below vendor, 1 .zzz, 1 excluded, 1 ignored, 1 too large"
    assert reading.summary() == said
    assert reading.warning().startswith("1 of 3 files in known languages are left out;"), "others' code counts not"
    assert replace(reading, known=100).warning() == ""
    fine = tuple(Skip(f"{at}.json", "translation: of en.json; name it") for at in range(20))
    assert readings({"s": Domain.CODE}, {"s": Listing((entry("m.go"),), fine)}, [])["s"].warning() == ""
