from __future__ import annotations

from pathlib import Path

import pytest

from lab.apis.feed import PATH, FeedServer
from lab.apis.server import Reply, serving
from nornweave.connect.connectors import CONNECTORS, open_source
from nornweave.connect.feed.connector import FeedSettings
from nornweave.connect.feed.feed import SyndicationFeed, feed_document
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import Document, Domain, SourceId


class Source:
    """A feed as a source, whose clock a test moves."""

    def __init__(self, place: str | Path, folder: Path) -> None:
        self.clock = 1_000_000.0
        limits = Limits(attempts=2, backoff_s=0.0, max_wait_s=2.0)
        feed = SyndicationFeed(place, Domain.DOCUMENTATION, limits=limits)
        self.source = MirroredSource(SourceId("news"), feed, folder, relist_s=86_400, now=lambda: self.clock)

    def documents(self) -> list[Document]:
        listing = self.source.list()
        assert listing.problem is None
        return [
            feed_document(SourceId("news"), entry, self.source.fetch(entry), domain=Domain.DOCUMENTATION)
            for entry in listing.entries
        ]

    def texts(self) -> set[str]:
        return {document.text.partition("\n")[2] for document in self.documents()}


@pytest.mark.parametrize("is_atom", [False, True])
def test_an_entry_is_a_document_with_its_title_address_date_and_author(tmp_path: Path, is_atom: bool) -> None:
    server = FeedServer(is_atom=is_atom)
    server.write("Refunds <b>", "<p>They take <em>three</em> days.</p>")
    with serving(server):
        (document,) = Source(server.url + PATH, tmp_path).documents()
    assert document.text == "<h1>Refunds &lt;b&gt;</h1>\n<p>They take <em>three</em> days.</p>"
    assert (document.title, document.url, document.format) == ("Refunds <b>", "https://news.example.org/1", "html")
    assert str(document.updated_at) == "2026-01-01 01:00:00+00:00"
    assert dict(document.metadata) == {"source_type": "feed", "authors": ("ann@example.org",)}


def test_a_feed_that_did_not_change_is_one_small_answer(tmp_path: Path) -> None:
    server = FeedServer()
    number = server.write("A", "<p>a</p>")
    with serving(server):
        source = Source(server.url + PATH, tmp_path)
        assert source.texts() == {"<p>a</p>"}
        assert source.texts() == source.texts() == {"<p>a</p>"}
        assert [request.headers.get("if-none-match") is not None for request in server.requests] == [False, True, True]
        server.edit(number, "<p>b</p>")
        assert source.texts() == {"<p>b</p>"}


def test_an_entry_that_is_not_listed_any_more_stays(tmp_path: Path) -> None:
    server = FeedServer(listed=1)
    server.write("A", "<p>a</p>")
    with serving(server):
        source = Source(server.url + PATH, tmp_path)
        source.texts()
        server.write("B", "<p>b</p>")
        assert source.texts() == {"<p>a</p>", "<p>b</p>"}
        source.clock += 90_000
        assert source.texts() == {"<p>a</p>", "<p>b</p>"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b"<p>Log in", headers={"content-type": "text/html"}), "expected RSS or Atom"),
        (Reply(b'<!DOCTYPE a [<!ENTITY b "c">]><rss>&b;</rss>'), "expected RSS or Atom: EntitiesForbidden"),
        (Reply(b"<html><item/></html>"), "expected RSS or Atom, found <html>"),
        (Reply(b"", 404), "status 404"),
        (Reply(b"", 429, {"retry-after": "3600"}), "rate limit until"),
    ],
)
def test_an_answer_that_is_no_feed_removes_nothing(tmp_path: Path, reply: Reply, reason: str) -> None:
    server = FeedServer()
    server.write("A", "<p>a</p>")
    with serving(server):
        source = Source(server.url + PATH, tmp_path / "b")
        source.texts()
        server.faults.append(reply)
        listing = source.source.list()
        assert reason in (listing.problem or "")
        assert len(listing.entries) == 1
        server.faults.append(reply)
        with pytest.raises(SourceUnavailableError, match=reason):
            Source(server.url + PATH, tmp_path / "c").source.list()


def test_a_feed_in_a_file_is_read_without_a_network(tmp_path: Path) -> None:
    server = FeedServer()
    server.write("A", "<p>a</p>")
    file = tmp_path / "feed.xml"
    file.write_bytes(server.document())
    settings = FeedSettings(id="news", domain=Domain.RESEARCH, path=file)
    assert CONNECTORS["feed"].settings is FeedSettings
    source = open_source(settings, tmp_path / "var")
    (entry,) = source.list().entries
    assert source.parse(entry, source.fetch(entry)).domain is Domain.RESEARCH
    file.unlink()
    assert "No such file" in (source.list().problem or "")
