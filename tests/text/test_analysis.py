"""Terms: identifiers whole and in parts, prose stemmed, versions whole."""

from collections import Counter

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.text.analyzer import MAX_TERM_LENGTH, analyze, occurrences, query_terms


@pytest.mark.parametrize(("text", "terms"), [
    ("handlePaymentError", {"handlepaymenterror", "handl", "payment", "error"}),
    ("HTTPServer", {"httpserver", "http", "server"}), ("max_retries", {"max_retries", "max", "retri"}),
    ("running runs", {"run"}), ("SDKs URLs getURLs IDs", {"sdk", "url", "geturls", "get", "id"}),
    ("APIService", {"apiservice", "api", "servic"}), ("API v2.1 at 0.85", {"api", "v2.1", "at", "0.85"}),
    ("ERR_1042", {"err_1042", "err", "1042"}), ("Größe", {"größe", "gross", "groess"}),
    ("日本語", {"日本語"}), ("... --- !!!", set()),
])  # fmt: skip
def test_terms(text: str, terms: set[str]) -> None:
    assert set(analyze(text)) == terms


def test_occurrences_are_counted() -> None:
    assert analyze("pay paying Pay")["pay"] == 3


@given(st.text())
def test_terms_are_lower_case_bounded_and_the_same_for_a_query(text: str) -> None:
    terms = analyze(text)
    assert sorted(terms) == query_terms(text)
    assert all(term == term.lower() and 0 < len(term) <= MAX_TERM_LENGTH for term in terms)


def test_terms_know_where_they_stand() -> None:
    text = "handlePaymentError, v2.1"
    found = [(term, text[start:end]) for term, start, end in occurrences(text)]
    assert found == [
        ("handlepaymenterror", "handlePaymentError"),
        ("handl", "handle"),
        ("payment", "Payment"),
        ("error", "Error"),
        ("v2.1", "v2.1"),
    ]


@given(st.text())
def test_where_terms_stand_and_how_often_are_one_analysis(text: str) -> None:
    standing = Counter(term for term, _, _ in occurrences(text))
    counted = analyze(text)
    assert standing <= counted
    assert all(term.isascii() and not text.isascii() for term in counted - standing), "folded forms stand nowhere"


@pytest.mark.parametrize(("word", "typed"), [
    ("Müller", "Muller"), ("Müller", "Mueller"), ("Übergabe", "Uebergabe"), ("Straße", "Strasse"), ("Café", "Cafe"),
    ("Łódź", "Lodz"), ("Ærø", "Aero"), ("garçons", "garcon"),
])  # fmt: skip
def test_a_word_with_accents_is_found_as_people_type_it(word: str, typed: str) -> None:
    assert query_terms(typed)[0] in analyze(word)
    assert analyze(word)[query_terms(word)[-1]], "and as it is written"


def test_other_scripts_and_plain_words_have_no_other_form() -> None:
    for word in ("支付", "платёж", "plain", "한국어"):
        assert len(analyze(word)) == 1, word


def test_stems_are_those_of_the_indexes_that_are_there() -> None:
    """Snowball 3.1 changed these; where a newer one changes more, ``analyzer.VERSION`` has to change with it."""
    changed = "interval intervals internal internally international interfering skis"
    assert analyze(changed) == Counter(interval=2, internal=2, internat=1, interfer=1, ski=1)
    assert Stemmer.version().startswith("3.1.")
