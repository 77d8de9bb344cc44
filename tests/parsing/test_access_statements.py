"""Who may see a text, as it says itself: whatever it is spelt like and wherever it stands, outsiders see nothing."""

import json
from collections.abc import Callable, Mapping
from email.message import EmailMessage

import pytest
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.access.rules import ACCESS_NOTICE, is_met, read_rule
from nornweave.core.types import Domain, Entry, JsonValue, SourceId
from nornweave.read.access_statements import access_statements
from nornweave.read.formats.reader import read_converted
from nornweave.read.front_matter import describe
from nornweave.read.web_page import read_web_page, web_document, write_page

OUTSIDER = frozenset({"public", "staff", "everybody"})
BOARD = frozenset({"board"})

KEYS = [
    "access", "Access", "ACCESS", "'access'", '"access"', "access ", "? access\n", "!!str access", "\u00a0access",
    "acc\u200bess", " access", "\u2060access",
]  # fmt: skip
COLONS = [": ", ":", " : ", ":\u00a0", "\uff1a ", ":\t", ":\n  "]
VALUES = [
    "board",
    "[board]",
    "['board']",
    '"board"',
    "\n  - board",
    "!!str board",
    "board  # who",
    "[board",
    "&x board",
]
BEFORE = [
    "",
    "title: x\n",
    "# a comment\n",
    "\n",
    "date: 2026-13-40\n",
    "x: [broken\n",
    "a: b: c\n",
    f"x: {'y' * 70_000}\n",
]
AFTER = ["", "title: x\n", "access: public\n", "\n", "---nearly\n"]
ENDS = ["---\n", "...\n", "---", ""]
STARTS = ["", "\ufeff", "\n\n", "\r", " \n", "\u00a0\n"]

HEADERS = st.tuples(*map(st.sampled_from, (STARTS, BEFORE, KEYS, COLONS, VALUES, AFTER, ENDS)))


def is_shown(text: str, markup: str, groups: frozenset[str] = OUTSIDER) -> bool:
    return is_met(read_rule(describe(text, markup).metadata.get("access")), groups)


@settings(max_examples=1_000)
@given(HEADERS, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["markdown", "rst", "html", "text"]))
def test_no_spelling_of_front_matter_shows_a_document_to_outsiders(
    parts: tuple[str, ...], end: str, markup: str
) -> None:
    start, before, key, colon, value, after, closing = parts
    header = f"---\n{before}{key}{colon}{value}\n{after}{closing}"
    text = (start + header + "\n# Plan\n\nThe deal is in May.\n").replace("\n", end)
    assert not is_shown(text, markup), text[:300]


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


@settings(max_examples=1_000, deadline=None)
@given(HEADERS, st.sampled_from(sorted(CARRIERS)))
def test_no_format_that_carries_a_header_shows_a_document_to_outsiders(parts: tuple[str, ...], carrier: str) -> None:
    start, before, key, colon, value, after, closing = parts
    text = f"{start}---\n{before}{key}{colon}{value}\n{after}{closing}\n# Plan\n\nThe deal is in May.\n"
    assert not is_met(read_rule(CARRIERS[carrier](text).get("access")), OUTSIDER), text[:300]


@pytest.mark.parametrize(("format_", "raw"), [
    ("eml", b"Subject: x\nX-Access: board\n\nThe deal is in May."),
    ("eml", b"Access: board\nAccess: cto\nSubject: x\n\nThe deal is in May."),
    ("eml", b"Subject: x\nContent-Type: text/html\n\n<meta name=access content=board><p>The deal is in May."),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x"}], "metadata": {"access": ["board"]}}'),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x", "metadata": {"access": "board"}}], "metadata": {}}'),
    ("ipynb", b'{"cells": [{"cell_type": "raw", "source": "x"}], "metadata": {"page": {"access": "board"}}}'),
])  # fmt: skip
def test_headers_of_mail_and_metadata_of_notebooks_are_statements(format_: str, raw: bytes) -> None:
    metadata = read_converted(format_, raw).metadata
    assert not is_met(read_rule(metadata.get("access")), OUTSIDER)


def test_mail_and_notebooks_without_a_statement_are_shown() -> None:
    for text in ("# Plan", "---\ntitle: x\n---\n# Plan"):
        for read in (CARRIERS[carrier] for carrier in CARRIERS if carrier != "site, HTML"):
            assert read_rule(read(text).get("access")) == ()


FILLINGS = st.sampled_from(
    [
        "", "<title>x</title>", "<!-- " + "x" * 70_000 + " -->", "<script>'</head><body>'</script>",
        "</head><body><p>x", "<!--",
    ]
)  # fmt: skip
METAS = st.sampled_from(
    [
        '<meta name="access" content="board">', "<META NAME=access CONTENT=board>",
        "<meta content='board' name='Access'/>", '<meta\nname = "access"\ncontent = "board" >',
        '<meta name="&#97;ccess" content="board">', '<meta name="access">', '<meta property="access" content="board">',
        '<meta name="access" content="board', "<meta name=access content=''>",
    ]
)  # fmt: skip


@settings(max_examples=500)
@given(FILLINGS, METAS, FILLINGS)
def test_no_place_of_a_meta_tag_shows_a_page_to_outsiders(before: str, meta: str, after: str) -> None:
    assert not is_shown(f"<!doctype html><html><head>{before}{meta}{after}<p>The deal is in May.", "html")


@pytest.mark.parametrize(
    "field", [":access: board", ":Access:\n   board", ":access:\n\n", ":access:\n  - board\n  - cto"]
)
@pytest.mark.parametrize("above", ["", "Title\n=====\n\n", ":author: ann\n", "x\n" * 300])
def test_a_field_of_rst_counts_wherever_it_stands(field: str, above: str) -> None:
    text = f"{above}{field}\n\nText.\n"
    assert is_shown(text, "rst") is (field == ":access:\n\n"), "a field without a value states nothing"
    assert is_shown(text, "rst", BOARD)


@pytest.mark.parametrize(("text", "markup", "notice"), [
    ("---\n{access: board\n---\n", "markdown", "broken"),
    ("---\ntitle: x\naccess: board\n\nText", "markdown", "does not close"),
    ("---\nseo:\n  access: board\n---\n", "markdown", "inside another"),
    ("---\n<<: {access: board}\n---\n", "markdown", "inside another"),
    ("---\na: &x board\naccess: *x\n---\n", "markdown", "broken"),
    ("---\ndescription: |\n  access: is a word here\n---\n", "markdown", "a line of the header"),
    ("---\ntitle: x\n access:board\n---\n", "markdown", "a line of the header"),
    ("+++\n[page]\naccess = 'board'\n+++\n", "markdown", "table"),
    ('{"access": "board"', "text", "braces"),
    ('<meta name="access" content="board', "html", "does not close"),
])  # fmt: skip
def test_what_is_not_understood_is_hidden_from_all_and_says_why(text: str, markup: str, notice: str) -> None:
    metadata = describe(text, markup).metadata
    assert not is_shown(text, markup, BOARD)
    assert notice in str(metadata[ACCESS_NOTICE])


@pytest.mark.parametrize(("text", "markup", "values"), [
    ("---\naccess: board\naccess: staff\n---\n", "markdown", ("board", "staff")),
    ("---\naccess: board\nAccess: board\n---\n", "markdown", ("board",)),
    ('{"access": ["board"], "title": "x"}\n\n# T', "markdown", (("board",),)),
    ("---\naccess: board\n---\n<meta name=access content=cto>", "html", ("board", "cto")),
    ("---\n{access: board}\n---\n# T", "markdown", ("board",)),
])  # fmt: skip
def test_all_statements_have_to_be_met(text: str, markup: str, values: tuple[object, ...]) -> None:
    assert access_statements(text, markup).values == values
    everybody = frozenset({"board", "staff", "cto"})
    assert is_shown(text, markup, everybody)
    assert is_shown(text, markup, BOARD) is (len(values) == 1)


@pytest.mark.parametrize("text", [
    "# Title\n\naccess: staff\n", "---\n\nA rule, then text.\naccess: none of this is a header\n",
    "---\ntitle: 'Access: how to get it'\n---\n", "---\naccess_level: 3\naccess-control: x\n---\n",
    "```\n---\naccess: board\n---\n```\n", "---\ntitle: a: b: c\n---\n", "---\naccess:\n---\n",
])  # fmt: skip
def test_other_uses_of_the_word_hide_nothing(text: str) -> None:
    assert is_shown(text, "markdown") and ACCESS_NOTICE not in describe(text, "markdown").metadata


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
    ["<meta ", "<meta name='", "access ", ":access:\n", "? ", "- ", "{", "\n", " ", "---\n", "a: b\n", "access: "],
)
@pytest.mark.parametrize("start", ["", "---\n", "---\na: b\n", "+++\n"])
def test_reading_is_linear(start: str, piece: str, markup: str) -> None:
    assert_subquadratic(lambda text: access_statements(text, markup), lambda size: start + piece * size, 16_000)
