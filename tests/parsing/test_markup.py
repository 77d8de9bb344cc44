"""What documents say about themselves, in each form."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.types import JsonValue, Metadata
from nornweave.read.front_matter import FORMATS, describe

PAGES = Path(__file__).parents[1] / "golden" / "sections"


def test_formats_follow_the_suffix() -> None:
    assert {suffix: FORMATS[suffix] for suffix in (".md", ".rst", ".htm", "", ".text")} == {
        ".md": "markdown",
        ".rst": "rst",
        ".htm": "html",
        "": "text",
        ".text": "text",
    }


def without_fields(metadata: Metadata) -> dict[str, JsonValue]:
    """Return what is read out of the fields at the head, without the fields themselves."""
    assert metadata["front_matter"]
    return {key: value for key, value in metadata.items() if key != "front_matter"}


def test_front_matter_of_a_paper() -> None:
    facts = describe((PAGES / "paper.md").read_text(encoding="utf-8"), "markdown")
    assert facts.title == "Retrieval without tears"
    assert facts.updated_at == datetime(2017, 6, 12, tzinfo=UTC)
    assert without_fields(facts.metadata) == {
        "authors": ("Vaswani, A.", "Shazeer, N."),
        "tags": ("retrieval", "ranking"),
        "publication_date": "2017-06-12",
        "doi": "10.48550/arXiv.1706.03762",
        "venue": "NeurIPS 2017",
        "citation_count": 120000,
        "source_type": "arxiv_paper",
    }


def test_docinfo_of_rst() -> None:
    facts = describe((PAGES / "runbook.rst").read_text(encoding="utf-8"), "rst")
    assert (facts.title, facts.updated_at) == ("Payments runbook", datetime(2026, 2, 3, tzinfo=UTC))
    assert facts.metadata["authors"] == ("Ada Lovelace",)


def test_head_of_html() -> None:
    facts = describe((PAGES / "guide.html").read_text(encoding="utf-8"), "html")
    assert (facts.title, facts.url) == ("Refunds & disputes", "https://example.org/refunds")
    assert facts.updated_at == datetime(2025, 11, 5, 10, tzinfo=UTC)
    assert without_fields(facts.metadata) == {
        "authors": ("Ada Lovelace",),
        "tags": ("refunds", "disputes"),
        "publication_date": "2025-11-05",
    }


@pytest.mark.parametrize(("text", "form", "fields"), [
    (
        "---\nEnvironment: prod\nlast-seen: 2026-01-02\ndeploy: {Region: eu, teams: [a, b]}\n'': x\nnone:\n---\n",
        "markdown",
        {"environment": "prod", "last_seen": "2026-01-02", "deploy": {"region": "eu", "teams": ["a", "b"]}},
    ),
    ("+++\nrate = inf\nbig = 99999999999999999999\n+++\n", "markdown", {"rate": "inf", "big": "9" * 20}),
    (
        f"---\ndeep: {'[' * 9}{']' * 9}\nlong: {'x' * 3000}\n---\n",
        "markdown",
        {"deep": [[[[None]]]], "long": "x" * 1024},
    ),
    ("A\n=\n\n:Severity: 3\n", "rst", {"severity": "3"}),
    ("<head><meta name='DC.env' content='prod'></head>", "html", {"dc_env": "prod"}),
])  # fmt: skip
def test_every_field_is_stated_as_json_within_bounds(text: str, form: str, fields: dict[str, Any]) -> None:
    assert describe(text, form).metadata["front_matter"] == fields


def test_citation_tags_of_html() -> None:
    page = """<head><meta name=citation_title content="On <i>x</i>"><meta name=citation_author content="A, B.">
    <meta name=citation_author content="C, D."><meta name=citation_publication_date content="2020/05/06">
    <meta name=citation_journal_title content="J"><meta name=citation_doi content="10.1/x"></head><body>"""
    facts = describe(page, "html")
    assert facts.title == "On <i>x</i>"
    assert without_fields(facts.metadata) == {
        "authors": ("A, B.", "C, D."),
        "publication_date": "2020-05-06",
        "doi": "10.1/x",
        "venue": "J",
    }


@pytest.mark.parametrize(("text", "form", "title"), [
    ("intro\n\n```\n# no\n```\n\n## Use *it* <a name='x'></a> \\_now\\_ ##\n", "markdown", "Use it _now_"),
    ("Über uns\n========\n", "markdown", "Über uns"),
    ("two\nlines\n---\n", "markdown", "two lines"),
    ("<!--\nLicensed\n---\nto you\n-->\n# Pools\n", "markdown", "Pools"),
    ("text\n\n----\nName\n----\n", "rst", "Name"),
    ("``attr`` and :mod:`~a.b`\n=======================\n", "rst", "attr and ~a.b"),
    ("<body><h1>One <b>two</b></h1>", "html", "One two"),
    ("# no markup here\n", "text", None),
    ("---\ntitle: [broken\n---\n# After\n", "markdown", "After"),
    ('+++\ntitle = "Toml"\n+++\n# After\n', "markdown", "Toml"),
    ("## 0.7.0\n\n- New\n\n## 0.6.9\n\n- Old\n", "markdown", None),
    ("## One\n\n### Part\n\n## Two\n", "markdown", None),
    ("# 2.1.0\n\n- New\n\n# 2.0.9\n\n- Old\n", "markdown", None), ("# Install\n\n# Use\n", "markdown", "Install"),
    ("Version 2.1\n-----------\n\nNew.\n\nVersion 2.0\n-----------\n\nOld.\n", "rst", None),
    ("## One\n\n### Part\n", "markdown", "One"), ("### Note\n\n# Guide\n\n# More\n", "markdown", "Note"),
])  # fmt: skip
def test_titles(text: str, form: str, title: str | None) -> None:
    assert describe(text, form).title == title


@pytest.mark.parametrize(("written", "read"), [
    ("2026-01-20T10:00:00+02:00", datetime(2026, 1, 20, 8, tzinfo=UTC)),
    ("January 20, 2026", datetime(2026, 1, 20, tzinfo=UTC)),
    ("Tue, 20 Jan 2026 10:00:00 GMT", datetime(2026, 1, 20, 10, tzinfo=UTC)),
    ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
    ("some day", None),
    ("2026-99-99", None),
])  # fmt: skip
def test_dates_are_utc(written: str, read: datetime | None) -> None:
    assert describe(f"---\nupdated: {written}\n---\nx", "markdown").updated_at == read


@pytest.mark.parametrize("head", [
    "a: &a [x, x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)),
    "a: &a {x: 1}\n" + "".join(f"b{i}: &b{i} {{<<: [{', '.join(['*a'] * 50)}]}}\n" for i in range(50)),
    "a: " + "[" * 50_000,
    "a: !!python/object/apply:os.system ['true']",
    "a: " + "1" * 5_000,
    "\tbroken: [yaml",
])  # fmt: skip
def test_hostile_front_matter_is_only_text(head: str) -> None:
    started = time.thread_time()
    said = describe(f"---\n{head}\n---\n# Title\n", "markdown")
    assert (said.title, said.updated_at, said.url, said.metadata) == ("Title", None, None, {})
    assert time.thread_time() - started < 5


def test_a_date_that_is_none_stays_text() -> None:
    assert describe("---\na: 2026-13-45\n---\n", "markdown").metadata["front_matter"] == {"a": "2026-13-45"}


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(path.name for path in PAGES.iterdir() if path.suffix != ".json")),
    st.sampled_from(sorted(set(FORMATS.values()))),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 40), st.text(max_size=5)), max_size=5),
)
def test_damaged_documents_are_described_without_errors(
    name: str, form: str, edits: list[tuple[int, int, str]]
) -> None:
    text = (PAGES / name).read_text(encoding="utf-8")
    for at, length, new in edits:
        text = text[:at] + new + text[at + length :]
    facts = describe(text, form)
    assert facts.title is None or facts.title.strip() == facts.title != ""
    assert facts.updated_at is None or facts.updated_at.tzinfo is UTC
