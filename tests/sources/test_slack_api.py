import json
from pathlib import Path

import pytest
from feed_cases import slack_said, slack_source
from feed_source import served

from lab.apis.server import Reply
from lab.apis.slack import SlackServer
from nornweave.connect.connectors import SlackSettings
from nornweave.connect.conversation import conversation_document
from nornweave.connect.slack.export import SlackSource
from nornweave.connect.slack.feed import TURNS
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import Domain, SourceId

DAY = 86_400


slack = served(SlackServer)


def test_a_channels_day_is_a_document_with_its_threads_names_and_links(slack: SlackServer, tmp_path: Path) -> None:
    channel = slack.add_channel("C02", "engineering")
    slack.add_channel("C01", "general")
    root = slack.say(channel, "400 instead of 422, see <#C01> and <@U02BOB>", reactions=[{"name": "eyes", "count": 2}])
    other = slack.say(channel, "Lunch?")
    slack.now += 2 * DAY
    reply = slack.say(channel, "Mended", user="U02BOB", thread=root, files=[{"title": "log.txt", "mode": "hosted"}])
    (found,) = slack_source(slack, tmp_path).documents().values()
    assert (found.path, found.title) == ("engineering/2026-01-16", "#engineering 2026-01-16")
    assert [(each.id, each.speaker, each.body, each.thread_id, each.reactions) for each in found.messages] == [
        (root, "alice", "400 instead of 422, see #general and @Bob Okafor", root, 2),
        (reply, "Bob Okafor", "Mended\n[file] log.txt", root, 0),
        (other, "alice", "Lunch?", None, 0),
    ]
    assert str(found.messages[0].timestamp) == "2026-01-16 00:01:00+00:00"
    assert found.metadata["permalink"] == "https://acme.slack.com/archives/C02/p{digits}"
    assert found.metadata["thread_permalink"] == (
        "https://acme.slack.com/archives/C02/p{digits}?thread_ts={thread_id}&cid=C02"
    )
    assert found.url == "https://acme.slack.com/archives/C02/p1768521660000000"
    assert found.metadata["channel"] == "#engineering"


def test_export_and_api_give_the_same_text(slack: SlackServer, tmp_path: Path) -> None:
    channel = slack.add_channel("C02", "engineering")
    root = slack.say(channel, "See <https://example.org|the page> &amp; <@U02BOB>")
    slack.say(channel, "joined", subtype="channel_join")
    slack.say(channel, "", blocks=[{"type": "rich_text", "elements": [{"type": "user", "user_id": "U02BOB"}]}])
    slack.say(channel, "Broadcast", thread=root, subtype="thread_broadcast", user="U02BOB")
    slack.say(channel, "Built", user=None, bot_id="B1", username="ci", attachments=[{"title": "Run 7", "text": "ok"}])
    slack.say(channel, "By a bot", user=None, bot_id="B2", bot_profile={"name": "deployer"})
    export = tmp_path / "export"
    (export / "engineering").mkdir(parents=True)
    (export / "users.json").write_text(json.dumps(list(slack.users.values())))
    (export / "channels.json").write_text(json.dumps(list(slack.channels.values())))
    (export / "engineering/2026-01-16.json").write_text(json.dumps(list(slack.messages[channel].values())))
    exported = SlackSource(SlackSettings(id="chat", domain=Domain.CONVERSATIONS, path=export))
    (entry,) = exported.list().entries
    (found,) = slack_source(slack, tmp_path).documents().values()
    assert found.text == conversation_document(SourceId("chat"), entry, exported.fetch(entry)).text
    assert len(found.messages) == 5


def test_old_threads_go_on_at_once_if_the_reply_is_sent_to_the_channel_too(slack: SlackServer, tmp_path: Path) -> None:
    channel = slack.add_channel("C01", "general")
    old, quiet = slack.say(channel, "Old question"), slack.say(channel, "Another old question")
    source = slack_source(slack, tmp_path)
    slack.now += 15 * DAY
    slack.say(channel, "Between")
    slack.now += 15 * DAY
    source.said()
    slack.page_size = 1
    slack.say(channel, "Late answer", thread=old, subtype="thread_broadcast")
    reply = slack.say(channel, "Unseen", thread=quiet)
    whole = slack_said(slack)
    seen = {path: [each for each in said if each[0] != reply] for path, said in whole.items()}
    assert source.said() == seen
    source.a_day_later()
    assert source.said() == whole


def test_edits_of_old_replies_are_found_in_their_turn(slack: SlackServer, tmp_path: Path) -> None:
    channel = slack.add_channel("C01", "general")
    replies = [slack.say(channel, "A", thread=slack.say(channel, f"Q{number}")) for number in range(40)]
    slack.now += 30 * DAY
    source = slack_source(slack, tmp_path)
    source.said()
    for reply in replies:
        slack.edit(channel, reply, "Another answer")
    slack.requests.clear()
    source.a_day_later()
    source.said()
    assert sum(request.path.endswith("replies") for request in slack.requests) < 10
    for _ in range(TURNS):
        source.a_day_later()
        source.said()
    assert source.said() == slack_said(slack)


def test_a_renamed_channel_and_a_renamed_person_move_without_reading_threads_again(
    slack: SlackServer, tmp_path: Path
) -> None:
    channel = slack.add_channel("C01", "general")
    root = slack.say(channel, "Q")
    slack.say(channel, "A", user="U02BOB", thread=root)
    source = slack_source(slack, tmp_path)
    slack.now += 10 * DAY
    source.said()
    slack.channels[channel]["name"] = "everyone"
    slack.requests.clear()
    assert source.said() == slack_said(slack) != {}
    assert next(iter(source.documents().values())).title == "#everyone 2026-01-16"
    slack.add_user("U02BOB", "Robert")
    source.a_day_later()
    assert source.said() == slack_said(slack)
    assert not any(request.path.endswith("replies") for request in slack.requests)


def test_a_channel_that_was_left_goes_and_a_new_one_is_read_whole(slack: SlackServer, tmp_path: Path) -> None:
    first, second = slack.add_channel("C1", "first"), slack.add_channel("C12", "second")
    slack.say(first, "One")
    slack.say(second, "Two")
    source = slack_source(slack, tmp_path)
    assert source.paths() == ["first/2026-01-16", "second/2026-01-16"]
    slack.channels[first]["is_member"] = False
    third = slack.add_channel("C3", "third")
    for _ in range(5):
        slack.say(third, "Old")
    slack.now += 30 * DAY
    for _ in range(5):
        slack.say(third, "New")
    slack.page_size = 2
    assert source.said() == slack_said(slack)
    assert source.paths() == ["second/2026-01-16", "third/2026-01-16", "third/2026-02-15"]


def test_only_the_named_channels_are_read_and_a_missing_one_is_named(slack: SlackServer, tmp_path: Path) -> None:
    for number, name in enumerate(("general", "engineering", "random")):
        slack.say(slack.add_channel(f"C0{number}", name), "Hello")
    source = slack_source(slack, tmp_path, channels=["#engineering", "C00", "opps"])
    listing = source.source.list()
    assert [entry.path for entry in listing.entries] == ["engineering/2026-01-16", "general/2026-01-16"]
    assert [(skip.path, "invite the app" in skip.reason) for skip in listing.skipped] == [("#opps", True)]
    assert slack_source(slack, tmp_path, channels=["random"]).paths() == ["random/2026-01-16"]
    with pytest.raises(SourceUnavailableError, match="channels: opps: not among the channels"):
        slack_source(slack, tmp_path / "other", channels=["opps"]).paths()


def test_a_channel_that_refuses_is_named_and_what_is_known_of_it_stays(slack: SlackServer, tmp_path: Path) -> None:
    public, private = slack.add_channel("C01", "general"), slack.add_channel("C02", "board")
    slack.say(public, "One")
    slack.say(private, "Two")
    source = slack_source(slack, tmp_path)
    source.paths()
    slack.refused["conversations.history", private] = {
        "error": "missing_scope",
        "needed": "groups:history",
        "provided": "channels:history,users:read",
    }
    slack.say(public, "Three")
    for _ in range(2):
        source.a_day_later()
        listing = source.source.list()
        assert listing.problem is None
        assert [entry.path for entry in listing.entries] == ["board/2026-01-16", "general/2026-01-16"]
        (skip,) = listing.skipped
        assert skip.path == "#board"
        assert "add the scope groups:history to the app and install it again" in skip.reason
    assert source.said() == slack_said(slack)
    slack.refused["conversations.history", public] = {"error": "channel_not_found"}
    source.a_day_later()
    assert "no channel can be read" in (source.source.list().problem or "")
    slack.say(private, "Four")
    slack.now += 20 * DAY
    source.source.list()
    slack.refused.clear()
    slack.page_size = 1
    assert source.said() == slack_said(slack), "it is read whole, further back than a pass of changes looks"


def test_without_the_right_to_see_private_channels_the_public_ones_are_read(slack: SlackServer, tmp_path: Path) -> None:
    slack.say(slack.add_channel("C01", "general"), "One")
    slack.say(slack.add_channel("C02", "board", is_private=True), "Two")
    source = slack_source(slack, tmp_path / "before")
    source.paths()
    slack.lacks_private = True
    listing = slack_source(slack, tmp_path).source.list()
    assert [entry.path for entry in listing.entries] == ["general/2026-01-16"]
    assert [(skip.path, "add the scope groups:read" in skip.reason) for skip in listing.skipped] == [
        ("private channels", True)
    ]
    for _ in range(2):
        assert len(source.paths()) == 2, "what is known of them stays"
        source.a_day_later()


def test_an_answer_without_a_workspace_deletes_nothing(slack: SlackServer, tmp_path: Path) -> None:
    slack.say(slack.add_channel("C01", "general"), "One")
    source = slack_source(slack, tmp_path)
    source.paths()
    slack.faults.append(Reply({"ok": True}))
    listing = source.source.list()
    assert (len(listing.entries), "no team_id" in (listing.problem or "")) == (1, True)


def test_a_history_that_ignores_where_it_goes_on_deletes_nothing(slack: SlackServer, tmp_path: Path) -> None:
    channel = slack.add_channel("C01", "general")
    for number in range(5):
        slack.say(channel, f"M{number}")
    source = slack_source(slack, tmp_path)
    whole = source.said()
    odd = {"ok": True, "messages": list(slack.messages[channel].values())[-2:], "has_more": True}
    slack.before = lambda request: slack.faults.append(Reply(odd)) if "history" in request.path else None
    for _ in range(2):
        assert "goes on without saying where" in (source.source.list().problem or "")
        source.a_day_later()
    slack.before = lambda _: None
    slack.requests.clear()
    assert source.said() == whole


def test_a_token_that_is_not_set_is_named(slack: SlackServer, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="token_env names SLACK_TOKEN, which is not set"):
        slack_source(slack, tmp_path, token=None).paths()
    assert not slack.requests


def test_an_expired_cursor_of_the_list_of_people_begins_again(slack: SlackServer, tmp_path: Path) -> None:
    slack.say(slack.add_channel("C01", "general"), "Hello")
    slack.page_size = 1
    source = slack_source(slack, tmp_path)
    broken = [Reply({}, 400)]
    slack.before = lambda request: slack.faults.extend([broken.pop()] if request.query.get("cursor") and broken else [])
    with pytest.raises(SourceUnavailableError):
        source.paths()
    slack.lost_cursors = True
    slack.before = lambda _: setattr(slack, "lost_cursors", len(slack.requests) < 5)
    assert source.paths() == ["general/2026-01-16"]


def test_tombstones_notices_and_archived_channels(slack: SlackServer, tmp_path: Path) -> None:
    channel, archived = slack.add_channel("C01", "general"), slack.add_channel("C02", "old", is_archived=True)
    root = slack.say(channel, "Secret")
    slack.say(channel, "Answer", thread=root)
    slack.say(channel, "joined", subtype="channel_join")
    slack.say(archived, "History")
    source = slack_source(slack, tmp_path)
    source.said()
    slack.delete(channel, root)
    slack.requests.clear()
    assert [said[2] for said in source.said()["general/2026-01-16"]] == ["Answer"]
    assert [request.query.get("channel") for request in slack.requests if "history" in request.path] == ["C01"]


def test_another_workspace_replaces_the_one_before(slack: SlackServer, tmp_path: Path) -> None:
    slack.say(slack.add_channel("C01", "general"), "Ours")
    source = slack_source(slack, tmp_path)
    source.paths()
    slack.team = "T02"
    slack.channels.clear()
    slack.say(slack.add_channel("C09", "theirs"), "Theirs")
    assert source.paths() == ["theirs/2026-01-16"]


def test_an_odd_name_of_a_channel_never_becomes_a_path(slack: SlackServer, tmp_path: Path) -> None:
    for number, name in enumerate(("../../etc", "a/b", ".hidden", "", "größe", "x" * 300)):
        slack.say(slack.add_channel(f"C{number}", name), "Hello")
    assert slack_source(slack, tmp_path).paths() == [
        "C0/2026-01-16",
        "C1/2026-01-16",
        "C2/2026-01-16",
        "C3/2026-01-16",
        "C5/2026-01-16",
        "größe/2026-01-16",
    ]


def test_a_page_without_messages_is_followed_by_its_cursor(slack: SlackServer, tmp_path: Path) -> None:
    channel = slack.add_channel("C01", "general")
    slack.say(channel, "Hello")
    empty = {"ok": True, "messages": [], "has_more": True, "response_metadata": {"next_cursor": "c:0"}}
    faults = [Reply(empty), Reply(empty)]
    slack.before = lambda request: slack.faults.extend([faults.pop()] if faults and "history" in request.path else [])
    assert slack_source(slack, tmp_path).paths() == ["general/2026-01-16"]
