"""The form of a question: an address holds all of it, and what is wrong is named."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from api.pages.question_form import QuestionForm, read_form
from nornweave.core.errors import QueryError

DECLARED = {
    "code": {"language": "string", "since": "datetime"},
    "research": {"authors": "list", "date_range": "date_range"},
    "documentation": {
        "environment": "keyword", "severity": "integer", "load": "number", "public": "boolean", "reviewed": "date",
    },
}  # fmt: skip
PAIRS = [
    ("after", "payments"), ("q", "what about errors & <b>?"), ("domain", "code"), ("domain", "research"),
    ("code.language", "python"), ("research.authors", "Halvorsen"), ("research.authors", "Boateng"),
    ("research.date_range.start", "2025-01-01"), ("top_k", "20"),
]  # fmt: skip


def form(*pairs: tuple[str, str]) -> QuestionForm:
    return read_form(pairs, DECLARED)


def test_an_address_holds_the_whole_question() -> None:
    read = form(*PAIRS)
    assert read_form(parse_qsl(urlsplit(read.address).query), DECLARED) == read
    assert form().address == "/"


def test_it_asks_what_the_api_is_asked() -> None:
    body = form(*PAIRS).body()
    assert body.query == "payments\nwhat about errors & <b>?"
    assert body.domains == ["code", "research"]
    assert body.filters == {
        "code": {"language": "python"},
        "research": {"authors": ["Halvorsen", "Boateng"], "date_range": {"start": "2025-01-01"}},
    }
    assert (body.top_k, body.explain) == (20, True)


def test_declared_filters_are_asked_by_their_types() -> None:
    body = form(
        ("q", "x"),
        ("documentation.environment", "prod"),
        ("documentation.environment", "a, b"),
        ("documentation.severity.min", "2"),
        ("documentation.severity.max", "4"),
        ("documentation.load", "0.5"),
        ("documentation.public", "true"),
        ("documentation.reviewed.start", "2026-01-01"),
    ).body()
    assert body.filters == {
        "documentation": {
            "environment": ["prod", "a, b"],
            "severity": {"min": 2, "max": 4},
            "load": 0.5,
            "public": True,
            "reviewed": {"start": "2026-01-01"},
        }
    }


def test_a_question_that_leans_on_others_is_asked_with_them() -> None:
    first = form(("q", "what is the webhook timeout"), ("domain", "code"), ("top_k", "20"))
    assert first.following == [("after", "what is the webhook timeout"), ("domain", "code")]
    second = form(*first.following, ("q", "and in staging?"))
    third = form(*second.following, ("q", "how long does it wait?"))
    assert third.body().query == "what is the webhook timeout\nand in staging?\nhow long does it wait?"
    assert [text for text, _ in third.thread] == list(third.after)
    assert read_form(parse_qsl(urlsplit(third.thread[1][1]).query), DECLARED) == second
    assert form(*third.following, ("q", "which currency does a refund use")).body().query.startswith("which")
    long = form(*(("after", f"{place} {'x' * 4000}") for place in range(9)), ("q", "why?"))
    assert len(long.after) == 5 and len(long.body().query) <= 4096


def test_blank_fields_are_left_out() -> None:
    assert form(("q", " x "), ("code.language", " "), ("domain", ""), ("top_k", "")) == form(("q", "x"))


@pytest.mark.parametrize(("pairs", "field"), [
    ([("colour", "red")], "colour"),
    ([("code.colour", "red")], "code.colour"),
    ([("code.language.start", "x")], "code.language.start"),
    ([("research.date_range", "x")], "research.date_range"),
    ([("research.date_range.middle", "x")], "research.date_range.middle"),
    ([("code.language", "go"), ("code.language", "rust")], "code.language"),
    ([("documentation.severity", "high")], "documentation.severity"),
    ([("documentation.severity.start", "3")], "documentation.severity.start"),
    ([("documentation.severity", "3"), ("documentation.severity.min", "1")], "documentation.severity.min"),
    ([("documentation.severity.min", "1"), ("documentation.severity", "3")], "documentation.severity"),
    ([("documentation.public", "yes")], "documentation.public"),
    ([("top_k", "many")], "top_k"),
    ([("top_k", "²")], "top_k"),
])  # fmt: skip
def test_what_cannot_be_is_named(pairs: list[tuple[str, str]], field: str) -> None:
    with pytest.raises(QueryError) as caught:
        form(*pairs)
    assert caught.value.field == field


@pytest.mark.parametrize("pairs", [[("q", "x" * 32_001)], [("q", "x"), ("top_k", "0")], [("q", "a\0b")]])
def test_limits_are_those_of_the_api(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(QueryError):
        form(*pairs).body()


def test_chips_turn_domains_and_values_on_and_off() -> None:
    start = form(("q", "x"))
    asked = start.with_domain_toggled("code").with_domain_toggled("research")
    assert asked.domains == ("code", "research")
    filtered = asked.narrowed("", [("code.language", "go")], several=False)
    other = filtered.narrowed("", [("code.language", "rust")], several=False)
    assert other.filters == (("code.language", "rust"),), "one value at a time"
    assert other.narrowed("", [("code.language", "rust")], several=False) == asked
    both = asked.narrowed("", [("research.authors", "a")], several=True).narrowed(
        "", [("research.authors", "b")], several=True
    )
    assert both.values("research.authors") == ("a", "b")
    assert other.with_domain_toggled("code").filters == (), "a domain goes with its filters"
