import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from nornweave.connect.connectors import FeedSettings
from nornweave.connect.mirror.feed import LEFT_OUT, Body, Feed, FeedRecord, Known, Pass, RecordPage
from nornweave.connect.mirror.mirrored import MirroredSource, MirrorFile
from nornweave.core.errors import SourceUnavailableError, TransientDocumentError
from nornweave.core.types import Domain, Entry


class Letters(Feed):
    """A feed of letters; each page is one step of ``script``, an exception is raised."""

    domain = Domain.CONVERSATIONS
    version = "letters-1"

    def __init__(self, scope: str = "a") -> None:
        self.scope = scope
        self.script: list[RecordPage | Exception] = []
        self.passes: list[Pass] = []

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        self.passes.append(state)
        while self.script:
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            yield step

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        return "".join(body["text"] for _, body in records).encode()


def page(position: int, *letters: str, gone: tuple[str, ...] = (), confirmed: tuple[str, ...] = ()) -> RecordPage:
    records = tuple(FeedRecord(key=each, document=each[0], body={"text": each}) for each in letters)
    return RecordPage(records=records, position=position, since={"at": position}, gone=gone, confirmed=confirmed)


class Source(MirroredSource):
    def __init__(self, feed: Letters, folder: Path) -> None:
        self.clock = 1_000_000.0
        settings = FeedSettings(id="letters", domain=Domain.RESEARCH, path=folder, relist_hours=100 / 3600)
        super().__init__(settings, feed, folder, now=lambda: self.clock)

    def texts(self) -> dict[str, str]:
        return {entry.path: self.fetch(entry).decode() for entry in self.list().entries}


def test_include_and_exclude_are_of_the_paths_of_documents(tmp_path: Path) -> None:
    feed = Letters()
    feed.script = [page(1, "a", "b", "c")]
    settings = FeedSettings(id="letters", domain=Domain.RESEARCH, path=tmp_path, include=("a", "b"), exclude=("b",))
    assert [entry.path for entry in MirroredSource(settings, feed, tmp_path).list().entries] == ["a"]


def test_a_gate_changes_exactly_when_a_record_does(tmp_path: Path) -> None:
    feed = Letters()
    source = Source(feed, tmp_path)
    feed.script = [page(1, "a1", "b")]
    before = {entry.path: entry.gate for entry in source.list().entries}
    feed.script = [page(2, "a1", "b")]
    assert {entry.path: entry.gate for entry in source.list().entries} == before
    feed.script = [page(3, "a2")]
    after = {entry.path: entry.gate for entry in source.list().entries}
    assert (after["a"] != before["a"], after["b"] == before["b"]) == (True, True)


@pytest.mark.parametrize("error", [KeyError("id"), TypeError("x"), AttributeError("y"), ValueError("z")])
def test_an_answer_of_another_shape_is_told(tmp_path: Path, error: Exception) -> None:
    feed = Letters()
    feed.script = [page(1, "a"), error]
    assert "another shape than expected" in (Source(feed, tmp_path).list().problem or "")


def test_another_scope_and_a_damaged_file_are_read_anew(tmp_path: Path) -> None:
    feed = Letters()
    feed.script = [page(1, "a")]
    Source(feed, tmp_path).list()
    other = Letters(scope="b")
    other.script = [page(1, "b")]
    assert Source(other, tmp_path).texts() == {"b": "b"}
    (tmp_path / "remote" / "letters.sqlite").write_bytes(b"no database" * 1000)
    other.script = [page(1, "c")]
    assert Source(other, tmp_path).texts() == {"c": "c"}


def test_two_listings_at_once_are_refused(tmp_path: Path) -> None:
    with (
        MirrorFile(tmp_path / "remote" / "letters.sqlite", "a").reading(),
        pytest.raises(SourceUnavailableError, match="another process is reading"),
    ):
        Source(Letters(), tmp_path).list()


def test_what_vanished_and_what_cannot_be_read_is_tried_again(tmp_path: Path) -> None:
    feed = Letters()
    feed.script = [page(1, "a")]
    source = Source(feed, tmp_path)
    source.list()
    with pytest.raises(TransientDocumentError, match="vanished"):
        source.fetch(Entry(path="z", gate=""))
    (tmp_path / "remote" / "letters.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(TransientDocumentError, match="cannot be read"):
        source.fetch(Entry(path="a", gate=""))


def test_paths_that_lead_elsewhere_are_left_out(tmp_path: Path) -> None:
    feed = Letters()
    feed.script = [RecordPage(records=(FeedRecord(key="a", document="../a", body={}),), position=1)]
    listing = Source(feed, tmp_path).list()
    assert (listing.entries, [skip.path for skip in listing.skipped]) == ((), ["../a"])


def test_a_watcher_sees_each_page(tmp_path: Path) -> None:
    feed = Letters()
    feed.script = [page(1, "a"), page(2, "b", "c")]
    source, seen = Source(feed, tmp_path), []
    source.watched_by(lambda documents, size, expected: seen.append((documents, size > 0, expected)))
    source.list()
    assert seen == [(1, True, None), (3, True, None)]


def test_a_page_that_cannot_be_stored_is_not_stored_by_half(tmp_path: Path) -> None:
    mirror = MirrorFile(tmp_path / "m.sqlite", "a")
    with pytest.raises(SourceUnavailableError), mirror.reading() as opened:
        number = opened.begin(full=True, anew=False, now=1.0).number
        opened.connection.execute("drop table reading")
        with pytest.raises(sqlite3.Error):
            opened.store(page(1, "a"), number, 1.0)
        assert opened.body("a") is None
        opened.state()


def test_what_a_feed_leaves_out_is_listed_with_its_reason(tmp_path: Path) -> None:
    feed = Letters()
    left = [
        FeedRecord(
            key=f"{LEFT_OUT}{number}", document="", body={"path": f"x{number}", "reason": "binary" * (number > 0)}
        )
        for number in range(3)
    ]
    feed.script = [RecordPage(records=(*left, FeedRecord(key="a1", document="a", body={"text": "A"})), position=1)]
    listing = Source(feed, tmp_path).list()
    assert [entry.path for entry in listing.entries] == ["a"]
    assert [(skip.path, skip.reason) for skip in listing.skipped] == [("x1", "binary"), ("x2", "binary")]


def test_a_clock_that_was_ahead_puts_off_no_listing_of_everything(tmp_path: Path) -> None:
    feed = Letters()
    source = Source(feed, tmp_path)
    source.clock += 365 * 86_400.0
    feed.script = [page(1, "a", "b")]
    assert source.texts() == {"a": "a", "b": "b"}
    source.clock -= 365 * 86_400.0
    feed.script = [page(1, "a")]
    assert source.texts() == {"a": "a"}, "what was deleted goes at once, not in a year"
