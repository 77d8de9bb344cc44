import re
from pathlib import Path

import pytest
from feed_cases import confluence_said, confluence_source
from feed_source import served

from lab.apis.confluence import SITE, TOKEN, ConfluenceServer
from lab.apis.server import Reply
from nornweave.connect.confluence import confluence_document
from nornweave.core.errors import DocumentError, DocumentSkipped
from nornweave.core.types import Domain, SourceId

wiki = served(ConfluenceServer)


def test_a_page_comes_with_its_title_authors_date_place_and_address(wiki: ConfluenceServer, tmp_path: Path) -> None:
    space = wiki.space("ENG", "Engineering")
    home = wiki.write(space, "Home")
    page = wiki.write(space, "Roll back", "<h1>When?</h1><p>Ask <b>Bob</b>.</p>", parent=home)
    wiki.edit(page, '<h1>When?</h1><p>Ask <ac:link><ri:user ri:account-id="557058:bob" /></ac:link>.</p>')
    found = confluence_source(wiki, tmp_path).documents()[f"ENG/{page}"]
    assert found.text == '<h1>Roll back</h1>\n<h2 id="When?">When?</h2><p>Ask @Bob Ray.</p>'
    assert (found.title, found.format, found.domain) == ("Roll back", "html", Domain.DOCUMENTATION)
    assert found.url == f"{SITE}/spaces/ENG/pages/{page}/Roll+back"
    assert (found.revision, found.updated_at and found.updated_at.isoformat()) == ("2", "2026-01-01T03:00:00+00:00")
    assert dict(found.metadata) == {
        "source_type": "confluence",
        "authors": ("Ann Lee", "Bob Ray"),
        "publication_date": "2026-01-01",
        "space": "ENG",
    }


def test_blog_posts_and_every_current_space_are_read(wiki: ConfluenceServer, tmp_path: Path) -> None:
    first, second, old = wiki.space("ENG"), wiki.space("~557058:ann"), wiki.space("OLD", status="archived")
    wiki.write(first, "Page")
    wiki.write(second, "Mine")
    wiki.write(old, "Old")
    wiki.write(first, "News", blog=True)
    assert confluence_source(wiki, tmp_path).said() == confluence_said(wiki, "ENG", "~557058:ann")


def test_only_the_spaces_that_are_named_are_read(wiki: ConfluenceServer, tmp_path: Path) -> None:
    for key in ("ENG", "OPS", "HR"):
        wiki.write(wiki.space(key), f"In {key}")
    source = confluence_source(wiki, tmp_path, spaces=("ENG", "HR"))
    assert source.said() == confluence_said(wiki, "ENG", "HR")
    lists = [request.query for request in wiki.requests if request.path.endswith("pages") and "id" not in request.query]
    assert all(query.get("space-id") for query in lists)


def test_a_space_that_is_missing_is_named_and_nothing_is_deleted(wiki: ConfluenceServer, tmp_path: Path) -> None:
    space = wiki.space("ENG")
    wiki.write(space, "Page")
    source = confluence_source(wiki, tmp_path, spaces=("ENG",))
    before = source.gates()
    wiki.spaces[space]["key"] = "NEW"
    listing = source.source.list()
    assert "no space ENG; check the key" in (listing.problem or "")
    assert [entry.path for entry in listing.entries] == list(before)


def test_a_rename_keeps_the_path(wiki: ConfluenceServer, tmp_path: Path) -> None:
    space = wiki.space("ENG")
    top = wiki.write(space, "Runbooks")
    source = confluence_source(wiki, tmp_path)
    before = source.gates()
    wiki.rename(top, "Guides")
    after = source.gates()
    assert before.keys() == after.keys()
    assert all(before[path] != after[path] for path in before)


def test_a_cursor_that_the_site_forgot_begins_the_pass_again(wiki: ConfluenceServer, tmp_path: Path) -> None:
    space = wiki.space("ENG")
    for number in range(6):
        wiki.write(space, f"T{number}")
    wiki.page_size = 2
    source = confluence_source(wiki, tmp_path)
    wiki.before = lambda request: wiki.faults.extend([Reply({}, 401)] if "cursor" in request.query else [])
    listing = source.source.list()
    assert len(listing.entries) == 2
    assert "renew ATLASSIAN_TOKEN, and check that it belongs to 'me@example.org'" in (listing.problem or "")
    wiki.before = lambda _: None
    wiki.faults.clear()
    wiki.forget_cursors()
    assert source.said() == confluence_said(wiki)


def test_an_account_that_may_not_ask_for_names_reads_without_them(wiki: ConfluenceServer, tmp_path: Path) -> None:
    wiki.may_name_people = False
    page = wiki.write(wiki.space("ENG"), "T", '<p>by <ac:link><ri:user ri:account-id="557058:bob" /></ac:link></p>')
    source = confluence_source(wiki, tmp_path)
    found = source.documents()[f"ENG/{page}"]
    assert ("authors" in found.metadata, found.text) == (False, "<h1>T</h1>\n<p>by </p>")


def test_a_bearer_token_is_sent_without_a_user(wiki: ConfluenceServer, tmp_path: Path) -> None:
    wiki.write(wiki.space("ENG"), "T")
    assert confluence_source(wiki, tmp_path, user=None).said() == confluence_said(wiki)
    assert {request.headers["authorization"] for request in wiki.requests} == {f"Bearer {TOKEN}"}


def test_a_site_behind_the_address_for_scoped_tokens_is_cited_by_its_own(
    wiki: ConfluenceServer, tmp_path: Path
) -> None:
    wiki.page_size = 1
    space = wiki.space("ENG")
    pages = [wiki.write(space, "T"), wiki.write(space, "U")]
    found = confluence_source(wiki, tmp_path, url=f"{wiki.url}/ex/confluence/11f5-ab").documents()
    assert [found[f"ENG/{page}"].url for page in pages] == [
        f"{SITE}/spaces/ENG/pages/{pages[0]}/T",
        f"{SITE}/spaces/ENG/pages/{pages[1]}/U",
    ]


def test_a_changed_page_that_the_site_does_not_give_stays_as_it_was(wiki: ConfluenceServer, tmp_path: Path) -> None:
    page = wiki.write(wiki.space("ENG"), "T", "<p>old</p>")
    source = confluence_source(wiki, tmp_path)
    before = source.said()
    wiki.edit(page, "<p>new</p>")
    source.a_day_later()
    nothing = Reply({"results": [], "_links": {}})
    wiki.before = lambda request: wiki.faults.extend([nothing] if "id" in request.query else [])
    assert source.said() == before
    wiki.before = lambda _: None
    source.a_day_later()
    assert source.said() == confluence_said(wiki)


def test_what_nobody_wrote_by_hand_is_a_failure_of_its_page_alone(wiki: ConfluenceServer, tmp_path: Path) -> None:
    space = wiki.space("ENG", "Eng\x00\x1b[31m")
    large = wiki.write(space, "Large", f"<p>{'x' * 11_000_000}</p>")
    odd = wiki.write(space, "Odd\x1b[2J\ud800\ntitle", f"<p>a\x00b\ud800</p>{'<div>' * 20_000}")
    source = confluence_source(wiki, tmp_path).source
    entries = {entry.path: entry for entry in source.list().entries}
    with pytest.raises(DocumentError, match="too large"):
        confluence_document(SourceId("wiki"), entries[f"ENG/{large}"], source.fetch(entries[f"ENG/{large}"]))
    raw = source.fetch(entries[f"ENG/{odd}"])
    found = confluence_document(SourceId("wiki"), entries[f"ENG/{odd}"], raw)
    assert not re.search("[\x00-\x08\x0e-\x1f\ud800]", f"{found.title}{found.text}{dict(found.metadata)}")


def test_a_page_without_text_is_left_out(wiki: ConfluenceServer, tmp_path: Path) -> None:
    wiki.write(wiki.space("ENG"), "Index", '<ac:structured-macro ac:name="children" />')
    with pytest.raises(DocumentSkipped, match="no text"):
        confluence_source(wiki, tmp_path).documents()
