"""Query expansion: whole words, original first, at most three, the same every time."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.errors import ConfigError, QueryError
from nornweave.recall.expand import MAX_CHARACTERS, Variant, VariantKind, expand, should_expand, variants
from nornweave.recall.vocabulary import (
    Vocabulary,
    field_vocabulary,
    load_vocabulary,
    parse_vocabulary,
)

ANY_QUERY = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from(
            ["JWT", "rapid", "API", "apis", "json web token", "TOKEN_EXPIRATION", "handlePaymentError", "REST", "rest"]
        )
        | st.sampled_from(
            ["authentication", "error", "connection refused", "é", "🙂", "a.b_c()", "'", '"', "`", "\n", "x" * 500]
        ),
        max_size=12,
    ).map(" ".join),
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # FUSIONRAG, "Expansion Strategies"
        ("JWT authentication", ("JWT authentication", "JSON Web Token authentication", "JWT login")),
        ("SQL error", ("SQL error", "Structured Query Language error", "SQL failure")),
        ("authentication error", ("authentication error", "login failure", "auth issue")),
        ("TOKEN_EXPIRATION", ("TOKEN_EXPIRATION", "token expiration", "token TTL")),
        # the other way round, in any case, over a hyphen, in the plural
        ("expired json web tokens", ("expired json web tokens", "expired JWT")),
        ("role based access control", ("role based access control", "RBAC", "role based authorization")),
        ("list of URLs", ("list of URLs", "list of Uniform Resource Locator")),
        ("jwt or JWT", ("jwt or JWT", "JSON Web Token or JSON Web Token")),
        # identifiers
        ("handlePaymentError", ("handlePaymentError", "handle payment error", "handle payment failure")),
        ("getURLs", ("getURLs", "get urls")),
        ("getHTML", ("getHTML", "get html")),
        ("HTTPServer", ("HTTPServer", "http server")),
        ("Ledger::postEntry()", ("Ledger::postEntry()", "ledger post entry")),
        ("GitHub.fooBar", ("GitHub.fooBar", "GitHub foo bar")),
        # nothing to say
        ("refund window", ("refund window",)),
        ("GitHub", ("GitHub",)),
        ("McDonald", ("McDonald",)),
        ("x86_64", ("x86_64",)),
        ("lncRNAs, siRNA, IPv6", ("lncRNAs, siRNA, IPv6",)),
        ("__init__", ("__init__",)),
        ("日本語", ("日本語",)),
        ("", ("",)),
    ],
)
def test_variants_of_a_query(query: str, expected: tuple[str, ...]) -> None:
    assert expand(query) == expected


@pytest.mark.parametrize("query", ["rapid", "therapist", "prestige", "RAPID_MODE"])
def test_an_acronym_inside_a_word_is_none(query: str) -> None:
    assert not any(variant.kind is VariantKind.ACRONYM for variant in variants(query))


def test_an_acronym_spelled_like_a_word_needs_its_capitals() -> None:
    assert expand("the rest of it") == ("the rest of it",)
    assert "Representational State Transfer" in expand("REST")[1]


@pytest.mark.parametrize(
    "query", ['"JWT"', "`API`", "“SQL”", "'HTTP error'", "«authentication error»", '"handlePayment"']
)
def test_what_is_quoted_is_meant_as_written(query: str) -> None:
    assert expand(query) == (query,)


def test_an_apostrophe_quotes_nothing() -> None:
    assert "JSON Web Token" in expand("the client's JWT isn't valid")[1]


def test_a_category_is_added_when_asked_for() -> None:
    assert variants("authentication", category="code_error")[:2] == (
        Variant("authentication", VariantKind.ORIGINAL),
        Variant("authentication implementation", VariantKind.CATEGORY, "CODE_ERROR: + implementation"),
    )
    assert "JWT package" in expand("JWT", category="DEPENDENCY_ERROR")


@pytest.mark.parametrize(
    ("query", "keyword"),
    [
        ("refund fails with connection refused", "infrastructure"),
        ("no module named stripe", "package"),
        ("flaky test in settlement", "assertion"),
        ("segfault on start", "implementation"),
    ],
)
def test_a_category_that_shows_is_added(query: str, keyword: str) -> None:
    assert f"{query} {keyword}" in expand(query)


def test_what_the_query_already_says_is_not_added() -> None:
    assert expand("refund test", category="TEST_ERROR") == ("refund test", "refund test assertion", "refund test mock")


def test_an_unknown_category_names_the_known_ones() -> None:
    with pytest.raises(QueryError, match=r"category: unknown 'NOPE'; allowed are CODE_ERROR, .*TEST_ERROR"):
        expand("x", category="NOPE")


def test_every_variant_says_what_was_replaced() -> None:
    assert [(v.kind.value, v.detail) for v in variants("JWT authentication error")] == [
        ("original", ""),
        ("acronym", "JWT → JSON Web Token"),
        ("synonym", "authentication → login, error → failure"),
    ]


def test_the_limit_includes_the_original() -> None:
    assert expand("JWT error", limit=1) == ("JWT error",)
    assert len(expand("JWT API error", limit=5)) == 5
    with pytest.raises(ValueError, match="limit: 0"):
        expand("JWT", limit=0)


@given(ANY_QUERY, st.integers(1, 5))
def test_original_first_distinct_and_few(query: str, limit: int) -> None:
    found = expand(query, limit=limit)
    assert found[0] == query
    assert len(found) <= limit
    assert len({" ".join(text.casefold().split()) for text in found}) == len(found)
    assert all(len(text) <= MAX_CHARACTERS for text in found[1:])
    assert found == expand(query, limit=limit)


@given(ANY_QUERY)
def test_fewer_are_a_prefix_of_more(query: str) -> None:
    assert expand(query, limit=2) == expand(query, limit=6)[:2]


@given(st.from_regex(r"[a-z]{1,6}(api|sql|jwt)[a-z]{1,6}", fullmatch=True))
def test_letters_around_an_acronym_make_it_another_word(query: str) -> None:
    assert not any(variant.kind is VariantKind.ACRONYM for variant in variants(f"{query} {query.upper()}"))


@pytest.mark.parametrize(
    "piece", ["JWT ", "a_B ", "'", "(", "A(", "``", "error ", "json web ", "aB", "a.b_c", "é", "🙂"]
)
def test_the_longest_query_takes_milliseconds(piece: str) -> None:
    query = (piece * MAX_CHARACTERS)[:MAX_CHARACTERS]
    expand(query)
    started = time.process_time()
    assert expand(query)[0] == query
    # 10 ms here; a quadratic step takes seconds
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("query", "candidates", "expected"),
    [
        ("refund window", {"dense": 50, "sparse": 3}, True),
        ("refund window", {"dense": 50, "sparse": 19}, True),
        ("refund window", {"dense": 50, "sparse": 20}, False),
        ("refund window", {"dense": 100, "sparse": 0}, True),
        ("refund window", {"dense": 101, "sparse": 0}, False),
        ("refund window", {}, True),
        ("one two three four five six seven eight nine ten", {"sparse": 0}, True),
        ("one two three four five six seven eight nine ten eleven", {"sparse": 0}, False),
    ],
)
def test_auto_follows_the_rules(query: str, candidates: dict[str, int], expected: bool) -> None:
    assert should_expand(query, candidates=candidates) is expected
    assert should_expand(query, candidates=candidates, switch="on") is True
    assert should_expand(query, candidates=candidates, switch="off") is False
    assert should_expand(query, candidates=candidates, latency_sensitive=True) is False


def test_an_unknown_switch_is_an_error() -> None:
    with pytest.raises(QueryError, match="expand: 'sometimes'; allowed are auto, on, off"):
        should_expand("x", candidates={}, switch="sometimes")  # type: ignore[arg-type]


# Vocabulary


def test_a_team_adds_its_own_words(tmp_path: Path) -> None:
    file = tmp_path / "words.yaml"
    file.write_text("acronyms: {API: Agreed Payment Interface, 3DS: 3-D Secure}\nsynonyms: [[payout, settlement]]\n")
    known = field_vocabulary().extended(load_vocabulary(file))
    assert expand("3DS", known) == ("3DS", "3-D Secure")
    assert expand("API", known)[1] == "Agreed Payment Interface"
    assert expand("JWT", known)[1] == "JSON Web Token"
    assert expand("late payouts", known)[1] == "late settlement"
    assert expand("authentication", known)[1] == "login"


def test_a_vocabulary_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    assert expand("JWT authentication error", load_vocabulary(tmp_path / "empty.yaml")) == ("JWT authentication error",)
    with pytest.raises(QueryError, match="none: the vocabulary has no categories"):
        expand("x", Vocabulary(), category="CODE_ERROR")


@pytest.mark.parametrize(
    ("loaded", "message"),
    [
        ([], "words: expected a mapping, found []"),
        ({"acronym": {}}, "words: unknown key 'acronym'; allowed here: acronyms, synonyms, categories"),
        ({"acronyms": ["JWT"]}, "words: acronyms: expected a mapping, found ['JWT']"),
        ({"acronyms": {"JWT": None}}, "words: acronyms.JWT: expected words, found None"),
        ({"acronyms": {True: "x"}}, "words: acronyms: expected words, found True; quote it"),
        ({"acronyms": {"J W": "x"}}, "words: acronyms: expected one word as key, found 'J W'"),
        ({"synonyms": [["alone"]]}, "words: synonyms[0]: expected at least two words, found ['alone']"),
        ({"synonyms": [["a", "..."]]}, "words: synonyms[0][1]: expected words, found '...'"),
        ({"synonyms": "a"}, "words: synonyms: expected a list of lists of words, found 'a'"),
        ({"categories": {"X": {"cue": []}}}, "words: categories.X: unknown key 'cue'; allowed here: keywords, cues"),
        ({"categories": {"X": {}}}, "words: categories.X.keywords: expected at least one word"),
        ({"names": {}}, "words: names: expected a list of words, found {}"),
    ],
)
def test_a_wrong_vocabulary_says_where(loaded: object, message: str) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(message)):
        parse_vocabulary(loaded, "words")


@pytest.mark.parametrize("content", ["a: [", "\ta: 1", b"\xff\xfe\x00"])
def test_an_unreadable_vocabulary_is_a_configuration_error(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "words.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=r"words\.yaml: "):
        load_vocabulary(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_vocabulary(tmp_path / "missing.yaml")


def test_the_words_of_the_field_hold_together() -> None:
    known = field_vocabulary()
    assert set(known.categories) == {"CODE_ERROR", "INFRA_ERROR", "CONFIG_ERROR", "DEPENDENCY_ERROR", "TEST_ERROR"}
    source = {"JWT", "API", "SQL", "HTTP", "SSL", "TLS", "URL", "URI", "JSON", "XML", "REST", "CRUD", "ORM", "TTL"}
    assert source <= set(known.acronyms)
    for short, long in known.acronyms.items():
        assert expand(short, known)[1] == long
        assert short in expand(long, known)
