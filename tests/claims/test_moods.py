"""How a sentence means what it says."""

from __future__ import annotations

import pytest

from nornweave.claims.moods import mood_of
from nornweave.claims.passage import Passage

PAGE = Passage(text="", path="docs/api/limits.md", section="API > Limits")
CHAT = Passage(text="", domain="conversations", format="slack", path="engineering/2026-01-14.json")


@pytest.mark.parametrize(
    "sentence",
    [
        "The webhook timeout is 10 seconds.",
        "Keys are kept for 24 hours.",
        "A captured payment can be refunded within 30 days.",
        "The request will time out after 30 seconds.",
        "The payload is used by the worker and returned within 5 seconds.",
        "The limit may not exceed 10 MB.",
    ],
)
def test_facts_about_now_are_stated(sentence: str) -> None:
    assert mood_of(sentence, PAGE) == "stated"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Before version 1.9 every failure was answered with HTTP 500.", "history"),
        ("The timeout used to be 60 seconds.", "history"),
        ("The rate limit was 300 requests per minute until this release.", "history"),
        ("Previously the limit is set to 5.", "history"),
        ("In the incident the timeout had been 60 seconds.", "history"),
        ("Older versions return 500.", "history"),
        ("If we kept keys for 72 hours that would cover weekends.", "planned"),
        ("Somebody proposed ninety seconds.", "planned"),
        ("Should the timeout be 30 seconds?", "planned"),
        ("We plan to raise it to 20 MB.", "planned"),
        ("Maybe 30 seconds is enough.", "planned"),
        ("For example, a timeout of 5 seconds.", "example"),
        ("Suppose the limit is 100 requests per minute.", "example"),
        ("We simulated a client with 3 retries.", "example"),
        ("About 30 seconds is typical.", "range"),
        ("The job usually takes 5 minutes.", "range"),
        ("The law says 14 days.", "other"),
        ("Other providers keep keys for 7 days.", "other"),
        ("RFC 9110 says 404.", "other"),
        ("In PostgreSQL the default is 100 connections.", "other"),
        ("Stripe keeps keys for 24 hours.", "other"),
        ("Set your read timeout to 35 seconds.", "other"),
        ("The page still says 30 seconds.", "other"),
    ],
)
def test_other_moods(sentence: str, expected: str) -> None:
    assert mood_of(sentence, PAGE) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The webhook timeout becomes 10 seconds.", "stated"),
        ("Decided: the webhook timeout becomes 10 seconds with the release of next week.", "stated"),
        ("I think it is 10 seconds.", "planned"),
        ("The timeout will be 10 seconds.", "planned"),
        ("600 requests per minute for your key on Saturday.", "other"),
        ("This time it was 503.", "history"),
    ],
)
def test_conversations_are_less_sure(sentence: str, expected: str) -> None:
    assert mood_of(sentence, CHAT) == expected


def test_places_say_how_their_sentences_are_meant() -> None:
    sentence = "The timeout is 60 seconds."
    assert mood_of(sentence, Passage(text="", path="docs/CHANGELOG.md")) == "history"
    assert mood_of(sentence, PAGE, heading="2.0.3 (2025-11-06)") == "history"
    assert mood_of(sentence, PAGE, heading="Alternatives considered") == "history"
    assert mood_of(sentence, PAGE, heading="Examples") == "example"
    assert mood_of(sentence, PAGE, heading="Proposal") == "planned"
    assert mood_of(sentence, Passage(text="", domain="research", path="paper.pdf")) == "other"


def test_a_release_keeps_its_day_but_not_its_facts() -> None:
    notes = Passage(text="", path="docs/release-notes-2.1.txt")
    assert mood_of("Payments 2.1.0 was deployed on 21 January 2026.", notes, event=True, day=True) == "stated"
    assert mood_of("OAuth is deprecated.", notes, event=True) == "history"
    assert mood_of("OAuth was removed in v3.", PAGE, event=True) == "stated"


def test_what_others_say_in_another_clause_is_theirs() -> None:
    sentence = "The flag is off in production, while the documentation says that it is on."
    assert mood_of(sentence, CHAT, clause="The flag is off in production") == "stated"
    assert mood_of(sentence, CHAT, clause="the documentation says that it is on") == "other"


def test_a_product_is_not_foreign_where_the_page_is_about_it() -> None:
    page = Passage(text="", path="docs/postgresql.md", section="PostgreSQL > Connections")
    assert mood_of("PostgreSQL keeps connections for 10 minutes.", page) == "stated"
    assert mood_of("PostgreSQL keeps connections for 10 minutes.", PAGE) == "other"
