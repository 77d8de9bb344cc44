"""Whatever comes in, a problem document goes out that says what is wrong, and nothing crashes."""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_support import Ask, is_problem
from hypothesis import example, given
from hypothesis import strategies as st
from scripted_engine import ScriptedAgent

from api.server.limits import MAX_BODY_BYTES

RECALL = "/agents/code/recall"
JSON = {"content-type": "application/json"}
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "query_text", "missing"),
    ({"query_text": "x", "topk": 3}, "topk", "unknown field"),
    ({"query_text": 7}, "query_text", "valid string, found 7"),
    ({"query_text": None}, "query_text", "found null"),
    ({"query_text": ["x"]}, "query_text", "found a list"),
    ({"query_text": ""}, "query_text", "at least 1 character"),
    ({"query_text": " \n\t\u3000"}, "query_text", "blank"),
    ({"query_text": "x" * 32_001}, "query_text", "32000"),
    ({"query_text": "a\0b"}, "query_text", "NUL"),
    ({"query_text": "x", "top_k": 0}, "top_k", "greater than or equal to 1, found 0"),
    ({"query_text": "x", "top_k": 101}, "top_k", "less than or equal to 100, found 101"),
    ({"query_text": "x", "top_k": -1}, "top_k", "found -1"),
    ({"query_text": "x", "top_k": "10"}, "top_k", "found '10'"),
    ({"query_text": "x", "top_k": True}, "top_k", "found true"),
    ({"query_text": "x", "top_k": 10.0}, "top_k", "found 10.0"),
    ({"query_text": "x", "top_k": None}, "top_k", "found null"),
    ({"query_text": "x", "top_k": float("nan")}, "top_k", "found NaN"),
    ({"query_text": "x", "top_k": float("inf")}, "top_k", "found Infinity"),
    ({"query_text": "x", "top_k": 10**400}, "top_k", "less than or equal"),
    ({"query_text": "x", "timeout_ms": 0}, "timeout_ms", "found 0"),
    ({"query_text": "x", "timeout_ms": 60_001}, "timeout_ms", "60000"),
    ({"query_text": "x", "explain": 1}, "explain", "found 1"),
    ({"query_text": "x", "explain": "true"}, "explain", "found 'true'"),
    ({"query_text": "x", "expand": "maybe"}, "expand", "'auto', 'on' or 'off'"),
    ({"query_text": "x", "rerank": True}, "rerank", "found true"),
    ({"query_text": "x", "filters": []}, "filters", "found a list"),
    ({"query_text": "x", "filters": None}, "filters", "found null"),
    ({"query_text": "x", "filters": {"language": float("nan")}}, "filters", "NaN"),
    ({"query_text": "x", "filters": {"language": ["a\0"]}}, "filters", "NUL"),
]


def post(look: Ask, body: bytes, content_type: str = "application/json", **options: Any) -> Any:
    return look("POST", RECALL, content=body, headers={"content-type": content_type}, **options)


@pytest.mark.parametrize(("body", "field", "said"), WRONG, ids=[f"{field}-{said}" for _, field, said in WRONG])
def test_a_wrong_field_is_named_with_what_was_found(
    look: Ask, still_code: ScriptedAgent, body: dict[str, Any], field: str, said: str
) -> None:
    problem = is_problem(post(look, json.dumps(body).encode()), 422)
    assert [one["field"] for one in problem["errors"]] == [field]
    assert said in problem["errors"][0]["detail"]
    assert field in problem["detail"]
    assert still_code.asked == []


def test_every_wrong_field_is_named_at_once(look: Ask) -> None:
    problem = is_problem(post(look, b'{"query_text": " ", "top_k": 0, "color": 1, "filters": 3}'), 422)
    assert {one["field"] for one in problem["errors"]} == {"query_text", "top_k", "color", "filters"}


def test_thousands_of_wrong_fields_make_a_short_answer(look: Ask) -> None:
    body = {"query_text": "x", **{f"field-{number}-{'y' * 80}": 1 for number in range(5000)}}
    answer = post(look, json.dumps(body).encode())
    problem = is_problem(answer, 422)
    assert len(problem["errors"]) == 20
    assert "and 4980 more" in problem["detail"]
    assert len(answer.content) < 10_000


@pytest.mark.parametrize("body", [
    rb'{"query_text": "a \ud800 half"}',
    rb'{"query_text": "x", "\udfff": 1}',
    rb'{"query_text": "x", "filters": {"language": "\ud800"}}',
    rb'{"query_text": "x", "filters": {"\ud800": "python"}}',
    rb'{"query_text": "x", "expand": "\ud800"}',
])  # fmt: skip
def test_half_characters_are_refused(look: Ask, still_code: ScriptedAgent, body: bytes) -> None:
    is_problem(post(look, body), 422)
    assert still_code.asked == []


@pytest.mark.parametrize(("body", "status"), [
    (b"", 422), (b"{", 400), (b'{"query_text": "x",}', 400), (b"query_text=x", 400),
    (b'{"query_text": "\xff\xfe"}', 400), (b'{"query_text": "x", "top_k": ' + b"9" * 5000 + b"}", 400),
    (b"[]", 422), (b'"x"', 422), (b"null", 422), (b"NaN", 422), (b"[" * 100_000, 422),
    (b'{"query_text": "x", "filters": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}", 422),
    (b'{"query_text": "x", "filters": ' + b'{"a":' * 90_000 + b"1" + b"}" * 90_000 + b"}", 422),
], ids=lambda value: str(value[:20] if isinstance(value, bytes) else value))  # fmt: skip
def test_a_body_that_is_no_request(look: Ask, still_code: ScriptedAgent, body: bytes, status: int) -> None:
    is_problem(post(look, body), status)
    assert still_code.asked == []


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_another_content_type_is_refused(look: Ask, content_type: str) -> None:
    # Pages of other sites can make a browser send these without asking first; JSON they cannot.
    assert "application/json" in is_problem(post(look, b'{"query_text": "x"}', content_type), 415)["detail"]


def test_a_body_may_be_a_mebibyte_and_not_more(look: Ask) -> None:
    body = b'{"query_text": "x"}'
    assert post(look, body + b" " * (MAX_BODY_BYTES - len(body))).status_code == 200
    assert str(MAX_BODY_BYTES) in is_problem(post(look, body + b" " * (MAX_BODY_BYTES - len(body) + 1)), 413)["detail"]


def test_a_body_that_does_not_say_how_long_it_is_is_counted(look: Ask) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 65_536
            yield b" " * 65_536

    is_problem(look("POST", RECALL, content=endless(), headers=JSON), 413)
    assert read <= 2 * MAX_BODY_BYTES


def test_an_announced_length_is_refused_before_anything_is_read(look: Ask) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    is_problem(look("POST", RECALL, content=never(), headers={**JSON, "content-length": str(10**15)}), 413)


def test_unknown_paths_and_wrong_methods(look: Ask) -> None:
    assert "/nowhere" in is_problem(look("GET", "/nowhere"), 404)["detail"]
    is_problem(look("POST", RECALL + "/", json={"query_text": "x"}), 404)
    answer = look("GET", RECALL)
    assert "POST" in is_problem(answer, 405)["detail"]
    assert answer.headers["allow"] == "POST"


def test_a_defect_shows_an_id_and_the_log_the_rest(
    ask: Ask, code: ScriptedAgent, caplog: pytest.LogCaptureFixture
) -> None:
    code.failure = KeyError("secret detail of the implementation")
    with caplog.at_level(logging.ERROR):
        answer = ask("POST", RECALL, json={"query_text": "x"})
    problem = is_problem(answer, 500)
    assert "secret" not in answer.text
    occurrence = problem["instance"].removeprefix("urn:uuid:")
    (record,) = caplog.records
    assert occurrence in record.getMessage() and occurrence in problem["detail"]
    assert "secret detail" in caplog.text


NASTY = st.text(st.characters(codec=None)) | st.sampled_from(["\0", "\ud800", "' or 1=1 --", "(a+)+$", "💥", "\u202e"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NASTY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NASTY, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["query_text", "top_k", "filters", "expand", "rerank", "timeout_ms", "explain"]) | NASTY
BODIES = st.dictionaries(FIELDS, VALUES, max_size=6) | VALUES


def test_any_json_gets_an_answer(look: Ask) -> None:
    """200 for what is a request, a problem document for the rest; never 500, never an exception."""
    statuses: set[int] = set()

    @given(BODIES)
    @example({"query_text": "x"})
    @example({"query_text": "\ud800", "\ud800": {"\0": [float("nan")]}})
    def check(body: Any) -> None:
        answer = post(look, json.dumps(body).encode())
        statuses.add(answer.status_code)
        if answer.status_code != 200:
            is_problem(answer, 422)

    check()
    assert statuses == {200, 422}


def test_any_bytes_get_an_answer(look: Ask) -> None:
    @given(st.binary(max_size=64))
    @example(b"\xef\xbb\xbf{}")
    @example('{"query_text": "x"'.encode("utf-16"))
    def check(body: bytes) -> None:
        is_problem(answer := post(look, body), answer.status_code)
        assert answer.status_code in {400, 422}

    check()
