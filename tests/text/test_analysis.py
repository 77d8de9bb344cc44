"""Terms: identifiers whole and in parts, prose stemmed, versions whole."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.text.analyzer import MAX_TERM_LENGTH, analyze, occurrences, query_terms


@pytest.mark.parametrize(("text", "terms"), [
    ("handlePaymentError", {"handlepaymenterror", "handl", "payment", "error"}),
    ("HTTPServer", {"httpserver", "http", "server"}), ("max_retries", {"max_retries", "max", "retri"}),
    ("running runs", {"run"}), ("SDKs URLs getURLs IDs", {"sdk", "url", "geturls", "get", "id"}),
    ("APIService", {"apiservice", "api", "servic"}), ("API v2.1 at 0.85", {"api", "v2.1", "at", "0.85"}),
    ("ERR_1042", {"err_1042", "err", "1042"}), ("Größe", {"größe"}), ("日本語", {"日本語"}), ("... --- !!!", set()),
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
    assert Counter(term for term, _, _ in occurrences(text)) == analyze(text)
