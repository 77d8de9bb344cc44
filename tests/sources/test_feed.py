import os
from pathlib import Path

import pytest
from feed_cases import feed_source
from feed_source import FeedSource

from lab.apis.feed import FeedServer
from lab.apis.server import serving
from nornweave.connect.connectors import CONNECTORS, FeedSettings, open_source
from nornweave.connect.feed import MAX_FILE_BYTES
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.files.paths import OwnFiles
from nornweave.core.types import Domain


def texts(source: FeedSource) -> set[str]:
    return {document.text.partition("\n")[2] for document in source.documents().values()}


@pytest.mark.parametrize("is_atom", [False, True])
def test_an_entry_is_a_document_with_its_title_address_date_and_author(tmp_path: Path, is_atom: bool) -> None:
    server = FeedServer(is_atom=is_atom)
    server.write("Refunds <b>", "<p>They take <em>three</em> days.</p>")
    with serving(server):
        (document,) = feed_source(server, tmp_path).documents().values()
    assert document.text == "<h1>Refunds &lt;b&gt;</h1>\n<p>They take <em>three</em> days.</p>"
    assert (document.title, document.url, document.format) == ("Refunds <b>", "https://news.example.org/1", "html")
    assert str(document.updated_at) == "2026-01-01 01:00:00+00:00"
    assert dict(document.metadata) == {"source_type": "feed", "authors": ("ann@example.org",)}


def test_a_feed_that_did_not_change_is_one_small_answer(tmp_path: Path) -> None:
    server = FeedServer()
    number = server.write("A", "<p>a</p>")
    with serving(server):
        source = feed_source(server, tmp_path)
        assert texts(source) == {"<p>a</p>"}
        assert texts(source) == texts(source) == {"<p>a</p>"}
        assert [request.headers.get("if-none-match") is not None for request in server.requests] == [False, True, True]
        server.edit(number, "<p>b</p>")
        assert texts(source) == {"<p>b</p>"}


def test_an_entry_that_is_not_listed_any_more_stays(tmp_path: Path) -> None:
    server = FeedServer(listed=1)
    server.write("A", "<p>a</p>")
    with serving(server):
        source = feed_source(server, tmp_path)
        texts(source)
        server.write("B", "<p>b</p>")
        assert texts(source) == {"<p>a</p>", "<p>b</p>"}
        source.clock += 90_000
        assert texts(source) == {"<p>a</p>", "<p>b</p>"}


@pytest.mark.parametrize(("target", "problem"), [("pipe", "not a regular file"), ("/dev/zero", "not a regular file"),
                                                ("sparse", "larger|bytes|MB|MiB")])  # fmt: skip
def test_a_file_that_is_none_or_too_large_is_unavailable(tmp_path: Path, target: str, problem: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(MAX_FILE_BYTES + 1)
    (tmp_path / "feed.xml").symlink_to(tmp_path / target)
    settings = FeedSettings(id="news", domain=Domain.RESEARCH, path=tmp_path / "feed.xml")
    source = open_source(settings, OwnFiles(tmp_path / "var"))
    with pytest.raises(SourceUnavailableError, match=problem):
        source.list()


def test_a_feed_in_a_file_is_read_without_a_network(tmp_path: Path) -> None:
    server = FeedServer()
    server.write("A", "<p>a</p>")
    file = tmp_path / "feed.xml"
    file.write_bytes(server.document())
    settings = FeedSettings(id="news", domain=Domain.RESEARCH, path=file)
    assert CONNECTORS["feed"].settings is FeedSettings
    source = open_source(settings, OwnFiles(tmp_path / "var"))
    (entry,) = source.list().entries
    assert source.parse(entry, source.fetch(entry)).domain is Domain.RESEARCH
    file.unlink()
    assert "No such file" in (source.list().problem or "")
