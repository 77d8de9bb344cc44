"""Sections: golden pages, the rules one by one, what must hold for any text, and how long hostile ones take."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from words import Words

from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import (
    NO_METADATA,
    Chunk,
    ContentHash,
    Document,
    DocumentId,
    Domain,
    JsonValue,
    SourceId,
    Span,
)
from nornweave.read.blocks.block import Block
from nornweave.read.blocks.html import read_html
from nornweave.read.blocks.markdown import read_markdown
from nornweave.read.blocks.reader import LINED as FORMATS_WITH_LINES
from nornweave.read.blocks.reader import read_blocks, without_template
from nornweave.read.blocks.rst import read_rst
from nornweave.read.chunking.sections import chunk_sections
from nornweave.read.front_matter import describe

PAGES = Path(__file__).parents[1] / "golden" / "sections"
FORMATS = {".md": "markdown", ".rst": "rst", ".html": "html", ".txt": "text"}
NAMES = sorted(path.name for path in PAGES.iterdir() if path.suffix in FORMATS)


def page(name: str) -> str:
    return (PAGES / name).read_bytes().decode("utf-8")


def document(
    text: str,
    form: str = "markdown",
    *,
    domain: Domain = Domain.DOCUMENTATION,
    title: str | None = None,
    metadata: Mapping[str, JsonValue] = NO_METADATA,
    path: str = "docs/page",
) -> Document:
    return Document(
        id=DocumentId("d"),
        domain=domain,
        source_id=SourceId("s"),
        path=path,
        text=text,
        format=form,
        content_hash=ContentHash("h"),
        title=title,
        metadata=metadata,
    )


def chunks(text: str, form: str = "markdown", *, h1_limit: int = 1024, limit: int = 512, **more: object) -> list[Chunk]:
    made = document(text, form, **more)  # type: ignore[arg-type]
    return list(chunk_sections(made, TokenIndex(text, Words()), h1_limit=h1_limit, limit=limit))


def paths(found: list[Chunk]) -> list[str | None]:
    return [chunk.section for chunk in found]


HEADED_PAGES = {
    "---\ntitle: runWithOwner\n---\n\nRuns a function.\n\n## Import\n\n```ts\nimport a\n```\n\n## Type\n\nA type.\n": [
        ("runWithOwner", None),
        ("Type", "Type"),
    ],
    "---\ntitle: Security\n---\n\n## XSS\n\nEscape it.\n": [("XSS", "XSS")],
    "---\ntitle: Page\n---\n\nDraft.\n\n# The page\n\nIt says.\n": [("The page", "The page")],
    "Runs a function.\n\n## Import\n\nimport a\n": [("Import", "Import")],
}


@pytest.mark.parametrize("text", HEADED_PAGES)
def test_what_a_page_says_first_is_called_as_its_head_calls_the_page(text: str) -> None:
    title = describe(text, "markdown").title
    assert [(chunk.title, chunk.section) for chunk in chunks(text, title=title)] == HEADED_PAGES[text]


@pytest.mark.parametrize("name", NAMES)
def test_golden_pages(name: str) -> None:
    text, form = page(name), FORMATS[Path(name).suffix]
    facts = describe(text, form)
    domain = Domain.RESEARCH if name == "paper.md" else Domain.DOCUMENTATION
    found = chunks(
        text,
        form,
        h1_limit=80,
        limit=60,
        domain=domain,
        title=facts.title,
        metadata=facts.metadata,
        path=f"docs/{name}",
    )
    made = [
        {
            "span": [chunk.span.start, chunk.span.end],
            "content": chunk.content.splitlines(),
            "token_count": chunk.token_count,
            "context": chunk.context,
            "title": chunk.title,
            "section": chunk.section,
            "metadata": dict(chunk.metadata),
        }
        for chunk in found
    ]
    golden = PAGES / f"{name}.json"
    if os.environ.get("NORNWEAVE_UPDATE_GOLDEN"):
        golden.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(json.dumps(made)) == json.loads(golden.read_text(encoding="utf-8"))


def test_headings_make_the_path() -> None:
    text = "# A\na\n## B\nb\n#### C\nc\n## B\nb2\n# D\nd\n"
    found = chunks(text)
    assert paths(found) == ["A", "A > B", "A > B > C", "A > B", "D"]
    assert [chunk.metadata["heading_level"] for chunk in found] == [1, 2, 4, 2, 1]
    assert found[2].metadata["heading_path"] == ("A", "B", "C")


def sections(text: str, form: str = "markdown", path: str = "CHANGELOG.md") -> list[str | None]:
    return [chunk.section for chunk in chunks(text, form, path=path)]


def test_a_release_stands_below_no_other_release() -> None:
    standard_version = (
        "# C\n\n## [2.0.0](u) (2020-02-01)\n\n### Features\n\n* a\n\n"
        "### [1.1.1](u) (2020-01-01)\n\n### Bug Fixes\n\n* b\n"
        "\n### Docs\n\n* c\n\n## Unreleased\n\n### 1.1.0rc1\n\n### Bug Fixes\n\n* d\n\n#### Deep\n\ne\n"
    )
    assert sections(standard_version) == [
        "C > 2.0.0 (2020-02-01) > Features",
        "C > 1.1.1 (2020-01-01) > Bug Fixes",
        "C > 1.1.1 (2020-01-01) > Docs",
        "C > Unreleased",
        "C > 1.1.0rc1 > Bug Fixes",
        "C > 1.1.0rc1 > Bug Fixes > Deep",
    ]
    other_lines = "Changes\n=======\n\n2.0\n~~~\n\nNew\n---\n\na\n\n1.9\n---\n\nFixes\n-----\n\nb\n"
    assert sections(other_lines, "rst", "docs/HISTORY.rst") == ["Changes > 2.0 > New", "Changes > 1.9 > Fixes"]
    same_level = "# C\n\n## Version 2\n\n## New\n\na\n\n## Odd\n\nb\n\n## Version 1\n\n## New\n\nc\n\n## License\n\nd\n"
    assert sections(same_level) == ["C > Version 2 > New", "C > Version 2 > Odd", "C > Version 1 > New", "C > License"]
    days = "# C\n\n## 2024-01-02\n\n### a@1.2\n\na\n\n### b@3.0\n\nb\n\n## 2024-01-01\n\nc\n"
    assert sections(days) == ["C > 2024-01-02 > a@1.2", "C > 2024-01-02 > b@3.0", "C > 2024-01-01"]
    pages = "<h1>News</h1><h2>2.0</h2><h3>New</h3><p>a</p><h3>1.9</h3><h3>New</h3><p>b</p>"
    assert sections(pages, "html", "news.html") == ["News > 2.0 > New", "News > 1.9 > New"]
    assert sections("# G\n\n## 1.2 A\n\n### 1.1 B\n\ntext\n", path="guide.md") == ["G > 1.2 A > 1.1 B"]


def test_a_bare_heading_joins_what_it_holds() -> None:
    found = chunks("# A\n\n## B\n\n### C\n\ntext\n\n## Empty\n\n## D\n\nmore\n")
    assert [(chunk.section, chunk.content.splitlines()[0]) for chunk in found] == [
        ("A > B > C", "# A"),
        ("A > Empty", "## Empty"),
        ("A > D", "## D"),
    ]
    empty = "".join(f"## {number}.0.0 of the lantern, with nothing to say\n\n" for number in range(20, 0, -1))
    assert sections(f"# C\n\n{empty}## 0.9\n\ntext\n\n## 0.8\n") == ["C", "C > 0.9", "C > 0.8"]


def test_what_only_looks_like_a_heading() -> None:
    text = "# A\n```sh\n# no\n```\n~~~\n## no\n~~~\n    # no\n\n- x\n  ```\n  # no\n  ```\n\n#no\n\n\\# no\n"
    assert paths(chunks(text)) == ["A"]


def test_headings_are_read_as_a_reader_sees_them() -> None:
    text = "Two *words*\n===========\nx\n\n## `code` [link](u) a\\_b<a name='n'></a> ##\ny\n\n"
    text += "<h3 align=center>Html</h3>\n\nz\n"
    assert paths(chunks(text)) == ["Two words", "Two words > code link a_b", "Two words > code link a_b > Html"]


def test_the_title_of_the_document_leads_the_context_unless_it_is_the_heading() -> None:
    text = "# A\na\n## B\nb\n"
    assert [chunk.context for chunk in chunks(text, title="T")] == ["T > A", "T > A > B"]
    assert [chunk.context for chunk in chunks(text, title="a")] == ["A", "A > B"]
    assert chunks("just text", path="docs/x.md")[0].context == ""


def test_limits_by_level() -> None:
    words = "word " * 90 + ".\n\n"
    text = f"# A\n\n{words * 2}## B\n\n{words * 2}"
    found = chunks(text, h1_limit=200, limit=100)
    assert [(chunk.section, chunk.token_count) for chunk in found] == [("A", 184), ("A > B", 94), ("A > B", 91)]


def test_a_large_section_is_cut_between_paragraphs_and_code_stays_with_the_one_above() -> None:
    code = "```\n" + "line\n" * 30 + "```\n"
    text = "## A\n\n" + "one " * 40 + "\n\n" + "two " * 30 + "\n\n" + code + "\n" + "three " * 10 + "\n"
    first, second = chunks(text, limit=80)
    assert (first.content.count("one"), first.content.count("two")) == (40, 0)
    assert (second.content.count("two"), second.content.count("line"), second.content.count("three")) == (30, 30, 10)


def test_code_and_tables_exceed_the_limit_before_they_are_cut() -> None:
    code = "```\n" + "x = 1\n" * 60 + "```\n"
    whole = chunks(f"## A\n\n{code}", limit=60)
    assert [(chunk.content.count("x = 1"), chunk.metadata.get("split_block")) for chunk in whole] == [(60, None)]
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 100
    cut = chunks(f"## A\n\n{table}", limit=60)
    assert len(cut) > 5
    assert all(chunk.metadata["split_block"] and chunk.metadata["has_tables"] for chunk in cut)
    assert all(line.endswith("|") for chunk in cut for line in chunk.content.splitlines() if line.startswith("|"))


def test_abstract_and_references_of_research() -> None:
    text = (
        "# T\n\n## Abstract\n\n" + "a " * 50 + "\n\n### Aim\n\nb\n\n## Methods\n\n" + "c " * 150 + "\n\n### Detail\n\n"
    )
    text += "d " * 150 + "\n\n## References\n\n" + "[1] e. " * 30 + "\n\n### Web\n\nf\n"
    found = chunks(
        text, h1_limit=200, limit=100, domain=Domain.RESEARCH, metadata={"doi": "10.1/x", "other": 1}, title="T"
    )
    assert [chunk.metadata["section_name"] for chunk in found] == [
        "Abstract",
        "Methods",
        "Detail",
        "Detail",
        "References",
    ]
    assert {chunk.metadata["doi"] for chunk in found} == {"10.1/x"}
    assert "### Web" in found[-1].content
    assert all("other" not in chunk.metadata for chunk in found)


def test_html_spans_start_at_tags_and_tile_the_file() -> None:
    text = page("guide.html")
    found = chunks(text, "html", h1_limit=40, limit=40)
    assert all(text[chunk.span.start] == "<" for chunk in found)
    assert [text[chunk.span.start :][:4] for chunk in found if chunk.content.startswith("Requesting")] == ["<h2>"]
    assert found[0].span.start == 0
    assert found[-1].span.end == len(text.rstrip())
    assert not any(text[a.span.end : b.span.start].strip() for a, b in zip(found, found[1:], strict=False))


@pytest.mark.parametrize("text", [
    "<nav>all there is</nav>", "<aside><p>all there is", "<p>x<nav>all there is",
    "<div>" * 100_000 + "all there is", "<title>all there is", "<table><tr><td>all<td>there<tr>is", "all there is",
    "<h1></h1><p>all there is<", "<![CDATA[all there is]]>", "<select><option>all there is",
])  # fmt: skip
def test_broken_html_loses_nothing(text: str) -> None:
    words = re.findall(r"\w+", " ".join(chunk.content for chunk in chunks(text, "html")))
    assert [word for word in words if word != "x"] == ["all", "there", "is"]


def test_html_token_counts_are_those_of_the_content() -> None:
    for chunk in chunks(page("guide.html"), "html", limit=40):
        assert chunk.token_count == len(Words().token_starts(chunk.content))


def test_rst_titles_are_those_of_docutils() -> None:
    text = page("runbook.rst")
    defaults = get_default_settings(Parser)
    defaults.report_level = 5
    parsed = new_document("", defaults)
    Parser().parse(text, parsed)
    known = [len(section.section_hierarchy()) for section in parsed.findall(nodes.section)]
    assert [block.level for block in read_rst(text).blocks if block.kind == "heading"] == known == [1, 2, 3, 3, 2]


def test_rst_includes_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("leaked")
    text = f"T\n=\n\n.. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n:ref:`x <y>` |z|_ `broken\n"
    found = chunks(text, "rst")
    assert [chunk.content for chunk in found] == [text.strip()]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".md")])
def test_headings_are_those_of_commonmark(name: str) -> None:
    text = re.sub(r"\A---.*?\n---\n", "", page(name), flags=re.S)
    levels = [int(token.tag[1:]) for token in MarkdownIt().parse(text) if token.type == "heading_open"]
    read = [
        block.level
        for block in read_markdown(text).blocks
        if block.kind == "heading" and "<h" not in text[block.span.start : block.span.start + 3]
    ]
    assert read == levels != []


FENCE = "```\nfenced line\n\n# fenced\n```\n"
LINES = st.sampled_from(
    [
        *(
            "# H", "## H2 ##", "### Größe", "Title\n=====", "Sub\n---", "text. More text!", "金額はセント。", "", "   ",
            "\t",
        ),
        *(
            "- item", "  - nested", "1. one", "> quote", ">> deeper", "    code", "| a | b |\n|---|---|\n| 1 | 2 |",
            "***",
        ),
        *(
            "<div>", "</div>", "<p>x</p>", "<pre>", "</pre>", "<h2>t</h2>", "<table><tr><td>a</td></tr>", "<!--", "-->",
            "<li>",
        ),
        *(
            ".. note::", "   body", "para::", "======", "~~~~", ".. _t:", "== ==\na  b\n== ==", "[r]: x",
            "&amp; &eacute;", "\x0c",
        ),
        *("long " * 60, "x" * 90, "---", "- ```\n  a\n  ```", "\u2028", "😀 é"),
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(LINES, max_size=25).map("\n".join),
    st.tuples(st.sampled_from(NAMES).map(page), st.integers(0, 2_000), st.integers(0, 200), st.text(max_size=8)).map(
        lambda edit: edit[0][: edit[1]] + edit[3] + edit[0][edit[1] + edit[2] :]
    ),
    st.text(max_size=80),
).flatmap(lambda text: st.sampled_from([text, text.replace("\n", "\r\n"), text.replace("\n", "\r")]))


@settings(max_examples=200, deadline=None)
@given(
    TEXTS, st.sampled_from(["markdown", "rst", "text"]), st.sampled_from([20, 60, 512]), st.sampled_from(list(Domain))
)
def test_chunks_tile_the_text_within_the_limit(text: str, form: str, limit: int, domain: Domain) -> None:
    found = chunks(text, form, h1_limit=2 * limit, limit=limit, domain=domain)
    read = read_blocks(text, form)
    end = 0
    for chunk in found:
        assert end <= chunk.span.start < chunk.span.end
        assert not read.text[end : chunk.span.start].strip()
        assert chunk.content == read.shown(chunk.span)
        assert "".join(chunk.content.split()) == "".join(read.text[chunk.span.start : chunk.span.end].split())
        assert chunk.token_count <= 2 * limit or chunk.metadata["has_code_blocks"] or chunk.metadata["has_tables"]
        assert chunk.token_count <= 10 * limit
        end = chunk.span.end
    assert not read.text[end:].strip()


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([20, 60]))
def test_html_chunks_tile_the_file(text: str, limit: int) -> None:
    found = chunks(text, "html", h1_limit=2 * limit, limit=limit)
    readable = read_html(without_template(text)).text
    end = 0
    for chunk in found:
        assert end <= chunk.span.start < chunk.span.end
        assert not text[end : chunk.span.start].strip()
        end = chunk.span.end
    assert not found or not text[end:].strip()
    assert "".join("".join(chunk.content for chunk in found).split()) == "".join(readable.split())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["text. " * 5, "## H", "- item", FENCE, "> q", ""]), max_size=20),
    st.sampled_from(["\n", "\r\n"]),
)
def test_fenced_code_is_never_cut(parts: list[str], line_end: str) -> None:
    text = "\n\n".join(parts).replace("\n", line_end)
    found = chunks(text, h1_limit=15, limit=15)
    assert sum(chunk.content.count(FENCE.strip().replace("\n", line_end)) for chunk in found) == parts.count(FENCE)


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_blocks_hold_all_that_is_shown_and_hold_each_other(text: str) -> None:
    for form in sorted(FORMATS_WITH_LINES):
        read = read_blocks(text, form)
        assert len(read.text) == len(text)
        ends = [0, *(block.span.end for block in read.blocks)]
        starts = [*(block.span.start for block in read.blocks), len(text)]
        assert not any(read.text[end:start].strip() for end, start in zip(ends, starts, strict=True))
        assert_held(read.blocks, Span(0, len(text)))


def assert_held(blocks: Sequence[Block], whole: Span) -> None:
    end = whole.start
    for block in blocks:
        assert end <= block.span.start < block.span.end <= whole.end
        assert_held(block.parts, block.span)
        end = block.span.end


def test_a_chunk_of_html_names_the_anchor_that_it_stands_below() -> None:
    long = " ".join(f"word{number}" for number in range(300))
    text = f"""<p>Before.</p><h1 id="top">Top</h1><h2 id="one">One</h2><p>First.</p>
        <h2>Two</h2><p>Second.</p><h2 id="api">API</h2><dl><dt id="api.f">f(x)</dt><dd>{long}</dd>
        <dt id="api.g">g(x)</dt><dd>{long}</dd></dl>"""
    found = [(chunk.title, chunk.metadata.get("anchor")) for chunk in chunks(text, "html")]
    assert found[:2] == [("One", "one"), ("Two", "one")]
    assert {(title, anchor) for title, anchor in found[2:]} == {("API", "api"), ("g(x)", "api.g")}


HOSTILE = {
    "brackets": "[" * 200_000,
    "stars": "*" * 200_000,
    "quotes": "> " * 100_000,
    "lists": "".join("  " * depth + "- x\n" for depth in range(300)),
    "bars": "|" * 200_000,
    "rows": "|a|b\n" * 40_000,
    "less-than": "<" * 200_000,
    "unclosed tags": "<a " * 60_000,
    "unclosed comments": "ab <!-- x\n" * 20_000,
    "unclosed sections": "<![CDATA[" * 20_000,
    "nested lists": "<ul><li>x" * 20_000,
    "titles": "a\n=\n" * 40_000,
    "styles": "".join(f"a{i}\n{'=-~^+*#:'[i % 8] * 5}\n" for i in range(1_900)),
    "one word": "a" * 200_000,
    "blank lines": "\n" * 200_000 + "x",
    "fences": "```\n" * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["markdown", "rst", "html", "text"])
def test_hostile_text_takes_linear_time(name: str, form: str) -> None:
    text = HOSTILE[name]

    def cut(text: str) -> None:
        assert chunks(text, form) or form == "html"

    assert_subquadratic(cut, lambda size: text[-size:], 40_000)


@pytest.mark.parametrize(("form", "text"), [
    ("asciidoc", "= FAQ\n\nWhy is it slow?::\n    It starts a process.\n\n"
                 "How do I stop it?::\n    With a flag.\n+\n----\n:stop\n----\n\nIs it free?:: Yes.\n"),
    ("rst", "FAQ\n===\n\nWhy is it slow?\n    It starts a process.\n\n"
            "How do I stop it?\n    With a flag::\n\n        :stop\n\nIs it free?\n    Yes.\n"),
    ("markdown", "# FAQ\n\n**Q: Why is it slow?**\nA: It starts a process.\n\n"
                 "**How do I stop it?**\n\nWith a flag:\n\n    :stop\n\nQ. Is it free?\nA. Yes.\n"),
])  # fmt: skip
def test_a_question_is_the_title_of_its_answer(form: str, text: str) -> None:
    found = chunks(text, form)
    assert paths(found) == ["FAQ > Why is it slow?", "FAQ > How do I stop it?", "FAQ > Is it free?"]
    assert ["process" in chunk.content for chunk in found] == [True, False, False]
    assert ":stop" in found[1].content and "Yes." in found[2].content


def test_one_question_in_bold_and_terms_are_no_titles() -> None:
    for form, text in {
        "markdown": "# Guide\n\nRun it.\n\n**Does it fail?**\n\nThen read the log.\n",
        "asciidoc": "= Guide\n\nport::\n    Where it listens.\nhost::\n    Where it runs.\n",
    }.items():
        assert set(paths(chunks(text, form))) == {"Guide"}
