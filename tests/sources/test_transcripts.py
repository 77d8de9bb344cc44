import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.connect.connectors import TranscriptsSettings
from nornweave.connect.files.source import split_speaker
from nornweave.connect.transcripts import TranscriptSource, date_of, parse_plain, parse_srt, parse_vtt, seconds
from nornweave.core.errors import DocumentError, DocumentSkipped, SourceUnavailableError, TransientDocumentError
from nornweave.core.text.messages import indented_body
from nornweave.core.types import Document, Domain, Entry, Message

GOLDEN = Path(__file__).parents[1] / "golden" / "conversations" / "transcripts"


def source(root: Path = GOLDEN) -> TranscriptSource:
    return TranscriptSource(TranscriptsSettings(id="meetings", domain=Domain.CONVERSATIONS, path=root))


def parsed(path: str, raw: bytes) -> Document:
    return source().parse(Entry(path=path, gate=""), raw)


def document(path: str) -> Document:
    return parsed(path, source().fetch(Entry(path=path, gate="")))


def test_every_transcript_below_the_folder_is_listed(tmp_path: Path) -> None:
    (tmp_path / "2026" / "q1").mkdir(parents=True)
    (tmp_path / "2026" / "q1" / "retro.SRT").write_text("x")
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / ".hidden.txt").write_text("x")
    assert [entry.path for entry in source(tmp_path).list().entries] == ["2026/q1/retro.SRT"]
    assert source().domain is Domain.CONVERSATIONS
    with pytest.raises(SourceUnavailableError, match="cannot be read: No such file"):
        source(tmp_path / "missing").list()


def test_vtt_voices_entities_and_cue_ids() -> None:
    found = document("2026-01-16-standup.vtt")
    assert [(message.id, message.speaker, message.offset, message.end_offset) for message in found.messages] == [
        ("intro", "Alice Jansen", 1.0, 4.5),
        ("2", "Alice Jansen", 5.0, 9.0),
        ("3", "Bob Okafor", 10.0, 14.0),
        ("4", "Bob Okafor", 90.0, 93.0),
    ]
    assert found.messages[0].body == "Good morning. First the payment\nerrors & retries."
    assert "NOTE" not in found.text and "::cue" not in found.text


def test_without_a_date_messages_have_no_time_and_the_document_the_files(tmp_path: Path) -> None:
    (tmp_path / "standup.txt").write_text("Alice: hello")
    os.utime(tmp_path / "standup.txt", (1768573320, 1768573320))
    (entry,) = source(tmp_path).list().entries
    found = source(tmp_path).parse(entry, source(tmp_path).fetch(entry))
    assert found.messages[0].timestamp is None
    assert str(found.updated_at) == "2026-01-16 14:22:00+00:00"


def test_srt_speakers_change_within_a_cue_and_go_on_in_the_next() -> None:
    found = document("retro-20260117.srt")
    assert [(message.id, message.speaker, message.body) for message in found.messages] == [
        ("1", "Alice", "What went well?"),
        ("2", "Bob", "The rollout of 422,"),
        ("2", "Alice", "and the tests."),
        ("3", "Alice", "They caught x < 3."),
    ]


def test_srt_blank_lines_inside_a_cue_lose_nothing() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nfirst\n\nsecond\n\n2\n00:00:03,000 --> 00:00:04,000\nthird"
    assert [(each.id, each.body) for each in parse_srt(text)] == [("1", "first\nsecond"), ("2", "third")]


def srt(*cues: str) -> str:
    return "\n\n".join(f"{n}\n00:00:{n:02d},000 --> 00:00:{n + 1:02d},000\n{cue}" for n, cue in enumerate(cues, 1))


@pytest.mark.parametrize(("cues", "said"), [
    (("the index", "the index\nis rebuilt", "is rebuilt\nat night"), ["the index", "is rebuilt", "at night"]),
    (("the", "the index", "the index is", "at night"), ["the", "index", "is", "at night"]),
    (("Al: go on", "Al: go on\nBob: no", "Bob: no\nAl: yes"), ["go on", "no", "yes"]),
    (("Yes.", "Yes.", "No.", "Well", "so", "it goes"), ["Yes.", "Yes.", "No.", "Well", "so", "it goes"]),
])  # fmt: skip
def test_rolling_captions_say_every_line_once(cues: tuple[str, ...], said: list[str]) -> None:
    assert [message.body for message in parse_srt(srt(*cues))] == said


def test_stamps_without_names_keep_the_speaker() -> None:
    assert list(parse_plain("Alice (01:02:03): one\n[01:02:10] two")) == [
        Message(id="1", speaker="Alice", body="one", offset=3723.0),
        Message(id="2", speaker="Alice", body="two", offset=3730.0),
    ]


@pytest.mark.parametrize(("path", "raw", "expected"), [
    ("a.vtt", b"1\n00:00:01.000 --> 00:00:02.000\nhi", "starts with 'WEBVTT'"),
    ("a.vtt", b"WEBVTT\n\nno times here", "no cue with times"),
    ("a.srt", b"1\nAlice: hi", "00:00:01,000 --> 00:00:04,000"),
    ("a.srt", b"\x89PNG\r\n\x1a\n\x00\x00", "binary"),
    ("a.txt", b"", "empty"),
    ("a.txt", b"a\x00b" * 100, "binary"),
])  # fmt: skip
def test_what_is_no_transcript_says_what_was_expected(path: str, raw: bytes, expected: str) -> None:
    with pytest.raises(DocumentError, match=expected):
        parsed(path, raw)


def test_cues_that_say_nothing_are_skipped_and_vanished_files_tried_again() -> None:
    with pytest.raises(DocumentSkipped):
        parsed("a.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Alice></v>")
    with pytest.raises(TransientDocumentError):
        document("gone.vtt")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings_and_line_ends(encoding: str) -> None:
    text = "Jürgen: Die Prüfung läuft\r\nZoë: Schön, größer als gestern\r\n" * 5
    assert [message.speaker for message in parsed("a.txt", text.encode(encoding)).messages[:2]] == ["Jürgen", "Zoë"]


@pytest.mark.parametrize(("path", "expected"), [
    ("2026-01-16-standup.vtt", "2026-01-16 00:00:00+00:00"),
    ("GMT20260116-143000_Recording.vtt", "2026-01-16 14:30:00+00:00"),
    ("2026-01-16T14-30 retro.srt", "2026-01-16 14:30:00+00:00"),
    ("2026-01-16/standup.txt", "2026-01-16 00:00:00+00:00"),
    ("2025-01-01/2026-01-16.txt", "2026-01-16 00:00:00+00:00"),
    ("2026-13-45.txt", "None"),
    ("ticket-120260116.txt", "None"),
])  # fmt: skip
def test_dates_in_names(path: str, expected: str) -> None:
    assert str(date_of(PurePosixPath(path))) == expected


@pytest.mark.parametrize(("line", "speaker"), [
    ("alice: hi", "alice"), ("Alice Smith-Jones: hi", "Alice Smith-Jones"),
    ("Ludwig van Beethoven: hi", "Ludwig van Beethoven"), ("speaker 1: hi", "speaker 1"), (">> ALICE: hi", "ALICE"),
    ("<alice> hi", "alice"), ("陈伟: 你好", "陈伟"), ("Dana (Payments): hi", "Dana (Payments)"),
    ("The plan is: ship it", None), ("https://example.com: down", None), ("see https://example.com", None),
    ("Note: the limit is 500", None), ("at 12:30 we start", None),
    ("a very long sentence that goes on and on until a colon: here", None), (": hi", None),
    ("AttributeError: 'x' has no attribute", None), ("json.decoder.JSONDecodeError: Expecting value", None),
    ("KeyboardInterrupt: stopped", None), ("", None),
])  # fmt: skip
def test_speakers(line: str, speaker: str | None) -> None:
    found = split_speaker(line)
    assert (found[0] if found else None) == speaker


def test_clocks() -> None:
    assert [seconds(clock) for clock in ("1:02:03.5", "02:03,250", "0:42")] == [3723.5, 123.25, 42.0]


def test_long_lines_do_not_make_patterns_backtrack() -> None:
    for line in ("a " * 500_000, " " * 1_000_000, "<" * 1_000_000, "0:" * 500_000, "[" * 1_000_000, "a:" * 500_000):
        assert len(list(parse_plain(line))) <= 1
        assert len(list(parse_vtt(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{line}"))) <= 1


@settings(max_examples=200, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(["", "1", "00:01.000 --> 00:02.000", "<v Al>hi", "Bob: yes", "NOTE x", "STYLE", "0:42 Al: x"])
        | st.text(max_size=12),
        max_size=12,
    ),
    suffix=st.sampled_from([".vtt", ".srt", ".txt"]),
)
def test_whatever_a_file_holds_only_document_errors_come_out(lines: list[str], suffix: str) -> None:
    text = "\n".join((["WEBVTT", ""] if suffix == ".vtt" else []) + lines)
    try:
        found = parsed(f"a{suffix}", text.encode("utf-8", "replace"))
    except DocumentError:
        return
    end = -1
    for message in found.messages:
        assert message.span.start == end + 1 and message.body
        assert found.text[message.span.start : message.span.end].endswith(indented_body(message.body))
        end = message.span.end
    assert end == len(found.text)


WORD = st.from_regex(r"[a-z]{3,8}", fullmatch=True)


@settings(max_examples=50, deadline=None)
@given(turns=st.lists(st.tuples(st.sampled_from(["Alice", "Bob"]), st.lists(WORD, min_size=1, max_size=5)), min_size=1))
def test_no_word_of_a_plain_transcript_is_lost(turns: list[tuple[str, list[str]]]) -> None:
    text = "\n".join(f"{speaker}: " + "\n".join(words) for speaker, words in turns)
    assert parsed("a.txt", text.encode()).text.split() == text.split()
