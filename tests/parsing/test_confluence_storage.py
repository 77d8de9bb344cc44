import pytest
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.connect.confluence import html_of_storage, mentioned_accounts
from nornweave.read.blocks.html import read_html

NAMES = {"557058:ann": "Ann Lee"}


def body(storage: str) -> str:
    """Return the HTML below the title."""
    return html_of_storage(storage, "T", NAMES).removeprefix("<h1>T</h1>\n")


def macro(name: str, content: str = "", **parameters: str) -> str:
    given = "".join(f'<ac:parameter ac:name="{key}">{value}</ac:parameter>' for key, value in parameters.items())
    return f'<ac:structured-macro ac:name="{name}" ac:schema-version="1">{given}{content}</ac:structured-macro>'


def plain(text: str) -> str:
    return f"<ac:plain-text-body><![CDATA[{text}]]></ac:plain-text-body>"


def rich(content: str) -> str:
    return f"<ac:rich-text-body>{content}</ac:rich-text-body>"


@pytest.mark.parametrize(
    ("storage", "html"),
    [
        ('<p style="color: red">a&nbsp;&lt; <span class="x">b</span></p>', "<p>a\xa0&lt; b</p>"),
        ("<p>a<br/>b</p><hr />", "<p>a<br>b</p><hr>"),
        ('<a href="https://x.org/?a=1&amp;b=2">x</a>', '<a href="https://x.org/?a=1&amp;b=2">x</a>'),
        ('<a href="javascript:alert(1)">x</a>', "x"),
        (
            macro("code", plain("if a < b && c:\n    go()"), language="Python", theme="Emacs"),
            '<pre><code class="language-python">if a &lt; b &amp;&amp; c:\n    go()</code></pre>',
        ),
        (
            macro("code", plain("a]]]]><![CDATA[>b"), title="a.sh"),
            "<p><strong>a.sh</strong></p><pre><code>a]]&gt;b</code></pre>",
        ),
        (macro("noformat", plain("x")), "<pre><code>x</code></pre>"),
        (macro("info", rich("<p>Drain first.</p>"), icon="false"), "<div><p>Drain first.</p></div>"),
        (macro("expand", rich("<p>b</p>"), title="a"), "<p><strong>a</strong></p><div><p>b</p></div>"),
        (macro("unknown", rich("<p>b</p>"), server="noise"), "<div><p>b</p></div>"),
        (f"<p>a {macro('status', title='LIVE', colour='Green')}</p>", "<p>a LIVE</p>"),
        (f"<p>see {macro('jira', key='PAY-1', serverId='noise')}</p>", "<p>see PAY-1</p>"),
        (f"<p>a</p>{macro('toc', maxLevel='3')}{macro('html', plain('<b>x</b>'))}", "<p>a</p>"),
        ('<ac:link><ri:page ri:content-title="A &amp; B" ri:space-key="ENG" /></ac:link>', "A &amp; B"),
        (
            '<ac:link ac:anchor="x"><ri:page ri:content-title="A" />'
            "<ac:plain-text-link-body><![CDATA[the <b>]]></ac:plain-text-link-body></ac:link>",
            "the &lt;b&gt;",
        ),
        ('<ac:link><ri:page ri:content-title="A"/><ac:link-body><b>x</b></ac:link-body></ac:link>', "<b>x</b>"),
        ('<ac:link ac:anchor="below" />', "below"),
        ('<p><ac:link><ri:user ri:account-id="557058:ann" /></ac:link>!</p>', "<p>@Ann Lee!</p>"),
        ('<p><ac:link><ri:user ri:account-id="557058:eve" /></ac:link>!</p>', "<p>!</p>"),
        ('<ac:image ac:alt="Flow"><ri:attachment ri:filename="a.png" /></ac:image>', "Flow"),
        ('<ac:image ac:width="9"><ri:attachment ri:filename="a.png" /></ac:image>', "a.png"),
        (
            "<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status>"
            "<ac:task-body>a</ac:task-body></ac:task><ac:task><ac:task-status>incomplete</ac:task-status>"
            "<ac:task-body>b</ac:task-body></ac:task></ac:task-list>",
            "<ul><li>[x] a</li><li>[ ] b</li></ul>",
        ),
        (
            "<table><colgroup><col /></colgroup><tbody><tr><th><p>a</p></th></tr><tr><td>"
            f"{macro('code', plain('x = 1'))}</td></tr></tbody></table>",
            "<table><tbody><tr><th><p>a</p></th></tr><tr><td><code>x = 1</code></td></tr></tbody></table>",
        ),
        ('<p><time datetime="2026-01-05" /> <ac:emoticon ac:name="tick" /></p>', "<p>2026-01-05 ✓</p>"),
        ('<p>a<ac:emoticon ac:name="x" ac:emoji-fallback=":x:" />b</p>', "<p>ab</p>"),
        ("<p>a<ac:placeholder>Type here</ac:placeholder><script>x</script></p>", "<p>a</p>"),
        (
            '<ac:adf-extension><ac:adf-node type="panel"><ac:adf-attribute key="panel-type">note</ac:adf-attribute>'
            "<ac:adf-content><p>a</p></ac:adf-content></ac:adf-node><ac:adf-fallback><p>a</p></ac:adf-fallback>"
            "</ac:adf-extension>",
            "<div><p>a</p></div>",
        ),
        ("<ac:adf-extension><ac:adf-fallback><p>a</p></ac:adf-fallback></ac:adf-extension>", "<p>a</p>"),
        ("<h2>One</h2><h6>Six</h6>", '<h3 id="One">One</h3><h6 id="Six">Six</h6>'),
        (
            "<h1>Roll back</h1><h1>Roll back</h1>",
            '<h2 id="Roll-back">Roll back</h2><h2 id="Roll-back.1">Roll back</h2>',
        ),
        ('<h1>"a" &amp; <em>b</em></h1>', '<h2 id="&quot;a&quot;-&amp;-b">"a" &amp; <em>b</em></h2>'),
        (
            '<ac:structured-macro ac:name="view-file"><ac:parameter ac:name="name">'
            '<ri:attachment ri:filename="plan.pdf" /></ac:parameter></ac:structured-macro>',
            "plan.pdf",
        ),
    ],
)
def test_what_a_reader_sees_stays(storage: str, html: str) -> None:
    assert body(storage) == html


@pytest.mark.parametrize("storage", ["", "  ", "<p></p>", "<p>&nbsp;</p>", macro("toc"), macro("children", all="true")])
def test_a_page_that_says_nothing_is_empty(storage: str) -> None:
    assert html_of_storage(storage, "T", {}) == ""


def test_the_title_is_the_first_heading_and_the_outline_reads_the_rest() -> None:
    storage = f"<h1>A</h1><p>x</p>{macro('code', plain('f()'))}<table><tr><td>a</td><td>b</td></tr></table>"
    readable = read_html(html_of_storage(storage, "The <title>", {}))
    assert readable.text == "The <title>\n\nA\n\nx\n\nf()\n\na | b"
    assert [(block.kind, block.level, block.info) for block in readable.blocks] == [
        ("heading", 1, "The <title>"),
        ("heading", 2, "A"),
        ("paragraph", 0, ""),
        ("code", 0, ""),
        ("table", 0, "bars"),
    ]


def test_mentions_are_found_once() -> None:
    user = '<ri:user ri:account-id="557058:ann" />'
    assert mentioned_accounts(user * 3 + '<ri:user ri:userkey="old" />') == ("557058:ann",)


_PIECES = st.sampled_from(
    [
        *(
            "<p>", "</p>", "<h1>", "</h1>", "<table>", "<td>", "</td>", "</table>", "text", "&lt;", "&nbsp;", "<",
            "<![X",
        ),
        *(
            "<ac:link>", "</ac:link>", '<ri:page ri:content-title="t"/>', "<ac:image>", "</ac:image>", "<![CDATA[",
            "]]>",
        ),
        *('<ac:structured-macro ac:name="code">', "</ac:structured-macro>", "<ac:plain-text-body>", "<ac:parameter>"),
        *(
            "</ac:parameter>", "</ac:plain-text-body>", "<ac:rich-text-body>", "</ac:rich-text-body>",
            "<ac:task-status>",
        ),
        *("<ac:adf-extension>", "<ac:adf-fallback>", "</ac:adf-fallback>", "</ac:adf-extension>", "<script>", "<br/>"),
        *("<ac:adf-attribute>", "</ac:adf-attribute>", "<ac:task-id>", "</ac:task-id>", "<ac:task>", "\x00", "\ud800"),
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(_PIECES, max_size=30), title=st.text(max_size=5))
def test_any_order_of_tags_becomes_well_nested_html(pieces: list[str], title: str) -> None:
    html = html_of_storage("".join(pieces), title, NAMES)
    html.encode("utf-8")
    read_html(html)
    for tag in ("p", "pre", "code", "table", "td", "li", "div", "h2"):
        assert html.count(f"</{tag}>") == html.count(f"<{tag}>") + html.count(f"<{tag} ")


@pytest.mark.parametrize("piece", [
    "<ac:link>", "<h1>", "<ac:adf-extension>", macro("code", plain("x")), "<ac:parameter>a", "<![CDATA[", "</p>",
    "<p><",
])  # fmt: skip
def test_the_time_is_linear_in_what_is_hostile(piece: str) -> None:
    assert_subquadratic(body, lambda size: "a" + piece * size, 8_000)
