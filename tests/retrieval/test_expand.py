"""Query expansion: whole words, few variants, the same every time."""

import pytest
import yaml
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.search import expand
from nornweave.ask.search.expand import MAX_CHARACTERS, acronym_variants, should_expand, stated_category, variants
from nornweave.core.types import JsonValue

ANY_QUERY = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from(["JWT", "rapid", "API", "apis", "json web token", "handlePaymentError", "REST", "rest"])
        | st.sampled_from(
            ["authentication", "error", "connection refused", "é", "🙂", "a.b_c()", "'", '"', "`", "\n", "x" * 500]
        ),
        max_size=12,
    ).map(" ".join),
)


@pytest.mark.parametrize(("query", "expected"), [
    ("JWT authentication", ("JSON Web Token authentication", "JWT login")),
    ("SQL error", ("Structured Query Language error", "SQL failure")),
    ("authentication error", ("login failure", "auth issue")),
    # the other way round, in any case, over a hyphen, in the plural
    ("expired json web tokens", ("expired JWT",)),
    ("role based access control", ("RBAC", "role based authorization")),
    ("list of URLs", ("list of Uniform Resource Locator",)),
    ("jwt or JWT", ("JSON Web Token or JSON Web Token",)),
    # identifiers
    ("handlePaymentError", ("handle payment error",)),
    ("TOKEN_EXPIRATION", ("token expiration",)),
    ("getHTML twice", ("get html twice",)),
    # nothing to say
    ("refund window", ()),
    ("x86_64", ()),
    ("日本語", ()),
    ("", ()),
])  # fmt: skip
def test_variants_of_a_query(query: str, expected: tuple[str, ...]) -> None:
    assert variants(query)[: len(expected) or 1] == expected


@pytest.mark.parametrize(("filters", "category"), [
    ({"error_category": "INFRA_ERROR"}, "INFRA_ERROR"), ({"error_category": ["infra_error"]}, "INFRA_ERROR"),
    ({"category": "CODE_ERROR"}, "CODE_ERROR"), ({"category": "runbook", "environment": "prod"}, None),
    ({"error_category": ["INFRA_ERROR", "CODE_ERROR"]}, None), ({"error_category": 3}, None), ({}, None),
])  # fmt: skip
def test_the_error_category_that_is_filtered_by(filters: dict[str, JsonValue], category: str | None) -> None:
    assert stated_category(filters) == category


def test_keywords_of_a_stated_category_come_right_after_the_acronyms() -> None:
    assert variants("JWT authentication", category="CONFIG_ERROR") == (
        "JSON Web Token authentication",
        "JWT authentication configuration",
    )


@pytest.mark.parametrize("query", ["rapid", "therapist", "prestige", "RAPID_MODE", "the rest of it"])
def test_an_acronym_inside_a_word_or_spelled_like_one_is_none(query: str) -> None:
    assert acronym_variants(query, bool) == ()


def test_an_acronym_spelled_like_a_word_needs_its_capitals() -> None:
    assert acronym_variants("REST", bool) == ("Representational State Transfer",)


@pytest.mark.parametrize("query", ['"JWT"', "`API`", "“SQL”", "'HTTP headers'", "«authentication»"])
def test_what_is_quoted_is_meant_as_written(query: str) -> None:
    assert variants(query) == ()


def test_an_apostrophe_quotes_nothing() -> None:
    assert "JSON Web Token" in variants("the client's JWT isn't valid")[0]


@given(ANY_QUERY, st.integers(1, 5))
def test_variants_are_distinct_few_and_the_same_every_time(query: str, limit: int) -> None:
    found = variants(query, limit=limit)
    assert len(found) <= limit - 1
    assert len({" ".join(text.casefold().split()) for text in (query, *found)}) == len(found) + 1
    assert all(len(text) <= MAX_CHARACTERS for text in found)
    assert found == variants(query, limit=limit) == variants(query, limit=limit + 3)[: len(found)]


@given(st.from_regex(r"[a-z]{1,6}(api|sql|jwt)[a-z]{1,6}", fullmatch=True))
def test_letters_around_an_acronym_make_it_another_word(query: str) -> None:
    assert acronym_variants(f"{query} {query.upper()}", bool) == ()


@pytest.mark.parametrize("piece", ["JWT ", "a_B ", "'", "(", "``", "error ", "json web ", "aB", "é", "🙂"])
def test_the_longest_query_is_read_in_linear_time(piece: str) -> None:
    assert_subquadratic(variants, lambda size: (piece * size)[:size], MAX_CHARACTERS)


@pytest.mark.parametrize(("query", "candidates", "expected"), [
    ("refund window", {"dense": 50, "sparse": 3}, True),
    ("refund window", {"dense": 50, "sparse": 19}, True),
    ("refund window", {"dense": 50, "sparse": 20}, False),
    ("refund window", {"dense": 100, "sparse": 0}, True),
    ("refund window", {"dense": 101, "sparse": 0}, False),
    ("refund window", {}, True),
    ("one two three four five six seven eight nine ten", {"sparse": 0}, True),
    ("one two three four five six seven eight nine ten eleven", {"sparse": 0}, False),
])  # fmt: skip
def test_auto_follows_the_rules(query: str, candidates: dict[str, int], expected: bool) -> None:
    assert should_expand(query, candidates=candidates) is expected
    assert should_expand(query, candidates=candidates, switch="on") is True
    assert should_expand(query, candidates=candidates, switch="off") is False


def test_every_acronym_of_the_field_is_found_both_ways() -> None:
    with open(expand.__file__.replace("expand.py", "vocabulary.yaml"), encoding="utf-8") as file:
        acronyms = yaml.safe_load(file)["acronyms"]
    assert {"JWT", "API", "SQL", "HTTP", "SSL", "TLS", "URL", "JSON", "REST", "CRUD", "ORM", "TTL"} <= set(acronyms)
    for short, long in acronyms.items():
        assert acronym_variants(short, bool)[0] == long
        assert short in acronym_variants(long, bool)
