import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from words import Words

from nornweave.connect.connectors import CONNECTORS
from nornweave.connect.conversation import conversation, gather_threads
from nornweave.core.files.paths import OwnFiles
from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import Chunk, Document, Domain, Entry, Message, SourceId
from nornweave.read.chunking.messages import CONTEXT_TOKENS, GROUP_TOKENS, VERSION, chunk_messages

GOLDEN = Path(__file__).parents[1] / "golden" / "conversations"
START = datetime(2026, 1, 16, 14, 22, tzinfo=UTC)
KINDS = ("github", "messages", "slack", "transcripts")


def document_of(raw: Sequence[Message], kind: str = "slack", **metadata: str) -> Document:
    entry = Entry(path="general/2026-01-16.json", gate="1")
    facts = {"source_type": kind, **metadata}
    return conversation(SourceId("chat"), entry, b"", raw, format=kind, title="#general", metadata=facts)


def chunks_of(document: Document, **options: int) -> list[Chunk]:
    return list(chunk_messages(document, TokenIndex(document.text, Words()), **options))


def said(number: int, body: str, *, minutes: float = 0, speaker: str = "alice", thread: str | None = None) -> Message:
    return Message(
        id=f"m{number}", speaker=speaker, body=body, thread_id=thread, timestamp=START + timedelta(minutes=minutes)
    )


def words(count: int, word: str = "refund") -> str:
    return " ".join([word] * count)


def test_neighbours_close_in_time_make_one_chunk_up_to_the_group_size() -> None:
    # "alice" and ":" are two tokens: 3 × 52 = 156 fit into 160, a fourth does not.
    document = document_of([said(number, words(50), minutes=number) for number in range(4)])
    found = chunks_of(document)
    assert [chunk.message_ids for chunk in found] == [("m0", "m1", "m2"), ("m3",)]
    assert [chunk.token_count for chunk in found] == [156, 52]
    assert GROUP_TOKENS == 160


def test_a_pause_of_more_than_fifteen_minutes_parts_them() -> None:
    document = document_of([said(0, words(20)), said(1, words(20), minutes=15), said(2, words(20), minutes=30.1)])
    assert [chunk.message_ids for chunk in chunks_of(document)] == [("m0", "m1"), ("m2",)]


def test_threads_stay_apart_from_the_talk_around_them_whatever_the_time() -> None:
    raw = [said(0, words(20), thread="t"), said(1, words(20), minutes=1), said(2, words(20), minutes=600, thread="t")]
    document = document_of(gather_threads(raw))
    found = chunks_of(document)
    assert [chunk.message_ids for chunk in found] == [("m0", "m2"), ("m1",)]
    assert [chunk.metadata.get("thread_id") for chunk in found] == ["t", None]


def test_a_long_message_is_cut_at_sentences_and_every_piece_carries_its_id() -> None:
    body = " ".join(f"{words(49, f'w{number}')}." for number in range(8))
    document = document_of([said(0, "Look here, all of you:"), said(1, body, speaker="bob", minutes=1)])
    first, *pieces = chunks_of(document)
    assert first.message_ids == ("m0",)
    assert [piece.message_ids for piece in pieces] == [("m1",), ("m1",)]
    assert all(piece.token_count <= 256 and piece.content.endswith(".") for piece in pieces)
    assert pieces[1].context.startswith("[context] bob: w0 w0")


def test_context_is_two_preceding_messages_shortened_and_not_part_of_the_content() -> None:
    raw = [
        said(0, "Is the build green?", speaker="dana"),
        said(1, words(150, "first"), minutes=1, speaker="alice"),
        said(2, "I saw it yesterday, seems like a null pointer issue.", minutes=16.5, speaker="bob"),
        said(3, words(155, "fix"), minutes=17, speaker="charlie"),
    ]
    last = chunks_of(document_of(raw))[-1]
    assert last.message_ids == ("m3",)
    assert last.content == "charlie: " + words(155, "fix")
    assert last.context.split("\n") == [
        f"[context] alice: {words(CONTEXT_TOKENS - 2, 'first')} …",
        "[context] bob: I saw it yesterday, seems like a null pointer issue.",
    ]
    assert last.embedded_text == f"{last.context}\n{last.content}"


def test_context_gives_way_where_it_would_push_the_content_out_of_the_encoder() -> None:
    raw = [said(0, words(60)), said(1, words(230), minutes=1), said(2, words(60), minutes=2)]
    found = chunks_of(document_of(raw))
    assert [bool(chunk.context) for chunk in found] == [False, False, True]
    assert all(chunk.context.count("[context]") <= 2 for chunk in found)


def test_context_of_another_hour_is_left_out() -> None:
    document = document_of([said(0, words(20)), said(1, words(20), minutes=61)])
    assert [chunk.context for chunk in chunks_of(document)] == ["", ""]


def test_in_a_thread_the_root_comes_first_and_a_lead_stands_in_for_a_root_elsewhere() -> None:
    raw = [said(number, words(150, f"w{number}"), thread="t", speaker=f"s{number}") for number in range(4)]
    last = chunks_of(document_of(raw))[-1]
    assert [line.split()[1] for line in last.context.split("\n")] == ["s0:", "s2:"]
    reply = Message(id="r", speaker="bob", body="Fixed.", thread_id="t", lead=("alice: The payment bug",))
    only = chunks_of(document_of([reply]))[0]
    assert only.context == "[context] alice: The payment bug"
    assert only.metadata["participants"] == ("alice", "bob")


def test_metadata_is_what_agents_lists() -> None:
    raw = [
        Message(id="1", speaker="alice", body="Has anyone looked?", thread_id="1768573320.0", timestamp=START),
        Message(
            id="2",
            speaker="charlie",
            body="I pushed a fix, `retry=3`, https://example.com/247, can someone review?",
            thread_id="1768573320.0",
            timestamp=START + timedelta(seconds=30, microseconds=7),
            reactions=3,
        ),
    ]
    (chunk,) = chunks_of(document_of(raw, channel="#engineering"))
    assert dict(chunk.metadata) == {
        "source_type": "slack",
        "channel": "#engineering",
        "speaker": "charlie",
        "participants": ("alice", "charlie"),
        "thread_id": "1768573320.0",
        "message_timestamp": "2026-01-16T14:22:00Z",
        "message_timestamps": ("2026-01-16T14:22:00Z", "2026-01-16T14:22:30Z"),
        "has_code_snippet": True,
        "has_url": True,
        "reaction_count": 3,
    }
    plain = chunks_of(document_of([said(0, "nothing special")]))[0].metadata
    assert (plain["has_code_snippet"], plain["has_url"], plain["reaction_count"]) == (False, False, 0)


def test_a_file_of_several_channels_says_for_each_chunk_which() -> None:
    raw = [Message(id=str(n), speaker="alice", body=words(100), channel="#a" if n % 2 else "#b") for n in range(4)]
    document = document_of(gather_threads(raw))
    found = chunks_of(document)
    assert [(chunk.message_ids, chunk.metadata["channel"]) for chunk in found] == [
        (("0",), "#b"),
        (("2",), "#b"),
        (("1",), "#a"),
        (("3",), "#a"),
    ]


def cue(number: int, speaker: str, count: int, start: float, end: float) -> Message:
    return Message(id=str(number), speaker=speaker, body=words(count), offset=start, end_offset=end)


def test_transcripts_part_at_pauses_and_between_turns_before_within_them() -> None:
    raw = [
        cue(1, "alice", 60, 0, 5),
        cue(2, "alice", 60, 5, 9),
        cue(3, "bob", 60, 10, 14),
        cue(4, "bob", 60, 44.5, 50),
        cue(5, "bob", 60, 50, 51),
        cue(6, "alice", 10, 51, 52),
    ]
    found = chunks_of(document_of(raw, kind="transcript"))
    assert [chunk.message_ids for chunk in found] == [("1", "2"), ("3",), ("4", "5", "6")]


def test_where_only_starts_are_noted_the_time_to_speak_is_no_pause() -> None:
    # 15 characters a second: 900 characters take a minute.
    talk = Message(id="1", speaker="alice", body="x" * 900, offset=0)
    near, far = (Message(id="2", speaker="bob", body=words(10), offset=start) for start in (89, 91))
    assert len(chunks_of(document_of([talk, near], kind="transcript"))) == 1
    assert len(chunks_of(document_of([talk, far], kind="transcript"))) == 2


def test_empty_and_blank_conversations_have_no_chunks() -> None:
    assert chunks_of(document_of([])) == []


MESSAGES = st.lists(
    st.builds(
        Message,
        id=st.sampled_from(["1", "2", "3", "4", "5"]),
        speaker=st.sampled_from(["", "alice", "bob", "Dana O'Neil", "陈"]),
        body=st.one_of(
            st.sampled_from(["yes", "no, done.", "ok!"]),
            st.text(min_size=1, max_size=40).map(lambda text: text.strip() or "x"),
            st.integers(1, 90).map(lambda count: ". ".join(["refund limit 500 €"] * count)),
        ),
        thread_id=st.sampled_from([None, None, "t1", "t2"]),
        timestamp=st.one_of(st.none(), st.integers(0, 100).map(lambda m: START + timedelta(minutes=m))),
        offset=st.one_of(st.none(), st.floats(0, 500)),
        lead=st.sampled_from([(), ("alice: The root",)]),
        channel=st.sampled_from([None, "#a"]),
        is_labelled=st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(raw=MESSAGES, kind=st.sampled_from(["slack", "transcript"]), limit=st.integers(8, 64))
def test_chunks_tile_the_text_in_order_hold_every_message_and_keep_the_limits(
    raw: list[Message], kind: str, limit: int
) -> None:
    document = document_of(gather_threads(raw), kind=kind)
    index = TokenIndex(document.text, Words())
    found = list(chunk_messages(document, index, limit=limit, group_limit=2 * limit))
    end = 0
    for chunk in found:
        assert document.text[end : chunk.span.start].strip() == ""
        assert chunk.content == document.text[chunk.span.start : chunk.span.end] != ""
        assert chunk.token_count == index.count(chunk.span)
        touched = [m for m in document.messages if m.span.start < chunk.span.end and chunk.span.start < m.span.end]
        assert chunk.message_ids == tuple(dict.fromkeys(message.id for message in touched))
        whole = all(chunk.span.start <= m.span.start and m.span.end <= chunk.span.end for m in touched)
        assert chunk.token_count <= 2 * limit and (len(touched) == 1 or whole)
        assert len(touched) > 1 or chunk.token_count <= limit
        end = chunk.span.end
    assert document.text[end:].strip() == ""
    assert {each for chunk in found for each in chunk.message_ids} == {message.id for message in raw}


def rendered(kind: str) -> list[dict[str, object]]:
    connector = CONNECTORS[kind]
    configured = connector.settings(id="golden", domain=Domain.CONVERSATIONS, path=GOLDEN / kind)
    source = connector.open(configured, OwnFiles(GOLDEN))
    documents = [source.parse(entry, source.fetch(entry)) for entry in source.list().entries]
    return [
        {
            "path": document.path,
            "title": document.title,
            "updated_at": str(document.updated_at),
            "url": document.url,
            "metadata": dict(document.metadata),
            "chunks": [
                {
                    "span": [chunk.span.start, chunk.span.end],
                    "tokens": chunk.token_count,
                    "title": chunk.title,
                    "messages": list(chunk.message_ids),
                    "context": chunk.context.split("\n") if chunk.context else [],
                    "content": chunk.content.split("\n"),
                    "metadata": dict(chunk.metadata),
                }
                for chunk in chunks_of(document)
            ],
        }
        for document in documents
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_golden(kind: str) -> None:
    """Read the diff: with UPDATE_GOLDEN=1 the files are written anew."""
    found = json.dumps(rendered(kind), ensure_ascii=False, indent=1) + "\n"
    golden = GOLDEN / f"{kind}.golden.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(found, encoding="utf-8")
    assert json.loads(found) == json.loads(golden.read_text(encoding="utf-8"))


def test_the_version_names_the_chunker() -> None:
    assert VERSION.startswith("messages-")
