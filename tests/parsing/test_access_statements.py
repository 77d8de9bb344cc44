"""Who may see a text, as it says itself: whatever it is spelt like and wherever it stands, outsiders see nothing."""

import json
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from growth import assert_subquadratic

from lab.access.grammar import alternatives, spellings
from nornweave.core.access import ACCESS_NOTICE, ANYONE, is_met, read_rule
from nornweave.core.types import Domain, Entry, JsonValue, SourceId
from nornweave.read.access_statements import access_metadata, access_statements
from nornweave.read.formats.reader import read_converted
from nornweave.read.front_matter import FORMATS, describe
from nornweave.read.web_page import read_web_page, web_document, write_page

OUTSIDER = frozenset({"public", "staff", "everybody"})
BOARD = frozenset({"board"})


def is_shown(text: str, markup: str, groups: frozenset[str] = OUTSIDER) -> bool:
    return is_met(read_rule(describe(text, markup).metadata.get("access")), groups)


def test_no_spelling_shows_a_document_to_outsiders() -> None:
    """Of the grammar in the laboratory, which knows the formats and not our reader, every production is tried."""
    tried: set[str] = set()
    for spelling in spellings(2_000):
        assert not is_shown(spelling.text, FORMATS[spelling.suffix]), f"{spelling.suffix}: {spelling.text[:300]!r}"
        tried |= spelling.parts
    assert tried == alternatives()


def notebook(text: str, cell: str) -> bytes:
    cells = [{"cell_type": "markdown", "source": "# Plan"}, {"cell_type": cell, "source": text.splitlines(True)}]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}).encode()


def mail(text: str, filename: str, subtype: str) -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "Plan"
    message.set_content("The deal is in May.")
    message.add_attachment(text.encode(), maintype="application", subtype=subtype, filename=filename)
    return message.as_bytes()


def site(text: str, kind: str) -> bytes:
    """Return a page as a crawl keeps it."""
    known = {"url": "https://example.org/plan", "format": kind}
    if kind != "html":
        return write_page({**known, "content": text}, None)
    page = read_web_page({"charset": None}, text.encode())
    return write_page({**known, "content": page.content, "metadata": dict(page.metadata)}, None)


def crawled(text: str, kind: str) -> Mapping[str, JsonValue]:
    entry = Entry(path="plan", gate="1")
    return web_document(SourceId("site"), entry, site(text, kind), domain=Domain.DOCUMENTATION).metadata


CARRIERS: dict[str, Callable[[str], Mapping[str, JsonValue]]] = {
    "notebook, raw cell": lambda text: read_converted("ipynb", notebook(text, "raw")).metadata,
    "notebook, prose": lambda text: read_converted("ipynb", notebook(text, "markdown")).metadata,
    "attached": lambda text: read_converted("eml", mail(text, "plan.md", "octet-stream")).metadata,
    "attached notebook": lambda text: (
        read_converted("eml", mail(notebook(text, "raw").decode(), "plan.ipynb", "octet-stream")).metadata
    ),
    "body": lambda text: read_converted("eml", b"Subject: x\n\n" + text.encode()).metadata,
    "site, Markdown": lambda text: crawled(text, "markdown"),
    "site, text": lambda text: crawled(text, "text"),
    "site, HTML": lambda text: crawled(f'{text}<meta name="access" content="board">', "html"),
}


def test_no_format_that_carries_a_header_shows_a_document_to_outsiders() -> None:
    for spelling, carrier in zip(spellings(600, seed=2), cycle(CARRIERS), strict=False):
        if spelling.kind not in {"rst", "html"}:
            read = CARRIERS[carrier](spelling.text)
            assert not is_met(read_rule(read.get("access")), OUTSIDER), f"{carrier}: {spelling.text[:300]!r}"


@pytest.mark.parametrize(("format_", "raw"), [
    ("eml", b"Subject: x\nX-Access: board\n\nThe deal is in May."),
    ("eml", b"Access: board\nAccess: cto\nSubject: x\n\nThe deal is in May."),
    ("eml", b"From: a@b\nX-Access : board\nSubject: x\n\nThe deal is in May."),
    ("eml", b"From: a@b\nbroken line\nX-Access: board\nSubject: x\n\nThe deal is in May."),
    ("eml", b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\naccess: board\n\n--b\n\nThe deal.\n--b--\n"),
    ("eml", b"Subject: x\nContent-Type: text/html\n\n<meta name=access content=board><p>The deal is in May."),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x"}], "metadata": {"access": ["board"]}}'),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x", "metadata": {"access": "board"}}], "metadata": {}}'),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x"}], "metadata": {"page": {"access": "board"}}}'),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x"}], "metadata": {}, "Access": "board"}'),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x", "access": "board"}], "metadata": {}}'),
])  # fmt: skip
def test_headers_of_mail_and_metadata_of_notebooks_are_statements(format_: str, raw: bytes) -> None:
    metadata = read_converted(format_, raw).metadata
    assert not is_met(read_rule(metadata.get("access")), OUTSIDER)


def test_mail_and_notebooks_without_a_statement_are_shown() -> None:
    for text in ("# Plan", "---\ntitle: x\n---\n# Plan"):
        for read in (CARRIERS[carrier] for carrier in CARRIERS if carrier != "site, HTML"):
            assert read_rule(read(text).get("access")) == ()


@pytest.mark.parametrize(
    "field",
    [
        ":access: board",
        ":Access:\n   board",
        ":access:\n\n",
        ":access:\n  - board\n  - cto",
        ":access:\n\n   board",
        ":access:\n\n   - board\n   - cto",
        ".. meta::\n      :access lang=en: board",
        ".. meta::\n\t:name=access: board",
    ],
)
@pytest.mark.parametrize("above", ["", "Title\n=====\n\n", ":author: ann\n", "x\n" * 300])
def test_a_field_of_rst_counts_wherever_it_stands(field: str, above: str) -> None:
    text = f"{above}{field}\n\nText.\n"
    assert not is_shown(text, "rst")
    assert is_shown(text, "rst", BOARD) is (field != ":access:\n\n"), "a field without a value is for nobody"


@pytest.mark.parametrize(("text", "markup", "notice"), [
    ("---\n{access: board\n---\n", "markdown", "broken"),
    ("---\ntitle: x\naccess: board\n\nText", "markdown", "does not close"),
    ("---\nseo:\n  access: board\n---\n", "markdown", "inside another"),
    ("---\n<<: {access: board}\n---\n", "markdown", "inside another"),
    ("---\na: &x board\naccess: *x\n---\n", "markdown", "broken"),
    ("---\ndescription: |\n  access: is a word here\n---\n", "markdown", "a line of the header"),
    ("---\ntitle: x\n access:board\n---\n", "markdown", "a line of the header"),
    ("+++\n[page]\naccess = 'board'\n+++\n", "markdown", "inside another"),
    ('{"access": "board"', "text", "line 1 has"),
    ("# Title\n\n- access: board\n", "markdown", "line 3 has"), ("---\ntitle: x\naccess board\n---\n", "markdown",
    "broken"),
    ("---\naccess:\n---\n", "markdown", ""), ("---\ntitle: x\n---\n---\naccess board\n---\n", "markdown", "broken"),
    ("+++\n" + "a." * 50_000 + "b = 1\naccess = 'board'\n+++\n", "markdown", "broken"),
    ('<meta name="access" content="board', "html", "does not close"),
])  # fmt: skip
def test_what_is_not_understood_is_hidden_from_all_and_says_why(text: str, markup: str, notice: str) -> None:
    metadata = describe(text, markup).metadata
    assert not is_shown(text, markup, BOARD)
    assert notice in str(metadata.get(ACCESS_NOTICE))


@pytest.mark.parametrize(("text", "markup", "values"), [
    ("---\naccess: board\naccess: staff\n---\n", "markdown", ("board", "staff")),
    ("---\naccess: board\nAccess: board\n---\n", "markdown", ("board",)),
    ('{"access": ["board"], "title": "x"}\n\n# T', "markdown", (("board",),)),
    ("---\naccess: board\n---\n<meta name=access content=cto>", "html", ("board", "cto")),
    ("---\n{access: board}\n---\n# T", "markdown", ("board",)),
])  # fmt: skip
def test_all_statements_have_to_be_met(text: str, markup: str, values: tuple[object, ...]) -> None:
    assert access_statements(text, markup)[0] == values
    everybody = frozenset({"board", "staff", "cto"})
    assert is_shown(text, markup, everybody)
    assert is_shown(text, markup, BOARD) is (len(values) == 1)


@pytest.mark.parametrize("text", [
    "---\ntitle: 'Access: how to get it'\n---\n", "---\naccess_level: 3\naccess-control: x\n---\n",
    "```\n---\naccess: board\n---\n```\n", "---\ntitle: a: b: c\n---\n", "Access to the API is for staff.\n",
    "## Access\n\nAsk the team.\n", "---\nkeywords:\n  - access\n  - tokens\n---\n", "* `access:servers` is a scope\n",
    "---\ndescription: >\n  How to\n  access the board\n---\n", "[access]: https://example.org/access\n",
    "1. ~~~yaml\n   access: board\n   ~~~\n", "<pre>\naccess: board\n</pre>\n", "Access - how to get it: ask.\n",
    "Such as `{a: 1, access: 2}` or ``access: 2``.\n",
    "<script>\nvar a = {user: 1, access: 2}\n</script>\n", "access.log: where requests are\n", "The access: none.\n",
    "# 3. Access: a mask\n", "See <b>access:</b> below.\n", "Set <code>access: x</code>.\n", "<code>access: x</code>\n",
    "`<meta name=access content=board>`\n".replace("<", "&lt;"), "```html\n<meta name=access content=board>\n```\n",
])  # fmt: skip
def test_other_uses_of_the_word_hide_nothing(text: str) -> None:
    assert is_shown(text, "markdown") and ACCESS_NOTICE not in describe(text, "markdown").metadata


@pytest.mark.parametrize("text", [
    "```\nx\n\n---\naccess: board\n---\n", "<pre>\naccess: board\n", "```{meta}\n:access: board\n```\n",
    "```\nx\n````\n\naccess: board\n\n```\n",
    "`<pre>`\n\naccess: board\n\n`</pre>`\n", "\\<pre>\n\naccess: board\n\n\\</pre>\n",
    "x\n\n    <pre>\n\naccess: board\n\n    </pre>\n",
    "    ```\n access: board\n    ```\n", "- run\n  ```\n  x\n\naccess: board\n\n```\ny\n```\n",
    "> ```\n> x\n\naccess: board\n\n```\ny\n```\n",
    "<!-- ``` -->\n\naccess: board\n\n<!-- ``` -->\n", "<div>\n```\n</div>\n\naccess: board\n\n```\ny\n```\n",
    "<style-guide>\n\naccess: board\n\n</style-guide>\n", "<style@example.org>\n\naccess: board\n\n</style>\n",
])  # fmt: skip
def test_what_is_no_code_that_ends_exempts_nothing(text: str) -> None:
    assert not is_shown(text, "markdown")


@pytest.mark.parametrize("markup", ["markdown", "html"])
@pytest.mark.parametrize("text", [
    "1. access: board\n", "a) Access: board\n", "**1.** access: board\n",
    "- [x] access: board\n", "- [ ] access: board\n",
    "(iv) access: board\n", "X-Access : board\n", "<p>access: board</p>\n", "<b>Access:</b> board\n",
    "Author: ann<br>Access: board\n", "<div\n class=x>access: board</div>\n", "<td>Plan</td><td>Access: board</td>\n",
    "<span class=a>Access</span>: board\n", '<meta name="dc.access" content="board">\n',
])  # fmt: skip
def test_marks_and_tags_before_the_word_do_not_matter(text: str, markup: str) -> None:
    assert not is_shown(f"# Plan\n\n{text}", markup)


def test_our_own_documentation_is_shown() -> None:
    for file in (Path(__file__).parents[2] / "docs").rglob("*.md"):
        assert is_shown(file.read_text(encoding="utf-8"), "markdown"), file


def test_tildes_below_a_heading_are_no_code() -> None:
    assert not is_shown("Plan\n~~~~\n\n.. access: board\n\nMore\n~~~~\n", "rst")


@pytest.mark.parametrize(("key", "value", "shown_to"), [
    ("access", "board", BOARD), ("Access", "board", BOARD), (" ACCESS ", ["board"], BOARD), ("X-Access", "board",
    BOARD),
    ("acc\u200bess", "board", BOARD), ("access", {"every_of": [["public"], ["staff"]]}, None), ("acl",
    {"access": "x"}, None),
    ("access", None, None), ("accessed", "x", OUTSIDER), ("access", [], None), ("access", 3, None),
])  # fmt: skip
def test_a_key_beside_a_document_counts_however_it_is_spelt(
    key: str, value: object, shown_to: frozenset[str] | None
) -> None:
    rule = read_rule(access_metadata(fields=[("title", "x"), (key, value)])["access"])
    assert [is_met(rule, groups) for groups in (OUTSIDER, BOARD)] == [
        shown_to is OUTSIDER, shown_to in (OUTSIDER, BOARD)
    ]  # fmt: skip


def test_a_header_in_braces_is_no_title() -> None:
    assert describe("---\n{access: board, title: Plan}\n---\n# The plan\n", "markdown").title == "Plan"


def test_a_date_that_is_none_costs_only_itself() -> None:
    facts = describe("---\ndate: 2026-13-40\ntitle: Plan\ntags: [a]\naccess: board\n---\n", "markdown")
    assert (facts.title, facts.updated_at, facts.metadata["tags"], facts.metadata["access"]) == (
        "Plan", None, ("a",), "board",
    )  # fmt: skip
    assert facts.metadata["value_notice"] == "date: '2026-13-40' is not a date"


@pytest.mark.parametrize("markup", ["markdown", "rst", "html"])
@pytest.mark.parametrize(
    "piece",
    [
        "<meta ", "<meta name='", "access ", ":access:\n", "? ", "- ", "{", "\n", " ", "---\n", "a: b\n", "access: ",
        "```\n", "```a\n", "~~~\n", "<pre>", "</pre>", "<script>", "!a ", "&a !b ", "\\x61", "&#97;", "<!--",
        "<!-- -->",
        "/*", "%YAML\n", "// x\n", ":access:\n\n", ":access:\n ", " :access:\n\t\n", "access.", ".a", '"a": {',
        "+++\n", "=",
        "='", "<p>", "<p", "{1.", "<b>",
        "[", "\u200b", "\ufb01", '{"a":', "\r", "access\\\n", ",", '"', "`", "`a", "``",
    ],
)  # fmt: skip
def test_reading_is_linear(piece: str, markup: str) -> None:
    for start in ("", "---\n", "---\na: b\n", "+++\na = ", "{", "access: "):
        assert_subquadratic(partial(_read, markup), partial(_repeated, start, piece), 8_000)


def _read(markup: str, text: str) -> object:
    return access_statements(text, markup)


def _repeated(start: str, piece: str, size: int) -> str:
    return start + piece * size


@pytest.mark.parametrize("line", [
    "- **Access**: by badge, day and night.", "* +access+: Allow reading from and writing to the clipboard.",
    "Access: you get it from the team that runs the door", "`role`s:\n\n| access: | what the role may read |",
    'The answer:\n\n    {\n      "access": {\n        "view": true\n      }\n    }', "Set:\n\n\taccess: read\n",
])  # fmt: skip
def test_a_sentence_after_the_word_hides_only_where_access_is_configured(line: str) -> None:
    text = f"# Office\n\n{line}\n"
    assert is_shown(text, "markdown", ANYONE.groups)
    assert not is_shown(text, "markdown") and not is_shown(text, "markdown", BOARD)
    assert "is not read as a statement" in str(describe(text, "markdown").metadata[ACCESS_NOTICE])


def test_a_literal_block_hides_only_where_access_is_configured() -> None:
    text = 'Plan\n====\n\n.. sourcecode:: http\n\n   {\n     "access": ["board"]\n   }\n'
    assert is_shown(text, "rst", ANYONE.groups)
    assert not is_shown(text, "rst")


@pytest.mark.parametrize("text", [
    "# Plan\n\n- access: board\n", "Access: board, cto\n", "**Access:** Board of Directors\n", "access:\n  - board\n",
    "- **Access**: by badge, day and night.\n- access: board\n", "---\naccess: only for us and the board\n---\n",
    "---\naccess: board\n---\n\n- **Access**: by badge, day and night.\n", "{access: who may see this and who not}\n",
])  # fmt: skip
def test_a_statement_hides_also_where_no_access_is_configured(text: str) -> None:
    assert not is_shown(text, "markdown", ANYONE.groups)
