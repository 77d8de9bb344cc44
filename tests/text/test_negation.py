"""What a question leaves out, and what it negates."""

import pytest

from nornweave.core.text.negation import affirms, left_out, negated_terms, not_left_out


@pytest.mark.parametrize(("text", "asked", "words"), [
    ("timeout -webhook", "timeout", ("webhook",)),
    ("timeout -webhook -database", "timeout", ("webhook", "database")),
    ('timeout -"card network"', "timeout", ("card network",)),
    ("timeout NOT webhook", "timeout", ("webhook",)),
    ("timeout AND NOT webhook", "timeout", ("webhook",)),
    ("-webhook", "-webhook", ()),  # nothing would be left
    ("docker run -d -p 80", "docker run -d -p 80", ()),
    ("a well-known e-mail - here", "a well-known e-mail - here", ()),
    ("FILE NOT FOUND", "FILE NOT FOUND", ()),
    ("panic:\n -race", "panic:\n -race", ()),  # pasted
])  # fmt: skip
def test_words_that_a_question_leaves_out(text: str, asked: str, words: tuple[str, ...]) -> None:
    assert left_out(text) == (asked, words)


@pytest.mark.parametrize(("text", "name"), [
    ("queues without Redis", "Redis"), ("queues without a broker", ""), ("all of them except for MySQL", "MySQL"),
    ("limits other than uploads", "uploads"), ("timeout but not of webhooks", "webhooks"), ("which ones are not", ""),
])  # fmt: skip
def test_what_words_exclude_is_named(text: str, name: str) -> None:
    assert not_left_out(text) == name


@pytest.mark.parametrize(("text", "terms"), [
    ("which endpoints do not require authentication", {"requir", "authent"}),
    ("which browsers aren't supported?", {"support"}),
    ("limits other than uploads", {"upload"}),
    ("endpoints without a token, by name", {"token"}),
    ("What interest is paid on money that has not been paid out yet?", set()),  # of something else
    ("In Slack, why were keys not kept?", set()),
    ("why does it not start", set()),  # a symptom
    ("what happens if the file is not found", set()),
    ("The enzyme does not bind to the receptor in cells of the liver", set()),  # a claim
])  # fmt: skip
def test_what_a_question_negates(text: str, terms: set[str]) -> None:
    assert negated_terms(text) == terms


@pytest.mark.parametrize(("passage", "says"), [
    ("Orders require a token.", True), ("Orders do not require a token.", False), ("Orders are unrequired.", False),
    ("Orders cost nothing.", False), ("Orders require a token.\n\nHealth is there without a token.", False),
])  # fmt: skip
def test_a_passage_affirms_what_it_says_and_does_not_negate(passage: str, says: bool) -> None:
    assert affirms(passage, frozenset({"requir", "token"})) == says
