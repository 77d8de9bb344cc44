"""Pages of documentation as generators write them: what is kept, what goes, and where headings lead."""

import re
from collections.abc import Callable

import pytest
from growth import assert_subquadratic

from nornweave.connect.confluence import html_of_storage
from nornweave.connect.stackexchange.document import text_of_html
from nornweave.core.errors import DocumentError
from nornweave.read.blocks.html import read_html
from nornweave.read.formats.html import markdown_of
from nornweave.read.front_matter import describe
from nornweave.read.web_page import WebPage, read_web_page

SPHINX = """<html><body><div class="related" role="navigation"><a href="x">previous</a></div>
<div class="document"><div class="body" role="main"><section id="usage"><span id="alias"></span>
<h1>Usage<a class="headerlink" href="#usage">¶</a></h1>
<div class="highlight-python"><div class="highlight"><pre><span></span><span class="k">def</span> f():
    <span class="k">return</span> 1

<span class="c1"># done &lt;here&gt;</span>
</pre></div></div>
<div class="admonition warning"><p class="admonition-title">Warning</p><p>Hot.</p></div>
<dl class="py function"><dt class="sig" id="m.f"><code>f</code>()</dt><dd><p>Does it.</p></dd></dl></section>
</div></div>
<div class="sphinxsidebar"><ul><li><a href="y">Sidebar</a></li></ul></div></body></html>"""
DOCUSAURUS = """<body><nav>Menu</nav><main><div class="container"><article><nav class="theme-doc-breadcrumbs">Up</nav>
<div class="theme-doc-markdown markdown"><header><h1>Setup</h1></header>
<h2 class="anchor" id="install">Install<a class="hash-link" href="#install">#</a></h2><p>Text of it.</p>
<table><thead><tr><th>Key</th><th>Default</th></tr></thead><tbody><tr><td>port</td><td>80</td></tr></tbody></table></div>
<footer class="theme-doc-footer">Edit this page</footer></article></div></main><footer>Copyright</footer></body>"""
DOCBOOK = """<body><div class="navheader"><a href="p">Prev</a></div><div class="sect1" title="Indexes">
<div class="titlepage"><h2 class="title"><a name="SQL-INDEX"></a>Indexes</h2></div><p>They are quick.</p>
<div class="note"><h3 class="title">Note</h3><p>Mostly.</p></div></div><div class="navfooter">Next</div></body>"""
STARLIGHT = """<body><header><nav>Menu</nav></header><main><div class="content-panel"><h1 id="_top">Guide</h1></div>
<div class="sl-markdown-content"><p>Text.</p><aside class="starlight-aside starlight-aside--note">Take care.</aside>
</div></main><aside class="right-sidebar">On this page</aside></body>"""
JAVADOC = """<body><header role="banner"><nav><div class="top-nav">Overview</div></nav></header><main role="main">
<h1 class="title">Class Queue</h1><section class="detail" id="poll(long)"><h3>poll</h3>
<div class="member-signature">E poll(long)</div></section></main></body>"""


def read(html: str, charset: str | None = None) -> WebPage:
    return read_web_page({"charset": charset}, html.encode())


def anchors(page: WebPage) -> list[str]:
    return re.findall(r"<(?:h\d|dt) id=\"([^\"]+)\"", page.content)


@pytest.mark.parametrize(("html", "title", "kept", "dropped", "named"), [
    (SPHINX, "Usage", ["Hot.", "Does it."], ["previous", "Sidebar", "¶"], ["usage", "m.f"]),
    (DOCUSAURUS, "Setup", ["Text of it.", "port | 80"], ["Menu", "Up", "Edit this", "Copyright"], ["install"]),
    (DOCBOOK, "Indexes", ["They are quick.", "Mostly."], ["Prev", "Next"], ["SQL-INDEX"]),
    (STARLIGHT, "Guide", ["Text.", "Take care."], ["Menu", "On this page"], ["_top"]),
    (JAVADOC, "Class Queue", ["E poll(long)"], ["Overview"], ["poll(long)"]),
])  # fmt: skip
def test_generators_pages(html: str, title: str, kept: list[str], dropped: list[str], named: list[str]) -> None:
    page = read(html)
    text = read_html(page.content).text
    assert page.title == title or (html is DOCBOOK and page.title is None)
    assert [each for each in kept if each not in text] == []
    assert [each for each in dropped if each in text] == []
    assert anchors(page) == named


def test_code_keeps_its_lines_and_signs() -> None:
    text = read_html(read(SPHINX).content).text
    assert "def f():\n    return 1\n\n# done <here>" in text


def test_links_are_listed_once_without_fragments_and_without_those_not_to_follow() -> None:
    html = """<base href="/b/"><a href="a#x">1</a><a href="a#y">2</a><a href="#z">3</a><a href="n" rel="nofollow">4</a>
    <nav><a href=" c ">5</a></nav><a>6</a>"""
    page = read(html)
    assert (page.links, page.base) == (("a", "c"), "/b/")
    assert read('<meta name="robots" content="NOFOLLOW"><a href="a">1</a>').links == ()


def test_what_a_page_says_of_itself() -> None:
    head = """<meta name="nornweave" content="none"><link rel="canonical" href="/x"><title>T - Docs</title>
    <meta http-equiv="refresh" content="0; URL='/new'"><meta property="article:modified_time" content="2026-01-02">"""
    page = read(f"<head>{head}</head><p>Text.")
    assert (page.no_index, page.canonical, page.refresh) == (True, "/x", "/new")
    assert (page.title, str(page.updated_at)) == ("T - Docs", "2026-01-02 00:00:00+00:00")
    assert read('<meta http-equiv="refresh" content="600; url=/x"><p>Text.').refresh is None


def test_tabs_and_pages_inside_of_a_form_are_content() -> None:
    html = """<form id="aspnet"><h1>Title</h1><p>Text.</p><div role="tabpanel" hidden>pip install x</div></form>
    <form><input>Search</form><div hidden>Dialog</div>"""
    text = read_html(read(html).content).text
    assert [each for each in ("Text.", "pip install x", "Search", "Dialog") if each in text] == [
        "Text.",
        "pip install x",
    ]


def test_a_page_without_text_says_so() -> None:
    assert not read("<body><nav>Menu</nav><div id=root></div><script>x</script></body>").has_text
    with pytest.raises(DocumentError):
        read("   ")


HOSTILE = {
    "divisions": "<div>" * 40_000,
    "headings": "<h1>" * 40_000,
    "headings in sections": "<section><h2>x</h2>" * 10_000,
    "links": "<a href=x>" * 20_000,
    "asides": "<aside class=note>" * 11_000,
    "attributes": "<p " + " ".join(f"a{number}=b" for number in range(20_000)) + ">x",
    "unclosed": "<a " * 66_000,
    "entities": "&amp;" * 40_000,
    "tables": "<table><tr><td>" * 13_000,
    "articles": "<article>x" * 20_000,
    "late headings": "<p>x" * 4_000 + "<h2>x</h2>" * 4_000,
    "navigation": "<nav>" * 10_000 + "<main>",
    "forms": "<form>" * 10_000 + "<h1>x",
    "named": "<a name=x></a><h2>x</h2>" * 8_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_take_linear_time(name: str) -> None:
    text = HOSTILE[name]
    assert_subquadratic(lambda part: read(f"<body>{part}x") and None, lambda size: text[-size:], 8_000)


@pytest.mark.parametrize("text_of", [
    lambda html: read_html(html).text, lambda html: str(describe(html.replace("h1", "title"), "html").title),
    lambda html: read(html).content, lambda html: html_of_storage(html, "", {}), text_of_html, markdown_of,
])  # fmt: skip
def test_a_reference_with_too_many_digits_is_no_error(text_of: Callable[[str], str]) -> None:
    assert "before" in text_of("<h1>before &#" + "9" * 5_000 + "; after</h1>")
