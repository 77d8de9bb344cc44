import gzip
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from feed_source import FeedSource, served
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.apis import STAND_INS
from lab.apis.server import Reply, serving
from lab.apis.site import SiteServer, large, small
from nornweave.connect.connectors import WebSettings, open_source
from nornweave.connect.mirror.api_client import Limits
from nornweave.connect.web import feed
from nornweave.connect.web.feed import WebFeed
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError
from nornweave.core.files.paths import OwnFiles
from nornweave.core.text.spans import KnownStarts, TokenIndex
from nornweave.core.types import Domain
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.web_page import web_document

LIMITS = Limits(attempts=1, backoff_s=0.0, max_wait_s=1.0, read_s=10.0)


class Source(FeedSource):
    """The documents below ``/guide/`` of a site."""

    def __init__(self, site: SiteServer, folder: Path, **options: Any) -> None:
        self.slept: list[float] = []
        settings = STAND_INS["web"].settings(site.url, **options)
        feed = WebFeed(settings, limits=LIMITS, sleep=self.slept.append)
        super().__init__(feed, settings, folder, partial(web_document, domain=settings.domain), str)

    def said(self) -> dict[str, bytes]:
        return {entry.path: self.source.fetch(entry) for entry in self.list().entries}

    def reasons(self) -> dict[str, str]:
        return {skip.path: skip.reason for skip in self.list().skipped}


site = served(SiteServer)


def chain(site: SiteServer, *names: str) -> None:
    """Make a site without a sitemap, whose pages link from one to the next."""
    site.has_sitemap = False
    paths = ["/guide/", *(f"/guide/{name}.html" for name in names)]
    for path, following in zip(paths, [*paths[1:], "/elsewhere.html"], strict=True):
        site.put(path, links=[following])


# --- what a page becomes


def test_a_page_becomes_a_document_with_title_address_date_and_content(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/install.html", "Run <code>make</code>.")
    (document,) = Source(site, tmp_path).documents().values()
    assert (document.path, document.title, document.format) == ("guide/install.html", "Install", "html")
    assert document.url == f"{site.url}/guide/install.html"
    assert str(document.updated_at) == "2026-01-01 01:00:00+00:00"
    assert "Run <code>make</code>." in document.text
    assert "Made with care" not in document.text
    assert "<nav" not in document.text


def test_chunks_name_the_anchor_of_their_section(site: SiteServer, tmp_path: Path) -> None:
    section = '<section id="deep"><h2>Deep<a href="#deep">#</a></h2><p>Two.</p></section>'
    body = f"<main><h1>Top</h1><p>One.</p>{section}</main>".encode()
    site.put("/guide/a.html", raw=body)
    (document,) = Source(site, tmp_path).documents().values()
    index = TokenIndex(document.text, KnownStarts([]))
    chunks = list(Chunker("HIERARCHICAL_SECTIONS", 512).chunk(document, index))
    assert [(chunk.section, chunk.metadata.get("anchor")) for chunk in chunks] == [
        ("Top", None),
        ("Top > Deep", "deep"),
    ]


def test_markdown_text_and_pdf_are_read_and_other_types_are_named(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/a.md", raw=b"# Alpha\n\nOne.\n", headers={"content-type": "text/plain"})
    site.put("/guide/b.txt", raw=b"Beta.\n", headers={"content-type": "text/plain"})
    site.put("/guide/c", raw=b"\x00\x01", headers={"content-type": "application/x-thing"})
    source = Source(site, tmp_path)
    documents = source.documents()
    assert {path: (each.format, each.title) for path, each in documents.items()} == {
        "guide/a.md": ("markdown", "Alpha"),
        "guide/b.txt": ("text", None),
    }
    assert "application/x-thing" in source.reasons()["guide/c"]


def test_a_page_that_only_scripts_fill_is_named(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/", "Text.")
    site.put("/guide/app.html", raw=b"<body><div id=app></div><script>render()</script></body>")
    source = Source(site, tmp_path)
    assert source.paths() == ["guide/index.html"]
    assert "put together in the browser" in source.reasons()["guide/app.html"]


def test_the_encoding_is_the_servers_or_the_pages_own(site: SiteServer, tmp_path: Path) -> None:
    text = "<title>x</title><p>Größe und Höhe</p>"
    site.put("/guide/a", raw=text.encode("latin-1"), headers={"content-type": "text/html; charset=ISO-8859-1"})
    site.put(
        "/guide/b", raw=b"<meta charset=iso-8859-1>" + text.encode("latin-1"), headers={"content-type": "text/html"}
    )
    site.put("/guide/c", raw=text.encode("latin-1"), headers={"content-type": "text/html; charset=nonsense"})
    assert all("Größe und Höhe" in each.text for each in Source(site, tmp_path).documents().values())


# --- finding pages


def test_pages_of_the_sitemap_below_the_prefix_are_read(site: SiteServer, tmp_path: Path) -> None:
    for path in ("/guide/", "/guide/a.html", "/blog/x.html", "/guidebook.html"):
        site.put(path)
    site.put("/guide/unlisted.html", listed=False)
    assert Source(site, tmp_path).paths() == ["guide/a.html", "guide/index.html"]


def test_sitemaps_of_robots_txt_in_indexes_packed_and_plain_are_read(site: SiteServer, tmp_path: Path) -> None:
    site.has_sitemap = False
    for name in "abc":
        site.put(f"/guide/{name}")
    named = (f"{site.url}/m/b.gz", "/m/self")
    index = f"<sitemapindex>{''.join(f'<sitemap><loc>{each}</loc></sitemap>' for each in named)}</sitemapindex>"
    packed = gzip.compress(f"<urlset><url><loc>{site.url}/guide/b</loc></url></urlset>".encode())
    site.other = {
        "/m/self": Reply(index.encode()),
        "/m/b.gz": Reply(packed),
        "/m/c.xml": Reply(f"<urlset><url><loc>{site.url}/guide/c</loc></url></urlset>".encode()),
    }
    site.robots = f"Sitemap: {site.url}/m/self\nSitemap: /m/c.xml\nSitemap: https://other.example.org/s.xml"
    assert Source(site, tmp_path).paths() == ["guide/b", "guide/c"]


@pytest.mark.parametrize("content", [
    b"<html><body>Sorry</body></html>", b"", b"<urlset><url>",
    b'<!DOCTYPE u [<!ENTITY a "x">]><urlset><url><loc>&a;</loc></url></urlset>', gzip.compress(b"0" * 70_000_000),
    b"\x1f\x8bnonsense",
])  # fmt: skip
def test_what_is_no_sitemap_is_passed_over_at_first_and_an_outage_later(
    site: SiteServer, tmp_path: Path, content: bytes
) -> None:
    site.put("/guide/", links=["a.html"])
    site.put("/guide/a.html", listed=False)
    site.other["/sitemap.xml"] = Reply(content)
    source = Source(site, tmp_path)
    assert source.paths() == ["guide/a.html", "guide/index.html"]
    other = Source(site, tmp_path / "other")
    site.other.clear()
    assert other.paths() == ["guide/index.html"]
    site.other["/sitemap.xml"] = Reply(content)
    other.a_day_later()
    listing = other.list()
    assert [entry.path for entry in listing.entries] == ["guide/index.html"]
    assert "no sitemap any more" in (listing.problem or "")


def test_without_a_sitemap_links_are_followed_below_the_prefix(site: SiteServer, tmp_path: Path) -> None:
    chain(site, "a", "b")
    site.change(
        "/guide/a.html", links=("b.html#part", "../guide/b.html?utm_source=x", "mailto:x@y", "logo.png", "//[x")
    )
    assert Source(site, tmp_path).paths() == ["guide/a.html", "guide/b.html", "guide/index.html"]
    assert "/elsewhere.html" not in site.asked()
    assert "/guide/logo.png" not in site.asked()


def test_a_page_is_asked_for_once_however_it_is_spelt(site: SiteServer, tmp_path: Path) -> None:
    spelled = ["index.html", "./", "#top", "?ref=1", "%61.html", "a.html", "x/../a.html", "a.html#x", "A.html"]
    site.has_sitemap = False
    site.put("/guide/", links=spelled)
    site.put("/guide/a.html")
    assert Source(site, tmp_path).paths() == ["guide/a.html", "guide/index.html"]
    assert site.asked() == ["/guide/", "/guide/a.html", "/guide/A.html"]


def test_max_pages_bounds_an_endless_calendar_and_is_told(site: SiteServer, tmp_path: Path) -> None:
    site.has_sitemap = False
    for day in range(60):
        site.put(
            "/guide/" if not day else f"/guide/day-{day}.html", links=[f"day-{day + 1}.html", f"day-{day + 2}.html"]
        )
    source = Source(site, tmp_path, max_pages=10)
    listing = source.list()
    assert len(listing.entries) == 10
    assert listing.problem is None
    assert "max_pages 10 is reached" in {skip.path: skip.reason for skip in listing.skipped}["…"]
    assert len(site.asked()) == 10


def test_include_and_exclude_are_of_paths(site: SiteServer, tmp_path: Path) -> None:
    chain(site, "a", "b", "c")
    assert Source(site, tmp_path, exclude=["b.html"]).paths() == ["guide/a.html", "guide/index.html"]
    assert "/guide/b.html" not in site.asked()
    assert Source(site, tmp_path / "2", include=["c.html"]).paths() == ["guide/c.html"]


# --- one page, several addresses


def test_the_canonical_address_counts_where_it_is_below_the_prefix(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/a.html")
    site.put("/guide/print/a.html", head='<link rel="canonical" href="/guide/a.html">')
    site.put("/guide/b.html", head='<link rel="canonical" href="https://other.example.org/b.html">')
    source = Source(site, tmp_path)
    assert source.paths() == ["guide/a.html", "guide/b.html"]
    site.requests.clear()
    assert source.paths() == ["guide/a.html", "guide/b.html"]
    assert site.asked() == []


def test_a_canonical_address_that_leads_in_a_circle_or_to_the_first_page_does_not_count(
    site: SiteServer, tmp_path: Path
) -> None:
    site.put("/guide/b.html", head='<link rel="canonical" href="/guide/c.html">')
    site.put("/guide/c.html", head='<link rel="canonical" href="/guide/b.html">')
    site.put("/guide/")
    site.put("/guide/d.html", head='<link rel="canonical" href="/guide/">')
    paths = Source(site, tmp_path).paths()
    assert {"guide/d.html", "guide/index.html"} <= set(paths)
    assert len({"guide/b.html", "guide/c.html"} & set(paths)) == 1


def test_redirects_are_followed_inside_and_named_outside(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/new.html", listed=False)
    site.put("/guide/old.html", status=301, headers={"location": "new.html"})
    site.put("/guide/out.html", status=302, headers={"location": "/login"})
    site.put("/guide/away.html", status=302, headers={"location": "http://127.0.0.2:9/"})
    site.put("/guide/loop.html", status=302, headers={"location": "/guide/loop.html"})
    site.put("/guide/meta.html", raw=b'<meta http-equiv="refresh" content="0; url=new.html"><p>Moved.</p>')
    source = Source(site, tmp_path)
    assert source.paths() == ["guide/new.html"]
    reasons = source.reasons()
    assert "outside prefix" in reasons["guide/out.html"]
    assert "outside prefix" in reasons["guide/away.html"]
    assert "to itself" in reasons["guide/loop.html"]


# --- what the site asks of robots


def test_robots_txt_is_obeyed(site: SiteServer, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        site.put(f"/guide/{name}.html")
    site.robots = "User-agent: nornweave\nDisallow: /*b.html$\nCrawl-delay: 3\n\nUser-agent: *\nDisallow: /"
    source = Source(site, tmp_path)
    assert source.paths() == ["guide/a.html", "guide/c.html"]
    assert "/guide/b.html" not in site.asked()
    assert set(source.slept) == {3.0}
    assert "robots.txt" in source.reasons()["guide/b.html"]
    assert {each.headers["user-agent"] for each in site.requests} == {"nornweave"}


@pytest.mark.parametrize(("status", "allowed"), [(404, True), (403, True), (401, True), (500, False), (503, False)])
def test_without_robots_txt_all_is_allowed_unless_the_site_is_down(
    site: SiteServer, tmp_path: Path, status: int, allowed: bool
) -> None:
    site.put("/guide/a.html")
    site.other["/robots.txt"] = Reply(b"", status)
    if allowed:
        assert Source(site, tmp_path).paths() == ["guide/a.html"]
    else:
        with pytest.raises(SourceUnavailableError, match=rf"robots.txt: status {status}"):
            Source(site, tmp_path).list()
        assert site.asked() == []


def test_noindex_and_nofollow_are_obeyed(site: SiteServer, tmp_path: Path) -> None:
    chain(site, "a", "b", "c", "d", "e")
    site.change("/guide/a.html", head='<meta name="robots" content="noindex">')
    site.change("/guide/b.html", headers={"x-robots-tag": "noindex"})
    site.change("/guide/c.html", headers={"x-robots-tag": "googlebot: noindex, nofollow"})
    site.change("/guide/d.html", head='<meta name="robots" content="noarchive, nofollow">')
    source = Source(site, tmp_path)
    assert source.paths() == ["guide/c.html", "guide/d.html", "guide/index.html"]
    assert "asks not to be indexed" in source.reasons()["guide/a.html"]


# --- later passes


def test_a_pass_for_changes_asks_for_what_the_sitemap_says_changed(tmp_path: Path) -> None:
    with serving(large(60)) as site:
        assert isinstance(site, SiteServer)
        site.per_sitemap = 20
        source = Source(site, tmp_path)
        assert len(source.paths()) == 60
        site.requests.clear()
        assert len(source.paths()) == 60
        sitemaps = ["/sitemap.xml", *(f"/sitemap-{number}.xml" for number in range(3))]
        assert [each.path for each in site.requests] == ["/robots.txt", *sitemaps]
        site.change("/guide/topic-7.html", text="Changed.")
        site.put("/guide/new.html")
        site.requests.clear()
        assert len(source.paths()) == 61
        assert sorted(site.asked()) == ["/guide/new.html", "/guide/topic-7.html"]
        assert b"Changed." in source.said()["guide/topic-7.html"]


@pytest.mark.parametrize("has_sitemap", [True, False])
def test_pages_of_which_nothing_is_said_are_asked_for_again_those_confirmed_longest_ago_first(
    site: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_sitemap: bool
) -> None:
    monkeypatch.setattr(feed, "AGAIN", 2)
    site.dates = False
    names = [f"/guide/{name}.html" for name in "abcd"]
    site.put("/guide/", links=names, listed=False)
    for name in names:
        site.put(name)
    site.has_sitemap = has_sitemap
    source = Source(site, tmp_path)
    source.list()
    site.change("/guide/a.html", text="Changed.")
    site.delete("/guide/d.html")
    site.put("/guide/d.html", status=404)  # the sitemap names it nevertheless
    asked = []
    for _ in range(3):
        site.requests.clear()
        source.list()
        asked.append([path for path in site.asked() if path != "/guide/"])
        conditional = [each for each in site.requests if each.path.endswith(".html")]
        assert all("if-none-match" in each.headers for each in conditional)
    if has_sitemap:
        assert asked == [names[:2], names[2:], names[:2]]
    assert all(len(each) <= 2 for each in asked)
    assert b"Changed." in source.said()["guide/a.html"]
    assert "guide/d.html" not in source.paths()


def test_pauses_that_a_site_asks_for_make_fewer_pages_be_asked_for_again(site: SiteServer, tmp_path: Path) -> None:
    chain(site, *(str(number) for number in range(40)))
    source = Source(site, tmp_path)
    source.list()
    site.robots = "User-agent: *\nCrawl-delay: 20"
    site.requests.clear()
    source.list()
    assert len(site.asked()) == 30


def test_by_links_a_pass_for_changes_asks_for_the_start_page_and_what_is_new_there(
    site: SiteServer, tmp_path: Path
) -> None:
    chain(site, "a", "b")
    source = Source(site, tmp_path)
    source.list()
    site.put("/guide/new.html", links=["newer.html", "a.html"])
    site.put("/guide/newer.html")
    site.change("/guide/", links=("a.html", "new.html"))
    site.requests.clear()
    assert len(source.paths()) == 5
    again = ["/guide/a.html", "/guide/b.html"]
    assert site.asked() == ["/guide/", *again, "/guide/new.html", "/guide/newer.html"]
    assert [each.path for each in site.requests if "if-none-match" in each.headers] == ["/guide/", *again]


def test_a_page_that_is_gone_goes_and_one_that_fails_stays(site: SiteServer, tmp_path: Path) -> None:
    chain(site, "a", "b", "c")
    source = Source(site, tmp_path)
    assert len(source.paths()) == 4
    site.change("/guide/a.html", status=500)
    site.change("/guide/c.html", status=410)
    source.a_day_later()
    assert source.paths() == ["guide/a.html", "guide/b.html", "guide/index.html"]
    assert "status 500" in source.reasons()["guide/a.html"]
    site.change("/guide/a.html", status=200, text="Back.")
    assert b"Back." in source.said()["guide/a.html"]
    assert "guide/a.html" not in source.reasons()


@pytest.mark.parametrize("per_sitemap", [1, 1_000])
def test_a_page_that_leaves_the_sitemap_goes_with_the_next_pass(
    site: SiteServer, tmp_path: Path, per_sitemap: int
) -> None:
    site.per_sitemap = per_sitemap
    for name in "abc":
        site.put(f"/guide/{name}.html")
    source = Source(site, tmp_path)
    source.list()
    site.change("/guide/b.html", listed=False)
    site.delete("/guide/a.html")
    assert source.paths() == ["guide/c.html"]


def test_a_page_that_stands_in_the_place_of_a_listed_one_stays(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/a.html", status=301, headers={"location": "/guide/b.html"})
    site.put("/guide/b.html", listed=False, head='<link rel="canonical" href="/guide/c.html">')
    site.put("/guide/c.html", listed=False)
    site.put("/guide/d.html")
    source = Source(site, tmp_path)
    for _ in range(3):
        assert source.paths() == ["guide/c.html", "guide/d.html"]
    site.delete("/guide/c.html")
    assert source.paths() == ["guide/d.html"]


def test_a_sitemap_that_is_gone_takes_no_page_with_it(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/", links=["a.html"])
    site.put("/guide/a.html")
    source = Source(site, tmp_path)
    source.list()
    site.has_sitemap = False
    for _ in range(2):
        assert source.paths() == ["guide/a.html", "guide/index.html"]
        source.a_day_later()


def test_a_new_date_alone_changes_no_document(site: SiteServer, tmp_path: Path) -> None:
    site.dates = False
    site.put("/guide/a.html")
    source = Source(site, tmp_path)
    before = source.said()
    site.hours += 100
    site.pages["/guide/a.html"] = site.pages["/guide/a.html"].__class__(
        "A", "A says something.", head="<!-- x -->", changed=99
    )
    source.a_day_later()
    assert source.said() == before


# --- faults


def test_many_failures_one_after_another_are_an_outage(site: SiteServer, tmp_path: Path) -> None:
    for number in range(20):
        site.put(f"/guide/{number:02}.html")
    site.before = lambda request: (
        site.faults.append(Reply(b"", 403)) if "/guide/10" < request.path < "/guide/9" else None
    )
    source = Source(site, tmp_path)
    listing = source.list()
    assert len(listing.entries) == 10
    assert "5 pages one after another cannot be read" in (listing.problem or "")
    assert "status 403" in (listing.problem or "")
    site.before = lambda _: None
    assert source.list().problem is None
    assert len(source.paths()) == 20


def test_a_site_without_pages_is_named(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/", status=404)
    with pytest.raises(SourceUnavailableError, match="no page was found below"):
        Source(site, tmp_path).list()
    site.change("/guide/", status=500)
    with pytest.raises(SourceUnavailableError, match=r"no page was found below .* \(.*status 500"):
        Source(site, tmp_path / "2").list()


@pytest.mark.parametrize(("key", "options"), [
    ("url", {"url": "ftp://x.example.org/"}), ("url", {"url": "https://user:pw@x.example.org/"}),
    ("prefix", {"prefix": "docs"}), ("prefix", {"prefix": "https://other.example.org/"}),
    ("exclude", {"exclude": [""]}),
])  # fmt: skip
def test_wrong_settings_are_refused(key: str, options: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError, match=key):
        WebFeed(STAND_INS["web"].settings("https://docs.example.org", **options))


def test_the_settings_open_a_site(site: SiteServer, tmp_path: Path) -> None:
    site.put("/guide/a.html")
    configured = {"id": "site", "domain": "research", "type": "web", "url": f"{site.url}/guide/", "max_pages": 5}
    source = open_source(WebSettings.model_validate(configured), OwnFiles(tmp_path))
    (entry,) = source.list().entries
    assert source.parse(entry, source.fetch(entry)).domain is Domain.RESEARCH


_TAGS = st.sampled_from(
    """<main>|</main>|<article>|<pre>|</pre>|<h1 id=x>|<h2>|<a href=a.html>|<a href='//['>|</a>|<base href=//x>|<!--
    <link rel=canonical href='b\x00'>|<meta http-equiv=refresh content='0;url=/guide/'>|<table><tr><td>|<![CDATA[|\x00
    &#xd800;|<aside class=note>|<meta name=robots content=none>|<dt id=y>""".replace("\n    ", "|").split("|")
)


@settings(max_examples=12, deadline=None)
@given(
    parts=st.lists(_TAGS | st.text(max_size=20), max_size=30), kind=st.sampled_from(["text/html", "text/plain", "x"])
)
def test_whatever_a_page_holds_only_named_errors_come_out(
    parts: list[str], kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serving(small()) as site:
        assert isinstance(site, SiteServer)
        site.put("/guide/x.html", raw="".join(parts).encode("utf-8", "replace"), headers={"content-type": kind})
        source = Source(site, tmp_path_factory.mktemp("mirror"))
        listing = source.list()
        assert listing.problem is None
        for entry in listing.entries:
            try:
                source.source.parse(entry, source.source.fetch(entry)).text.encode()
            except DocumentError:
                continue


# --- what a site may take of a sync


def test_a_site_whose_sitemaps_name_no_page_is_left_to_the_next_sync(site: SiteServer, tmp_path: Path) -> None:
    site.has_sitemap = False
    site.put("/guide/a.html")
    named = "".join(f"<sitemap><loc>{site.url}/m/{number}</loc></sitemap>" for number in range(60))
    empty = Reply(b"<urlset></urlset>")
    site.other = {f"/m/{number}": empty for number in range(59)}
    site.other["/m/59"] = Reply(f"<urlset><url><loc>{site.url}/guide/a.html</loc></url></urlset>".encode())
    site.other["/m/all"] = Reply(f"<sitemapindex>{named}</sitemapindex>".encode())
    site.robots = "Sitemap: /m/all"
    source = Source(site, tmp_path, max_requests=30)
    with pytest.raises(SourceUnavailableError, match=r"brought no page in this sync \(max_requests 30\)"):
        source.list()
    asked = len(site.requests)
    assert asked <= 35
    for _ in range(2):
        try:
            listed = source.paths()
            break
        except SourceUnavailableError:
            continue
    assert listed == ["guide/a.html"], "it went on where it stopped"
    assert len(site.requests) < asked + 45


def test_a_site_that_drips_holds_a_sync_for_its_minutes_and_keeps_what_was_read(
    site: SiteServer, tmp_path: Path
) -> None:
    site.put("/guide/a.html")
    source = Source(site, tmp_path, max_minutes=1 / 60)
    source.list()
    site.put("/guide/b.html")
    site.before = lambda request: time.sleep(0.7 if "guide/" in request.path else 0)
    for name in "cdefghij":
        site.put(f"/guide/{name}.html")
    began = time.monotonic()
    listing = source.list()
    assert time.monotonic() - began < 20
    assert "time for this source is used up" in str(listing.problem)
    assert {"guide/a.html"} <= {entry.path for entry in listing.entries}
