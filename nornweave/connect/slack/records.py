"""Stored records of Slack: the parts of messages that documents need, and names of people and bots.

The key of a message is ``message/CHANNEL/DAY/ROOT/TS``: the day (UTC) and the ``ts`` of its thread's root, then its
own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from nornweave.connect.conversation import as_is, mappings
from nornweave.connect.mirror.feed import Body, FeedRecord, Known
from nornweave.connect.slack.export import NOTICES, count_reactions
from nornweave.connect.slack.text import user_name

PREFIX = "user/"


def names_in(known: Known) -> dict[str, str]:
    """Return the stored names of people and bots, by id."""
    return {key.split("/")[1]: str(body.get("name") or "") for key, body in known.under(PREFIX)}


def people_in(users: Iterable[Mapping[str, Any]]) -> list[FeedRecord]:
    """Return the records of listed users.

    Deleted users, guests and bots are included, because they may have written.
    """
    named = ((each["id"], user_name(each)) for each in users if isinstance(each.get("id"), str))
    return [FeedRecord(key=f"{PREFIX}{identifier}/", body={"name": name}) for identifier, name in named]


_TS = re.compile(r"[1-9]\d{9}\.\d{6}")
_FIELDS = ("subtype", "ts", "thread_ts", "user", "bot_id", "username", "text", "reply_count", "latest_reply")
_ATTACHMENT_FIELDS = (
    *("pretext", "title", "text", "fields", "blocks", "fallback"),
    *("from_url", "original_url", "is_msg_unfurl"),
)
# <@U1>, <#C1>, and the same in blocks.
_MENTION = re.compile(r'<[@#]([A-Z][A-Z0-9]{1,30})|"(?:user_id|channel_id)": "([A-Z][A-Z0-9]{1,30})"')


def message_of(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the message of an event; ``None`` if there is none or its ``ts`` is invalid."""
    if event.get("subtype") == "message_changed":
        event = as_is(event.get("message"), dict) or {}
    if event.get("subtype") == "message_deleted" or not _is_ts(event.get("ts")):
        return None
    return event


def root_of(event: Mapping[str, Any]) -> str:
    """Return the ``ts`` of the first message of a thread. If the message is not a reply, this is its own ``ts``."""
    root = event.get("thread_ts")
    return str(root) if _is_ts(root) else str(event["ts"])


def day_of(ts: str) -> str:
    """Return the day of a Slack timestamp, in UTC."""
    return datetime.fromtimestamp(int(ts[:10]), UTC).date().isoformat()


def thread_prefix(channel: str, root: str) -> str:
    """Return the key prefix of a thread's messages."""
    return f"message/{channel}/{day_of(root)}/{root}/"


def says_something(event: Mapping[str, Any]) -> bool:
    """Tell whether a message is worth storing. The result is ``False`` for a notice without replies."""
    return as_is(event.get("subtype"), str) not in NOTICES or replies(event) > 0


def replies(event: Mapping[str, Any]) -> int:
    """Return the number of a message's replies."""
    return as_is(event.get("reply_count"), int) or 0


def to_record(
    event: Mapping[str, Any], channel: str, folder: str, people: Mapping[str, str], channels: Mapping[str, str]
) -> FeedRecord:
    """Return the record of a message.

    Args:
        channel: the id of the channel.
        folder: the first part of the document's path.
        people: id → name, for people and bots.
        channels: channel id → name.
    """
    root = root_of(event)
    kept = _kept(event)
    mentioned = ids_in(kept)
    body = {
        "event": kept,
        "people": {each: people[each] for each in sorted(mentioned) if people.get(each)},
        "channels": {each: channels[each] for each in sorted(mentioned) if each in channels},
    }
    key = f"{thread_prefix(channel, root)}{event['ts']}"
    return FeedRecord(key=key, document=f"{folder}/{day_of(root)}", body=body)


def event_in(body: Body) -> dict[str, Any]:
    """Return Slack's event from a message's record."""
    return as_is(body.get("event"), dict) or {}


def ids_in(event: Mapping[str, Any]) -> set[str]:
    """Return the ids of the people, bots and channels that a message names."""
    found = {first or second for first, second in _MENTION.findall(json.dumps(event, ensure_ascii=False))}
    return found | {each for key in ("user", "bot_id") if (each := as_is(event.get(key), str))}


def _kept(event: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: event[key] for key in _FIELDS if event.get(key) is not None}
    if not event.get("text") and event.get("blocks"):
        kept["blocks"] = event["blocks"]
    attachments = [
        {key: each[key] for key in _ATTACHMENT_FIELDS if each.get(key)} for each in mappings(event.get("attachments"))
    ]
    files = [{key: each[key] for key in ("title", "name") if each.get(key)} for each in mappings(event.get("files"))]
    count = count_reactions(event)
    bot, user = as_is(event.get("bot_profile"), dict), as_is(event.get("user_profile"), dict)
    more = {
        "attachments": attachments,
        "files": files,
        "reactions": [{"count": count}] if count else None,
        "bot_profile": {"name": user_name(bot)} if bot else None,
        "user_profile": {"display_name": user_name(user)} if user else None,
    }
    return {**kept, **{key: value for key, value in more.items() if value}}


def _is_ts(value: object) -> bool:
    return isinstance(value, str) and _TS.fullmatch(value) is not None
