"""Words of prose and code, keys of names, and spans without blank space, each by a table."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.text.checked_values import plain_json
from nornweave.core.text.index_fields import released, words_key
from nornweave.core.text.spans import strip
from nornweave.core.text.terminal import print_json
from nornweave.core.text.words import CONTENT, FUNCTION, NAME, TURN, VALUE, find_words, name, word
from nornweave.core.types import Span


@pytest.mark.parametrize(("written", "words"), [
    ("it doesn't end", ["it", "does", "not", "end"]),
    ("it doesn’t end", ["it", "does", "not", "end"]),
    ("the keeper’s book", ["the", "keeper’s", "book"]),
    ("v2.1 at -5 is <= 80%", ["v2.1", "at", "-5", "is", "<=", "80", "%"]),
])  # fmt: skip
def test_words_are_found_as_they_are_written(written: str, words: list[str]) -> None:
    assert find_words(written) == words


@pytest.mark.parametrize(("found", "form", "sort"), [
    ("gates", "gate", CONTENT), ("colour", word("color")[0], CONTENT), ("organise", word("organize")[0], CONTENT),
    ("the", "the", FUNCTION), ("ca", "ca", FUNCTION),
    ("1,500", "1500", VALUE), ("v2", "2", VALUE), ("v2.1", "2.1", VALUE), ("0644", "0644", VALUE),
    ("max_size", "max_size", NAME), ("HttpClient", "httpclient", NAME), ("URL", word("url")[0], CONTENT),
])  # fmt: skip
def test_a_word_of_prose_has_a_form_and_a_sort(found: str, form: str, sort: int) -> None:
    assert word(found) == (form, sort)


@pytest.mark.parametrize("negation", ["not", "never", "no", "without"])
def test_a_word_that_reverses_the_sense_is_a_turn(negation: str) -> None:
    assert word(negation)[1] == TURN


@pytest.mark.parametrize(("found", "sort"), [("Retries", NAME), ("sha256", VALUE), ("x", NAME)])
def test_a_word_of_code_is_a_name_or_a_value(found: str, sort: int) -> None:
    assert name(found) == (found.lower(), sort)


@pytest.mark.parametrize(("terms", "key"), [
    (["gate", "lock"], True), (["lock", "gate"], True), (["gate", "of", "lock"], True),
    (["gate"], False), (["gate", "gate"], False), (["a", "gate"], False), (["one", "two", "three", "four"], True),
    (["gate", "lock", "sluice", "weir", "pump", "tide"], False),
])  # fmt: skip
def test_a_name_of_two_to_four_words_has_a_key_of_its_sorted_words(terms: list[str], *, key: bool) -> None:
    assert bool(words_key(terms)) == key
    assert words_key(["lock", "gate"]) == words_key(["gate", "of", "lock"])


@given(st.text(" \t\nab", max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_a_span_loses_its_blank_ends_and_nothing_else(text: str, start: int, length: int) -> None:
    span = Span(min(start, len(text)), min(start + length, len(text)))
    inner = strip(text, span)
    assert text[inner.start : inner.end] == text[span.start : span.end].strip()
    assert span.start <= inner.start <= inner.end <= span.end


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_json_has_every_number_but_those_that_are_none(number: float) -> None:
    plain_json({"a": [0.5, {"b": -1e300, "c": 3}]})
    with pytest.raises(ValueError, match="NaN or Infinity"):
        plain_json({"a": [0.5, {"b": number}]})


def test_a_control_character_in_json_is_escaped_once(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "x\u009by"})
    assert capsys.readouterr().out == '{"a": "x\\u009by"}\n'


@pytest.mark.parametrize(("heading", "version"), [
    ("Release 1.4.0 on 2025-03-02", (1, 4, 0)), ("Release: 0.4.1 on 2012-08-30", (0, 4, 1)),
    ("Version: v2.1 (2024-01-05)", (2, 1)), ("Changes in version 3.0:", (3, 0)), ("2024-01-05", (2024, 1, 5)),
    ("Releases of 2024", ()),
])  # fmt: skip
def test_the_heading_of_a_release_has_its_version(heading: str, version: tuple[int, ...]) -> None:
    assert released(heading) == version
