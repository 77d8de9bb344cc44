"""Conversations as the programs that people use export them: one table of keys, one reader of logs."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from nornweave.connect.messages import parse_messages, read_messages
from nornweave.core.types import Entry, Message, SourceId


def read(path: str, content: object) -> list[Message]:
    text = content if isinstance(content, str) else json.dumps(content)
    return read_messages(text.encode(), PurePosixPath(path))[0]


def said(messages: list[Message]) -> list[tuple[str, str, str | None]]:
    return [(each.speaker, each.body, each.thread_id) for each in messages]


ROSA, KEN = 1760456049, 1760456050
EXPORTS: dict[str, Any] = {
    "discord": {
        "guild": {"id": "1", "name": "Guild", "roles": [{"name": "x"}]},
        "channel": {"id": "2", "name": "ops"},
        "messages": [
            {"id": "a", "timestamp": "2025-10-14T15:34:09.000+00:00", "content": "400 days", "embeds": [{"title": "t"}],
             "author": {"id": "7", "name": "rosa", "nickname": "Rosa"}},
            {"id": "b", "timestamp": "2025-10-14T15:34:10.000+00:00", "content": "Too long",
             "author": {"id": "8", "name": "Ken", "nickname": None}, "reference": {"messageId": "a"}},
        ],
    },
    "telegram": {
        "name": "ops", "type": "private_group", "id": 1,
        "messages": [
            {"id": 1, "type": "service", "actor": "Eve", "action": "invite_members", "text": ""},
            {"id": "a", "type": "message", "date": "2025-10-14T17:34:09", "date_unixtime": str(ROSA), "from": "Rosa",
             "text": ["400 ", {"type": "bold", "text": "days"}]},
            {"id": "b", "date_unixtime": str(KEN), "from": "Ken", "text": "Too long", "reply_to_message_id": "a"},
        ],
    },
    "mattermost api": {
        "order": ["b", "a"],
        "posts": {
            "a": {"id": "a", "create_at": ROSA * 1000, "username": "Rosa", "message": "400 days", "root_id": "",
                  "channel": "ops"},
            "b": {"id": "b", "create_at": KEN * 1000, "username": "Ken", "message": "Too long", "root_id": "a",
                  "channel": "ops"},
        },
    },
    "rocket.chat": {
        "name": "ops",
        "messages": [
            {"_id": "a", "msg": "400 days", "ts": {"$date": ROSA * 1000}, "u": {"name": "Rosa", "username": "r"}},
            {"_id": "b", "msg": "Too long", "ts": "2025-10-14T15:34:10Z", "u": {"username": "Ken"}, "tmid": "a"},
        ],
    },
    "matrix": {
        "room_name": "ops",
        "messages": [
            {"event_id": "a", "origin_server_ts": ROSA * 1000, "sender": "Rosa", "thread_id": "a",
             "content": {"body": "400 days"}},
            {"event_id": "b", "origin_server_ts": KEN * 1000, "sender": "Ken", "thread_id": "a",
             "content": {"body": "Too long"}},
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_exporters_differ_in_names_alone(name: str) -> None:
    messages = read("export.json", EXPORTS[name])
    assert said(messages) == [("Rosa", "400 days", "a"), ("Ken", "Too long", "a")]
    assert [each.id for each in messages] == ["a", "b"]
    assert [str(each.timestamp) for each in messages] == ["2025-10-14 15:34:09+00:00", "2025-10-14 15:34:10+00:00"]
    assert {each.channel for each in messages} == {"ops"}


def test_lists_pages_and_lines_of_any_depth() -> None:
    one, two = {"text": "one", "user": "rosa"}, {"body": "two", "user": {"login": "ken"}}
    for content in (
        [one, two],
        [[one], [two]],
        {"data": {"items": [one, two]}},
        {"chats": {"list": [{"messages": [one, two]}]}},
    ):
        assert [each.body for each in read("a.json", content)] == ["one", "two"]
        assert [each.body for each in read("a.txt", json.dumps(content, indent=1))] == ["one", "two"]
    assert [each.speaker for each in read("a.json", f"{json.dumps([one])}{json.dumps([two])}")] == ["rosa", "ken"]
    bulk = [
        {"type": "version", "version": 1},
        {"type": "user", "user": {"username": "rosa"}},
        {"type": "post", "post": {"channel": "ops", "user": "rosa", "message": "400 days",
                                  "create_at": ROSA * 1000,
                                  "replies": [{"user": "ken", "message": "Too long", "create_at": KEN * 1000}]}},
        {"type": "direct_post", "direct_post": {"user": "rosa", "message": "hello", "create_at": KEN * 1000}},
    ]  # fmt: skip
    messages = read("bulk.jsonl", "\n".join(map(json.dumps, bulk)))
    assert said(messages) == [("rosa", "400 days", "3"), ("ken", "Too long", "3"), ("rosa", "hello", None)]
    assert [each.channel for each in messages] == ["ops", "ops", None]


def test_what_is_passed_on_or_quoted_is_not_its_senders() -> None:
    passed: list[dict[str, Any]] = [
        {"id": 1, "from": "Ken", "forwarded_from": "Rosa", "text": "400 days"},
        {"id": 2, "author": {"name": "Ken"}, "content": "", "forwardedMessage": {"content": "90 days"}},
        {"id": 3, "from": "Ken", "text": "> Keep them 30 days.\nToo short."},
    ]
    raw = json.dumps(passed).encode()
    document = parse_messages(SourceId("chat"), Entry(path="a.json", gate=""), raw)
    assert document.text == "Rosa: 400 days\n— 90 days\n— Keep them 30 days.\nKen: Too short."
    assert [each.id for each in document.messages] == ["1", "2", "3", "3"]


STAMPS = """[14/10/2025, 15:34:09] |14/10/2025, 15:34 - |10/14/25, 3:34 PM - |[10/14/25, 3:34:09\u202fPM] |
14.10.25, 15:34 - |[14.10.25, 15:34:09] |2025-10-14, 15:34 - |2025-10-14 15:34 - |2025/10/14, 15:34 - |
14-10-2025 15:34 - |2025. 10. 14. 오후 3:34, |2025/10/14 下午3:34 - |14/10/25, 3:34 p. m. - |
[14/10/25, 3:34:09 p.\u00a0m.] |14/10/25 à 15:34 - |14.10.2025 klo 15.34 - |14/10/2568, 15:34 - |
\u200e[2025-10-14, 3:34:09 p.m.] |14/10/2025, 15:34:09: """


@pytest.mark.parametrize("stamp", [stamp.lstrip("\n") for stamp in STAMPS.split("|")])
def test_dates_of_messengers(stamp: str) -> None:
    lines = ["Messages are end-to-end encrypted.", "Rosa Lima: The gate code changes\nevery Monday.\n\nAsk me.",
             "+49 170 123: <Media omitted>", "my neighbour: Result: two doors"]  # fmt: skip
    messages, left_out = read_messages("\n".join(stamp + line for line in lines).encode(), PurePosixPath("gate.txt"))
    assert [(each.speaker, each.body) for each in messages] == [
        ("Rosa Lima", "The gate code changes\nevery Monday.\n\nAsk me."),
        ("my neighbour", "Result: two doors"),
    ]
    assert {str(each.timestamp)[:16] for each in messages} == {"2025-10-14 15:34"}
    assert left_out == ("2 notices that nobody says",)


def test_the_order_of_day_and_month_is_that_in_which_time_goes_on() -> None:
    def months(*dates: str) -> list[int]:
        lines = "\n".join(f"{date}, 10:00 - Rosa: hello" for date in dates)
        return [each.timestamp.month for each in read("a.txt", lines) if each.timestamp]

    assert months("01/02/2025", "02/02/2025", "03/02/2025") == [2, 2, 2]
    assert months("01/31/2025", "02/01/2025") == [1, 2]
    assert months("01/11/2025", "01/12/2025", "02/01/2025") == [1, 1, 2]


IRC = {
    "znc_20251014.log": """[15:34:09] <rosa> down: again
[15:34:12] * ken restarts it
[15:34:20] *** Joins: eve (e@h)""",
    "irssi.log": """--- Log opened Tue Oct 14 15:30:00 2025
15:34 <@rosa> down: again
15:34  * ken restarts it
15:36 -!- eve has joined""",
    "a.weechatlog": """2025-10-14 15:34:09\t@rosa\tdown: again
2025-10-14 15:34:10\t-->\teve joined
2025-10-14 15:34:12\t *\tken restarts it""",
    "2025-10-14.txt": """[15:34] < rosa> down: again
[15:34] * ken restarts it
[15:35] *** eve sets mode""",
}


@pytest.mark.parametrize("path", IRC)
def test_irc(path: str) -> None:
    messages = read(path, IRC[path])
    assert [(each.speaker, each.body) for each in messages] == [("rosa", "down: again"), ("ken", "restarts it")]
    assert {str(each.timestamp)[:16] for each in messages} == {"2025-10-14 15:34"}
    later = read("irssi.log", f"{IRC['irssi.log']}\n--- Day changed Wed Oct 15 2025\n00:01 <ken> up")
    assert str(later[-1].timestamp) == "2025-10-15 00:01:00+00:00"


MBOX = """From - Mon Oct 13 09:00:00 2025
From: Rosa Lima <rosa@example.org>
Subject: Retention
Date: Mon, 13 Oct 2025 09:00:00 +0000
Message-ID: <1@example.org>

Keep backups 400 days.
>From now on.

From 1234@xxx Tue Oct 14 09:00:00 +0000 2025
From: ken@example.org
Subject: Re: Retention
Date: Tue, 14 Oct 2025 09:00:00 +0000
Message-ID: <2@example.org>
In-Reply-To: <1@example.org>

Too long.

On Mon, 13 Oct 2025, Rosa Lima wrote:
> Keep backups 400 days.
"""


def test_mailboxes_are_conversations() -> None:
    messages = read("archive.mbox", MBOX)
    assert said(messages) == [
        ("Rosa Lima", "Retention\n\nKeep backups 400 days.\nFrom now on.", "1@example.org"),
        ("ken@example.org", "Too long.", "1@example.org"),
    ]
    assert str(messages[1].timestamp) == "2025-10-14 09:00:00+00:00"
