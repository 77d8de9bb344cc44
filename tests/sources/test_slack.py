import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.connect.connectors import SlackSettings
from nornweave.connect.slack.export import SlackSource
from nornweave.connect.slack.text import Directory, body_of, plain
from nornweave.core.errors import (
    ConfigError,
    DocumentError,
    DocumentSkipped,
    SourceUnavailableError,
    TransientDocumentError,
)
from nornweave.core.types import Document, Domain, Entry

EXPORT = Path(__file__).parents[1] / "golden" / "conversations" / "slack"


def source(root: Path, **options: Any) -> SlackSource:
    return SlackSource(SlackSettings(id="chat", domain=Domain.CONVERSATIONS, path=root, **options))


def document(root: Path, path: str) -> Document:
    slack = source(root)
    entry = next(entry for entry in slack.list().entries if entry.path == path)
    return slack.parse(entry, slack.fetch(entry))


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXPORT, tmp_path / "export"))


def test_the_root_of_a_thread_is_found_over_midnight_of_the_workspace(export: Path) -> None:
    # 1768521600 is 2026-01-16 00:00 UTC; a workspace further west files it under the 15th.
    write(export / "general/2026-01-15.json", [{"user": "U01ALICE", "text": "Root", "ts": "1768521600.000100"}])
    reply = {"user": "U02BOB", "text": "Reply", "ts": "1768580000.0001", "thread_ts": "1768521600.000100"}
    write(export / "general/2026-01-16.json", [reply])
    assert document(export, "general/2026-01-16.json").messages[0].lead == ("alice: Root",)


def test_fetched_bytes_change_exactly_when_the_document_does(export: Path) -> None:
    def fetched() -> dict[str, bytes]:
        slack = source(export)
        return {entry.path: slack.fetch(entry) for entry in slack.list().entries}

    before = fetched()
    assert fetched() == before
    day = json.loads((export / "general/2026-01-15.json").read_text())
    write(export / "general/2026-01-15.json", [{**day[1], "text": "Another root", "team": "T9"}, *day[2:]])
    changed = {path for path, raw in fetched().items() if raw != before[path]}
    assert changed == {"general/2026-01-15.json", "general/2026-01-16.json"}


def test_gates_follow_the_day_the_names_and_earlier_days_but_not_later_ones(export: Path) -> None:
    def gates() -> dict[str, str]:
        return {entry.path: entry.gate for entry in source(export).list().entries}

    before = gates()
    assert gates() == before
    os.utime(export / "general/2026-01-15.json", ns=(1, 1))
    assert {path for path, gate in gates().items() if gate != before[path]} == {
        "general/2026-01-15.json",
        "general/2026-01-16.json",
    }
    before = gates()
    os.utime(export / "general/2026-01-16.json", ns=(1, 1))
    assert {path for path, gate in gates().items() if gate != before[path]} == {"general/2026-01-16.json"}
    before = gates()
    os.utime(export / "users.json", ns=(1, 1))
    assert all(gate != before[path] for path, gate in gates().items())


def test_a_broken_day_fails_alone_naming_line_and_column(export: Path) -> None:
    (export / "general/2026-01-15.json").write_text('[\n {"ts": "1",, }\n]')
    with pytest.raises(DocumentError, match="line 2 column 13"):
        document(export, "general/2026-01-15.json")
    # The other day only loses the line of its thread's root.
    assert document(export, "general/2026-01-16.json").messages[0].lead == ()


@pytest.mark.parametrize("content", ["{}", '"text"', "[" * 100_000, '[{"a": ' + "9" * 5_000 + "}]", "\x00\x01", "null"])
def test_days_that_are_no_message_lists_are_document_errors(export: Path, content: str) -> None:
    (export / "general/2026-01-15.json").write_text(content)
    with pytest.raises(DocumentError):
        document(export, "general/2026-01-15.json")


def test_a_day_of_notices_only_is_skipped(export: Path) -> None:
    own = {"user": "U1", "text": "Only you see this", "ts": "2.0", "is_ephemeral": True}
    notice = {"subtype": "channel_leave", "user": "U1", "text": "left", "ts": "1.0"}
    write(export / "general/2026-01-15.json", [notice, own])
    with pytest.raises(DocumentSkipped):
        document(export, "general/2026-01-15.json")


def test_without_users_names_come_from_the_messages_or_stay_ids(export: Path) -> None:
    (export / "users.json").unlink()
    found = document(export, "general/2026-01-16.json")
    assert [message.speaker for message in found.messages] == ["U03CHAR", "ci-bot", "U02BOB", "dana", "U01ALICE"]
    assert source(export).list().skipped == ()


def test_broken_users_are_told_and_cost_only_the_names(export: Path) -> None:
    (export / "users.json").write_text('[{"id": "U01ALICE",]')
    listing = source(export).list()
    assert [(skip.path, "line 1 column 20" in skip.reason) for skip in listing.skipped] == [("users.json", True)]
    assert document(export, "engineering/2026-01-16.json").messages[1].speaker == "U01ALICE"


def test_what_is_no_export_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="cannot be read: No such file"):
        source(tmp_path / "missing").list()
    with pytest.raises(SourceUnavailableError, match="not a Slack export; expected users"):
        source(tmp_path).list()
    write(tmp_path / "package" / "package.json", {})
    with pytest.raises(SourceUnavailableError, match="not a Slack export"):
        source(tmp_path).list()
    write(tmp_path / "channels.json", [])
    assert [entry.path for entry in source(tmp_path).list().entries] == ["package/package.json"]


def test_globs_choose_whole_path_components(export: Path) -> None:
    write(export / "general-old/2026-01-16.json", [])
    included = source(export, include=["general/**"]).list().entries
    assert {entry.path.split("/")[0] for entry in included} == {"general"}
    excluded = source(export, exclude=["general/**", "D*/"]).list().entries
    assert {entry.path.split("/")[0] for entry in excluded} == {"engineering", "general-old"}
    with pytest.raises(ConfigError, match="not a glob"):
        source(export, include=["!"])


def test_links_never_lead_out_of_the_export_and_loops_end(export: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.json", [{"user": "U1", "text": "secret", "ts": "1768573320.0001"}])
    (export / "general/2026-01-17.json").symlink_to(tmp_path / "secret.json")
    (export / "loop").symlink_to(export)
    (export / "general/self.json").symlink_to(export / "general/self.json")
    listing = source(export).list()
    assert len(listing.entries) == 4
    assert {skip.path for skip in listing.skipped} == {"general/2026-01-17.json", "general/self.json", "loop"}
    for path in ("general/2026-01-17.json", "../secret.json", "/etc/passwd", "general/../../secret.json", "a\x00b"):
        with pytest.raises(DocumentError):
            source(export).fetch(Entry(path=path, gate=""))
    with pytest.raises(TransientDocumentError):
        source(export).fetch(Entry(path="general/1999-01-01.json", gate=""))


@pytest.mark.parametrize(("marked", "expected"), [
    ("<@U1> <@U2|bob> <@U3>", "@Al @bob @U3"),
    ("<#C1> <#C9|ops> <#C8>", "#pay #ops #C8"),
    ("<!here> <!subteam^S1|@payments> <!date^1^{date}|Feb 18>", "@here @payments Feb 18"),
    ("<https://a.b/c> <https://a.b|the page> <mailto:x@y.z|x@y.z>", "https://a.b/c the page (https://a.b) x@y.z"),
    ("a &lt;b&gt; &amp;amp; <no", "a <b> &amp; <no"),
])  # fmt: skip
def test_markup(marked: str, expected: str) -> None:
    assert plain(marked, Directory({"U1": "Al"}, {"C1": "pay"})) == expected


def test_previews_of_links_count_only_where_nothing_else_is_said() -> None:
    preview = {"from_url": "https://a.b", "title": "A page", "text": "Somebody else's words"}
    assert body_of({"text": "look", "attachments": [preview]}, Directory()) == "look"
    assert body_of({"text": "", "attachments": [preview]}, Directory()) == "A page\nSomebody else's words"
    assert body_of({"text": "Alert", "attachments": [{"text": "p95 2 s"}]}, Directory()) == "Alert\np95 2 s"


def test_edited_and_repeated_messages_count_once(export: Path) -> None:
    said = {"user": "U01ALICE", "text": "Now 422", "ts": "1768573320.0001"}
    changed = {"subtype": "message_changed", "ts": "1768573999.0001", "message": said}
    write(export / "general/2026-01-16.json", [said, changed, "nonsense", {"text": None, "ts": 7}])
    assert [message.body for message in document(export, "general/2026-01-16.json").messages] == ["Now 422"]


NAMES = """user text ts thread_ts subtype message reactions count users files title blocks elements attachments fields
bot_profile user_profile profile name display_name messages id members"""
KEYS = NAMES.split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(day=st.lists(JSON, max_size=4), users=JSON, channels=st.lists(JSON, max_size=2))
def test_whatever_an_export_holds_only_document_errors_come_out(
    day: list[Any], users: Any, channels: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("export")
    write(root / "users.json", users)
    write(root / "channels.json", channels)
    write(root / "general/2026-01-16.json", day)
    try:
        found = document(root, "general/2026-01-16.json")
    except DocumentError:
        return
    found.text.encode("utf-8")
    assert all(message.body for message in found.messages)


@given(raw=st.binary(max_size=200))
def test_parse_answers_foreign_bytes_with_document_errors(raw: bytes) -> None:
    with pytest.raises(DocumentError):
        source(EXPORT).parse(Entry(path="general/2026-01-16.json", gate=""), raw)
