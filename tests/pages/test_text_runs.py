"""Text as a page prints it: what matches is marked, what nobody sees is named, nothing is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.pages.text_runs import HIT, UNSEEN, TextRun, highlighted, hits, query_terms_of, runs_of


def marked(text: str, question: str) -> list[str]:
    return [run.text for run in highlighted(text, query_terms_of(question)) if run.kind == HIT]


@pytest.mark.parametrize(("text", "question", "words"), [
    ("The payment module returns errors.", "what does it return on an error", ["returns", "errors"]),
    ("raise PaymentError(e)", "payment errors", ["Payment", "Error"]),
    ("raise PaymentError(e)", "PaymentError", ["PaymentError"]),
    ("max_retries = 3", "retry", ["retries"]),
    ("since v2.1, not v2.10", "v2.1", ["v2.1"]),
    ("to be or not to be", "to be", ["to", "be", "to", "be"]),
    ("the cat", "the dog", []),
    ("", "dog", []),
])  # fmt: skip
def test_words_match_as_the_analyzer_stems_them(text: str, question: str, words: list[str]) -> None:
    assert marked(text, question) == words


def test_what_nobody_sees_is_named() -> None:
    assert runs_of("a\u202egnp.exe\x00") == (
        TextRun("a"),
        TextRun("U+202E", UNSEEN),
        TextRun("gnp.exe"),
        TextRun("U+0000", UNSEEN),
    )
    assert runs_of("👩\u200d💻\tx\n") == (TextRun("👩\u200d💻\tx\n"),), "joiners, tabs and line ends stay"


def test_an_unseen_character_does_not_hide_in_a_word_that_matches() -> None:
    assert highlighted("pay\u200bment", query_terms_of("pay")) == (
        TextRun("pay", HIT),
        TextRun("U+200B", UNSEEN),
        TextRun("ment"),
    )


@given(st.text(), st.text())
def test_runs_hold_the_whole_text_in_order(text: str, question: str) -> None:
    terms = query_terms_of(question)
    runs = highlighted(text, terms)
    seen = "".join(re.escape(run.text) if run.kind != UNSEEN else "." for run in runs)
    assert re.fullmatch(seen, text, re.DOTALL)
    marks = hits(text, terms)
    assert all(before.end <= after.start for before, after in zip(marks, marks[1:], strict=False))
