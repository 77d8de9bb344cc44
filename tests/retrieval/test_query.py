"""How a query is read, and what is refused."""

import pytest
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.search.pasted import SEARCHED_CHARACTERS, places_in, searched_text, tails
from nornweave.ask.search.query import MAX_PHRASES, check_query, read_query
from nornweave.core.errors import QueryError
from nornweave.core.text import analyzer
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS


def test_a_question_in_words() -> None:
    query = read_query("How do I configure the rate limits?")
    assert query.terms == ("configur", "do", "how", "i", "limit", "rate", "the")
    # "how do", "do i" are function words only; "the rate" and "configure the" are no such pairs.
    assert set(query.pairs) == {("i", "configur"), ("configur", "the"), ("the", "rate"), ("rate", "limit")}
    assert query.phrases == ()
    assert "name:rate limits" in query.keys


PHRASES = [
    ('where is "connection reset by peer" logged', ("connection reset by peer",)),
    ("the `retry_limit` of “two  words”", ("retry_limit", "two  words")), ('" padded "', ("padded",)), ('""', ()),
    ('"  "', ()), ('an "unfinished quote', ()), ('"over\nlines"', ()), (f'"{"x" * 513}"', ()), ('"=>"', ("=>",)),
    ("it's the client's", ()),
    ("which release dropped Python 3.10?", ("Python 3.10",)), ("does Kiln run on Windows 11", ("Windows 11",)),
    ("is Node.js v18 too old", ("Node.js v18",)), ("what changed in Version 2.1 of May 2", ()), ("Is 3.1 out", ()),
    ("what does ADR 4 say", ()), ("is PHP 8.1 enough", ("PHP 8.1",)),
    ("which release dropped Python 3.10?" + " It failed." * 20, ()), ("the IPv4 address 10.0.0.1", ()),
]  # fmt: skip


def test_a_pasted_text_full_of_quotes_has_a_few_phrases() -> None:
    assert read_query('"a ' * 10_666).phrases == ("a",)
    assert len(read_query(" ".join(f'"a{number}"' for number in range(3_000))).phrases) == MAX_PHRASES


@pytest.mark.parametrize(("text", "phrases"), PHRASES)
def test_phrases(text: str, phrases: tuple[str, ...]) -> None:
    assert read_query(text).phrases == phrases


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_is_read_the_same_way_twice(text: str) -> None:
    query = read_query(text)
    assert query == read_query(text)
    assert list(query.terms) == sorted(set(query.terms)) == analyzer.query_terms(text)
    assert {word for pair in query.pairs for word in pair} <= set(query.terms)
    assert all(phrase and phrase in text for phrase in query.phrases)


@pytest.mark.parametrize(("text", "problem"), [
    ("", "blank"),
    (" \t\n\u00a0\u2003", "blank"),
    ("x" * (MAX_QUERY_CHARACTERS + 1), r"32,001 characters; allowed are 1 to 32,000"),
    ("a\0b", "NUL"),
    ("a\ud800b", "half a surrogate pair"),
])  # fmt: skip
def test_what_cannot_be_searched_is_refused(text: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem) as raised:
        check_query(text, 10)
    assert raised.value.field == "query"


@pytest.mark.parametrize("top_k", [-1, 0, 101, 10**9])
def test_top_k_has_bounds(top_k: int) -> None:
    with pytest.raises(QueryError, match=f"{top_k}; allowed are 1 to 100") as raised:
        check_query("x", top_k)
    assert raised.value.field == "top_k"


@pytest.mark.parametrize("text", ["x", "x" * MAX_QUERY_CHARACTERS, "🙂", "\U0010ffff", "支付", "x\n"])
@pytest.mark.parametrize("top_k", [1, 100])
def test_the_rest_is_searched(text: str, top_k: int) -> None:
    check_query(text, top_k)


def test_of_a_long_text_both_ends_are_searched_and_of_a_traceback_the_error() -> None:
    for text in ("short", "x" * SEARCHED_CHARACTERS):
        assert searched_text(text) == (text, "")
    text, said = searched_text("why? " + "x" * 9_000 + " end")
    assert text.startswith("why?") and text.endswith(" end") and len(text) <= SEARCHED_CHARACTERS
    assert "of its 9,009 characters 4,096 were searched, both its ends" in said
    frames = "".join(f'  File "/app/f{number}.py", line {number}, in f\n    call({number})\n' for number in range(200))
    trace = f"ERROR worker\nTraceback (most recent call last):\n{frames}ValueError: no more\n"
    text, said = searched_text(trace)
    assert text.splitlines()[:3] == ["ValueError: no more", 'File "/app/f199.py", line 199, in f', "    call(199)"]
    assert "its error and innermost frames" in said
    assert places_in(text)[0] == ("/app/f199.py", 199)
    assert places_in(searched_text(trace.replace("\n", " "))[0])[0] == ("/app/f199.py", 199)


def test_the_ends_of_a_path_are_tried_and_no_bare_word() -> None:
    assert tails("/srv/app/db/table.py") == ["srv/app/db/table.py", "app/db/table.py", "db/table.py", "table.py"]
    assert tails("client/server") == ["client/server"]


@pytest.mark.parametrize("text", ["localhost:8080", "10:30:21", "v1.2.3:4", "a ratio of 3:4", "1.5:2", "at 12:30"])
def test_what_is_no_place_of_a_file(text: str) -> None:
    assert places_in(text) == ()


@pytest.mark.parametrize("text", ["a/" * 2048, "/a.b" * 1024, "\\a.a" * 1024, 'File "a", line 1 ' * 240])
def test_places_take_linear_time(text: str) -> None:
    assert_subquadratic(lambda part: (places_in(part), searched_text(part)), lambda size: text[:size], len(text))


@pytest.mark.parametrize("text", [
    '"' * 4096, "`a" * 2048, "a:" + " " * 4094, "(a+)+$" * 600, "[a 1" * 1024, "a: " * 1365, "HTTPE" * 819,
    "A" * 4096,
], ids=lambda text: repr(text[:5]))  # fmt: skip
def test_reading_takes_linear_time(text: str) -> None:
    assert_subquadratic(read_query, lambda size: text[:size], len(text))
