"""Sentences → claims."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.claims.passage import Passage
from nornweave.claims.prose import prose_claims
from nornweave.claims.sentences import mask, sentences
from nornweave.types import Claim

SAID = datetime(2026, 1, 20, 9, 0, tzinfo=UTC)


def page(text: str, *, section: str = "Widgets", start: int = 0) -> list[Claim]:
    return list(
        prose_claims(Passage(text=text, format="markdown", path="docs/widgets.md", section=section, start=start))
    )


def chat(text: str, context: str = "") -> list[Claim]:
    passage = Passage(
        text=text, domain="conversations", format="slack", path="c/1.json", context=context, timestamp=SAID
    )
    return list(prose_claims(passage))


def only(claims: list[Claim]) -> Claim:
    assert len(claims) == 1, claims
    return claims[0]


@pytest.mark.parametrize(
    ("text", "kind", "attribute", "value", "unit"),
    [
        ("The upload timeout is 30 seconds.", "number", "timeout", "30", "s"),
        ("An export is retried at most 3 times.", "number", "retries", "3", None),
        ("Session tokens are kept for 24 hours.", "number", "lifetime", "86400", "s"),
        ("A parcel can be returned within the 30-day return window.", "number", "window", "2592000", "s"),
        ("The live rate limit is 100 requests per minute.", "number", "rate_limit", "5/3", "request/s"),
        ("An album takes up to 20 large photos.", "number", "limit", "20", "large photo"),
        ("The upload must not exceed 10 MB.", "number", "limit", "10000000", "byte"),
        ("The exporter listens on port 8083.", "number", "port", "8083", None),
        ("The importer uses 8 workers.", "number", "concurrency", "8", None),
        ("The payroll cut-off is 18:00 UTC.", "number", "cut_off", "64800", "s"),
        ("The importer returns HTTP 422 for malformed rows.", "http_status", "http_status", "422", None),
        ("The current API version is v2.0.", "version", "version", "2.0", None),
        ("The worker requires Python 3.11 or later.", "version", "min_version", "3.11", None),
        ("Importer 2.1.0 was deployed on Wednesday, 21 January 2026.", "date", "released", "2026-01-21", None),
        ("The importer log level defaults to `DEBUG`.", "default", "log_level", "debug", None),
        ("The default export timeout is 5 seconds.", "number", "timeout", "5", "s"),
        ("Without the field an invoice is made in EUR.", "default", "currency", "eur", None),
        ("Thumbnails are enabled by default.", "switch", "enabled", "on", None),
        ("Geo tagging is not enabled in production.", "switch", "enabled", "off", None),
        ("The gateway supports OAuth for platforms.", "support", "support", "supported", None),
        ("The gateway does not support SAML.", "support", "support", "unsupported", None),
        ("OAuth was removed in v3.", "support", "support", "removed", None),
        ("The importer is owned by the Platform team.", "owner", "owner", "platform", None),
        ("Data engineering owns the importer service.", "owner", "owner", "data engineering", None),
    ],
)
def test_statements(text: str, kind: str, attribute: str, value: str, unit: str | None) -> None:
    claim = only(page(text))
    assert (claim.kind, claim.attribute, claim.value, claim.unit) == (kind, attribute, value, unit)
    assert claim.mood == "stated"
    assert claim.statement == text


@pytest.mark.parametrize(
    "text",
    [
        "There are 3 items in the list.",
        "One of two reasons is this.",
        "See chapter 4, page 12, and figure 3 [7].",
        "Copyright 2024 by the authors.",
        "Open http://localhost:8080/v1.2/status in a browser.",
        "The list has 20 entries and 40 pages.",
        "If the timeout is 30 seconds, the request fails.",
        "It is not 30 seconds but more.",
        "The weather was on for weeks.",
        "This cost us a support case.",
        "Maximum length of 64.",
        "The build took 30 minutes and 12 people.",
        "1. First step\n2. Second step",
        "```\ntimeout is 30 seconds\n```",
        "    TIMEOUT = 30\n",
    ],
)
def test_what_nobody_could_check_is_no_claim(text: str) -> None:
    assert [claim for claim in page(text) if claim.mood == "stated"] == []


def test_each_status_has_the_topics_of_its_clause_and_of_the_subject() -> None:
    text = "The importer returns HTTP 400 for malformed rows and HTTP 500 for downstream failures."
    first, second = page(text, section="Importer > Error handling")
    assert (first.value, second.value) == ("400", "500")
    assert first.entity == second.entity == "importer"
    assert "malform" in first.topics and "downstream" not in first.topics
    assert "downstream" in second.topics and "malform" not in second.topics
    assert "handl" in first.topics


def test_a_clause_without_a_verb_takes_the_attribute_of_the_one_before() -> None:
    first, second = page("Access tokens live for one hour, refresh tokens for 90 days.", section="Token lifetime")
    assert (first.attribute, first.value, second.attribute, second.value) == ("lifetime", "3600", "lifetime", "7776000")
    assert "refresh" in second.topics and "refresh" not in first.topics


def test_names_with_a_value_inside_sentences() -> None:
    claim = only(chat("dana: merged, `EXPORT_TIMEOUT_SECONDS = 10` since then."))
    assert (claim.attribute, claim.value, claim.unit, claim.entity) == ("timeout", "10", "s", "export")


def test_weekdays_are_counted_from_the_message_but_not_from_a_page() -> None:
    assert only(chat("erin: importer 2.1.0 shipped Monday.")).value == "2026-01-19"
    assert only(page("Importer 2.1.0 shipped on Monday.")).value == "monday"
    assert only(page("Importer 2.1.0 shipped on Monday.")).entity == "importer 2.1.0"


def test_a_short_answer_takes_topics_from_what_was_said_before() -> None:
    alone = only(chat("lena: The window is 14 days from the sale."))
    after = only(chat("lena: The window is 14 days from the sale.", context="[context] bo: Can tickets be refunded?"))
    assert "refund" not in alone.topics
    assert "refund" in after.topics and "bo" not in after.topics


def test_headings_inside_a_passage_name_what_stands_below() -> None:
    text = "# Uploads\n\nThe timeout of a slow one is 5 s.\n\n## Exports\n\nThe timeout of a slow dump is 9 s.\n"
    first, second = page(text, section="")
    assert "upload" in first.topics and "export" not in first.topics
    assert "export" in second.topics and "upload" not in second.topics


@pytest.mark.parametrize(
    "text", ["The delay is between 3 and 5 seconds.", "The delay is 3-5 seconds.", "The delay is 3 to 5 s."]
)
def test_ranges_keep_both_ends(text: str) -> None:
    claim = only(page(f"The retry {text[4:]}"))
    assert (claim.attribute, claim.value, claim.unit, claim.mood) == ("delay", "3-5", "s", "range")


def test_markup_is_seen_through_and_spans_point_into_the_document() -> None:
    text = "<p>Intro.</p>\n<p>The <b>upload timeout</b> is <code>30</code> seconds.</p>"
    passage = Passage(text=text, format="html", path="a.html", section="Uploads", start=100)
    claim = only(list(prose_claims(passage)))
    assert claim.value == "30"
    assert text[claim.span.start - 100 : claim.span.end - 100].startswith("The <b>upload")


def test_sentences_keep_their_places() -> None:
    text = "Intro, e.g. this one. See [the page](http://x.example/a.b) now.\n\n- One item.\n- Another: 5 s.\n"
    found = list(sentences(text))
    assert [one.text for one in found] == ["Intro, e.g. this one.", "See the page now.", "One item.", "Another: 5 s."]
    assert text[found[3].start : found[3].end] == "Another: 5 s."


SNIPPETS = st.sampled_from(
    ["The timeout is 5 seconds. ", "a", "1", " ", "\n", "# ", "- ", "|", "`", "```", "<p>", "</p>", "<", "**", "[",
     "](", "é", "HTTP 500", "default is ", "at most 3 times", "owned by ", "X supports Y. ", ":", "::", "..", "=="]
)  # fmt: skip


@given(st.lists(SNIPPETS, max_size=40).map("".join) | st.text(max_size=300), st.booleans(), st.integers(0, 1000))
def test_any_text_gives_valid_claims(text: str, conversation: bool, start: int) -> None:
    domain = "conversations" if conversation else "documentation"
    passage = Passage(text=text, domain=domain, path="docs/a.md", section="A > B", start=start, timestamp=SAID)
    claims = list(prose_claims(passage))
    assert claims == list(prose_claims(passage))
    assert len(mask(text)) == len(text)
    for claim in claims:
        assert start <= claim.span.start < claim.span.end <= start + len(text)
        assert claim.value and claim.attribute and len(claim.statement) <= 240
        assert list(claim.topics) == sorted(set(claim.topics)) and len(claim.topics) <= 12


def test_the_span_holds_the_value_as_written() -> None:
    text = "# Limits\n\nThe upload timeout is 30\nseconds. Keys are kept for 24 hours. It answers `422` for bad rows.\n"
    written = {"timeout": "30", "lifetime": "24", "http_status": "422"}
    claims = page(text)
    assert {claim.attribute for claim in claims} == set(written)
    for claim in claims:
        assert written[claim.attribute] in text[claim.span.start : claim.span.end]


@pytest.mark.parametrize(
    "unit", ["1 ", "a, ", "HTTP 500, ", "`", "<a ", "[", "on ", "supports a ", "10 ms ", "\n- x", "A. ", "| a |\n"]
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    sentence = ("The timeout is 5 seconds and " + unit * (540 // len(unit))).replace("\n", " ") + ". B"
    for text in ((unit * 100_000)[:100_000], (sentence * 200)[:100_000]):
        begun = time.process_time()
        list(prose_claims(Passage(text=text, path="docs/a.md", section="A > B")))
        assert time.process_time() - begun < 3
