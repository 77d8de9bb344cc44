import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.connect.connectors import MessagesSettings
from nornweave.connect.conversation import parse_time
from nornweave.connect.messages import MessagesSource
from nornweave.core.errors import DocumentError, DocumentSkipped, SourceUnavailableError
from nornweave.core.types import Document, Domain, Entry

GOLDEN = Path(__file__).parents[1] / "golden" / "conversations" / "messages"


def source(root: Path = GOLDEN) -> MessagesSource:
    return MessagesSource(MessagesSettings(id="chat", domain=Domain.CONVERSATIONS, path=root))


def parsed(path: str, content: object) -> Document:
    raw = content if isinstance(content, bytes) else str(content).encode()
    return source().parse(Entry(path=path, gate=""), raw)


def test_a_single_file_is_a_source_too() -> None:
    assert [entry.path for entry in source().list().entries] == ["2026-01-16-ops.log", "support.jsonl"]
    single = source(GOLDEN / "support.jsonl")
    (entry,) = single.list().entries
    assert entry.path == "support.jsonl"
    assert single.fetch(entry).startswith(b'{"id": "m-1"')
    assert single.domain is Domain.CONVERSATIONS
    with pytest.raises(SourceUnavailableError):
        source(GOLDEN / "missing").list()


def test_lines_without_id_are_known_by_their_number() -> None:
    found = parsed("a.jsonl", '{"text": "one"}\n\n"two"\n{"text": "three", "ts": 1768573680}')
    assert [(message.id, message.body) for message in found.messages] == [("1", "one"), ("3", "two"), ("4", "three")]


@pytest.mark.parametrize(("path", "content"), [
    ("a.json", '{"text": "one"}\n{"text": "two"}'),
    ("a.txt", '{"text": "one"}\n{"text": "two"}'),
    ("a.ndjson", '{"text": "one"}\n{"text": "two"}\n'),
])  # fmt: skip
def test_lines_of_json_whatever_the_file_is_called(path: str, content: str) -> None:
    assert [message.body for message in parsed(path, content).messages] == ["one", "two"]


@pytest.mark.parametrize(("path", "content", "expected"), [
    ("a.jsonl", '{"text": "one"}\n{"text": }', "line 2 column 10"),
    ("a.jsonl", "[1, 2]", "a JSON int in the place of a message"),
    ("a.jsonl", '{"texte": "one"}', "texte"),
    ("a.json", "7", "a JSON int in the place of a message"),
    ("a.jsonl", "[" * 100_000, "nested too deeply"),
    ("a.log", b"\x7fELF\x00\x00", "binary"),
    ("a.log", b" \n ", "empty"),
])  # fmt: skip
def test_broken_files_say_where_and_what_was_expected(path: str, content: object, expected: str) -> None:
    with pytest.raises(DocumentError, match=expected):
        parsed(path, content)


def test_messages_that_all_say_nothing_are_skipped() -> None:
    with pytest.raises(DocumentSkipped):
        parsed("a.jsonl", '{"text": ""}\n{"text": null}')


def test_threads_are_gathered_where_they_begin() -> None:
    lines = [{"id": number, "text": str(number), "thread_id": "t" if number % 2 else None} for number in range(4)]
    found = parsed("a.jsonl", "\n".join(map(json.dumps, lines)))
    assert [message.id for message in found.messages] == ["0", "1", "3", "2"]


@pytest.mark.parametrize(("given_time", "expected"), [
    ("2026-01-16", "2026-01-16 00:00:00+00:00"), ("2026-01-16 14:22", "2026-01-16 14:22:00+00:00"),
    ("2026-01-16T14:22:00+02:00", "2026-01-16 12:22:00+00:00"),
    ("2026-01-16 14:22:05,250", "2026-01-16 14:22:05.250000+00:00"), (1768573320, "2026-01-16 14:22:00+00:00"),
    (1768573320000, "2026-01-16 14:22:00+00:00"), ("1768573320.000100", "2026-01-16 14:22:00.000100+00:00"),
    (1e300, "None"), (float("nan"), "None"), (10**400, "None"), (True, "None"),
    ("0001-01-01T00:00:00+23:59", "None"), ("yesterday", "None"), ({}, "None"),
])  # fmt: skip
def test_times(given_time: object, expected: str) -> None:
    assert str(parse_time(given_time)) == expected


def test_lone_surrogates_and_control_characters_do_not_get_into_the_text() -> None:
    found = parsed("a.jsonl", '{"user": "a\\ud800", "text": "x\\u0000y\\r\\nz \\ud83d\\ude00 \\udfff"}')
    assert found.text == "a\ufffd: x y\n  z 😀 \ufffd"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "user", "text", "ts", "thread_id", "channel", "reactions"]), inner)
    ),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(content=st.lists(JSON, max_size=4), suffix=st.sampled_from([".json", ".jsonl", ".txt"]))
def test_whatever_json_a_file_holds_only_document_errors_come_out(content: list[Any], suffix: str) -> None:
    text = json.dumps(content) if suffix == ".json" else "\n".join(map(json.dumps, content))
    try:
        found = parsed(f"a{suffix}", text)
    except DocumentError:
        return
    assert found.text.encode("utf-8").decode("utf-8") == found.text


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(st.text(alphabet="ab:<>[]() 0123-T\t", max_size=30), min_size=1, max_size=8))
def test_every_line_that_says_something_is_in_a_message(lines: list[str]) -> None:
    try:
        found = parsed("a.log", "\n".join(lines))
    except DocumentError:
        return
    letters = [letter for line in lines for letter in line if letter in "ab"]
    assert sorted(letter for letter in found.text if letter in "ab") == sorted(letters) or "--" in "".join(lines)
    assert {int(message.id) for message in found.messages} <= set(range(1, len(lines) + 1))


def test_a_large_log_is_read_in_a_moment() -> None:
    found = parsed("a.log", "[2026-01-16 14:22] alice: the refund limit\n" * 20_000)
    assert len(found.messages) == 20_000
