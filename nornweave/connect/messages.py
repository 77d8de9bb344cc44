"""A source of message files: JSON of any exporter, text logs of chats, mailboxes.

Exporters differ in what they call the same thing, not in what they say: records are found by their keys, anywhere in
the file. The table knows DiscordChatExporter, Telegram Desktop, Mattermost (bulk export and API), Slack, Google Chat,
Teams, Rocket.Chat, Matrix and Messenger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from nornweave.connect.conversation import (
    clean,
    clean_name,
    conversation,
    gather_threads,
    load_documents,
    mappings,
    parse_time,
)
from nornweave.connect.files.source import FolderSource
from nornweave.connect.transcripts import date_of, read_log
from nornweave.core.errors import DocumentError, DocumentSkipped
from nornweave.core.text.decode import decode
from nornweave.core.types import Document, Entry, Message, SourceId
from nornweave.read.formats.eml import MAIL, read_mail

_JSON = (".jsonl", ".ndjson", ".json")
SUFFIXES = (".txt", ".log", ".weechatlog", *_JSON, *MAIL)

# The keys that exports use for one field, likeliest first; a dot leads into an object.
TEXT = (*("text", "content.body", "body.content", "content", "message", "body", "msg", "forwardedMessage.content"),)
SPEAKER = (
    *("user", "author", "speaker", "username", "sender", "sender_name", "from.user", "from", "creator", "u", "nick"),
    *("name", "user_id"),
)
ORIGINAL = ("forwarded_from", "forwardedMessage")
TIME = (
    *(
        "ts.$date",
        "ts",
        "timestamp",
        "date_unixtime",
        "date",
        "created_at",
        "create_at",
        "createdAt",
        "createdDateTime",
    ),
    *("created_date", "timestamp_ms", "origin_server_ts", "time"),
)
IDENTIFIER = ("id", "_id", "message_id", "event_id")
THREAD = ("thread_id", "thread_ts", "topic_id", "tmid")
ANSWERED = (
    "reference.messageId",
    "reply_to_message_id",
    "reply_to",
    "root_id",
    "replyToId",
    "parent_id",
    "in_reply_to",
)
CHANNEL = ("channel.name", "channel", "channel_name", "room_name")
NAME = ("nickname", "display_name", "displayName", "global_name", "name", "login", "username", "email", "id")
_CONTAINER_NAME = (*CHANNEL, "name", "title")

_SLACK_TS = re.compile(r"\d{9,11}\.\d{4,6}")
_MAX_DEPTH = 8


def parse_messages(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of a file of messages.

    Raises:
        DocumentError: the JSON is broken, or there is no message in it. The message names line and column of broken
            JSON.
    """
    path = PurePosixPath(entry.path)
    said, left_out = read_messages(raw, path)
    if not said:
        raise DocumentSkipped("no message in it says anything")
    return conversation(
        source_id,
        entry,
        raw,
        gather_threads(said),
        format="messages",
        title=path.stem,
        metadata={"source_type": "messages", "channel": path.stem, "left_out": left_out or None},
    )


def read_messages(raw: bytes, path: PurePosixPath) -> tuple[list[Message], tuple[str, ...]]:
    """Read the messages of one file in order. Return them with notes about what is left out.

    Raises:
        DocumentError: the file is binary or empty, or its JSON is broken.
    """
    suffix = path.suffix.lower()
    if suffix in MAIL:
        return read_records([(1, read_mail(raw))]), ()
    text = decode(raw).replace("\r\n", "\n").replace("\r", "\n")
    if suffix in _JSON or _looks_like_json(text):
        return read_records(load_documents(text, str(path))), ()
    began = date_of(path)
    messages, notices = read_log(text, began.date() if began else None)
    return messages, (f"{notices:,} notices that nobody says",) if notices else ()


def _looks_like_json(text: str) -> bool:
    first = text.lstrip()
    try:
        value = json.JSONDecoder().raw_decode(first)[0] if first.startswith(("{", "[")) else None
        return isinstance(value, dict) or (isinstance(value, list) and isinstance(next(iter(value), None), dict | list))
    except (ValueError, RecursionError):
        return False


class MessagesSource(FolderSource):
    """A folder or file of messages."""

    version = "messages-2"
    suffixes = SUFFIXES
    parser = staticmethod(parse_messages)


def read_records(documents: Iterable[tuple[int, Any]]) -> list[Message]:
    """Read the messages of JSON documents in order.

    Args:
        documents: pairs of a line number and a JSON document that begins on this line. A document is a message, a list
            of messages, or an object that contains such lists. A message without an id gets its line number as id. In a
            list its position is added.

    Raises:
        DocumentError: a value in the place of a message is something else, or no message has text under a known key.
    """
    said: list[tuple[Message, str]] = []
    keys: set[str] = set()
    for line, document in documents:
        records = list(_records(document, "", 0))
        for place, (record, channel) in enumerate(records, line if len(records) == 1 else 1):
            keys.update(record)
            said += _messages(record, channel, str(place))
    if keys and keys.isdisjoint(key.partition(".")[0] for key in TEXT):
        raise DocumentError(f"no message has any of the keys {TEXT}; found {sorted(keys)[:20]}")
    return _in_threads(said)


def _records(value: object, channel: str, depth: int) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the message objects, each with the name of the channel or list that contains it."""
    if depth > _MAX_DEPTH:
        raise DocumentError("nested too deeply; expected a list of messages")
    if isinstance(value, str):
        yield {"text": value}, channel
    elif isinstance(value, list):
        for each in value:
            yield from _records(each, channel, depth + 1)
    elif not isinstance(value, dict):
        raise DocumentError(f"a JSON {type(value).__name__} in the place of a message; expected an object with 'text'")
    elif isinstance(wrapped := value.get(str(value.get("type"))), dict):  # {"type": "post", "post": {…}}
        yield from _records(wrapped, channel, depth + 1)
    elif lists := [] if _says(value) else list(_lists_in(value)):
        name = _name(_first(value, _CONTAINER_NAME)) or channel
        for each in lists:
            yield from _records(each, name, depth + 1)
    else:
        yield value, channel


def _says(value: Mapping[str, Any]) -> bool:
    """Tell whether an object is itself a message.

    The result is ``False`` for an API's answer that contains messages.
    """
    return any(key.partition(".")[0] in value for key in TEXT) and not mappings(value.get("messages"))


def _lists_in(value: Mapping[str, Any]) -> Iterator[object]:
    """Yield the values of an object that may contain messages.

    They are lists of objects, and objects whose values are such lists or messages.
    """
    for each in value.values():
        if found := mappings(each):
            yield found
        elif isinstance(each, dict):
            inner = mappings(list(each.values()))
            if any(map(_says, inner)):
                yield inner
            elif any(map(mappings, each.values())):
                yield each


def _messages(content: Mapping[str, Any], channel: str, place: str) -> Iterator[tuple[Message, str]]:
    """Yield a message and the answers nested in it, each with the id of the message to which it replies.

    The id is empty for a message that replies to no other message. ``place`` is the id of a message that states none.
    """
    body = next((body for key in TEXT if (body := clean(_text(_get(content, key))))), "")
    moment = _first(content, TIME)
    identifier = _first(content, IDENTIFIER)
    if identifier is None:
        identifier = moment if isinstance(moment, str) and _SLACK_TS.fullmatch(moment) else place
    thread = _first(content, THREAD)
    identifier = clean(str(identifier))
    if body:
        is_passed_on = any(content.get(key) for key in ORIGINAL)
        message = Message(
            id=identifier,
            speaker=_name(_first(content, ORIGINAL if is_passed_on else SPEAKER)),
            body=body,
            thread_id=clean(str(thread)) if thread is not None else None,
            timestamp=parse_time(moment),
            reactions=_reactions(content.get("reactions")),
            channel=_name(_first(content, CHANNEL)) or channel or None,
        )
        answered = _first(content, ANSWERED)
        yield message, clean(str(answered)) if isinstance(answered, str | int) else ""
    for number, answer in enumerate(mappings(content.get("replies")), 1):
        for message, _ in _messages(answer, channel or _name(_first(content, CHANNEL)), f"{place}.{number}"):
            yield message, identifier


def _in_threads(said: Sequence[tuple[Message, str]]) -> list[Message]:
    """Return the messages with thread ids. An answer belongs to the thread of the first message of its chain."""
    answered = {message.id: before for message, before in said if before and before != message.id}
    roots: dict[str, str] = {}
    for identifier in answered:
        root, seen = identifier, {identifier}
        while (before := answered.get(root)) and before not in seen:
            root = roots.get(before, before)
            seen.add(root)
        roots[identifier] = root
    first = {*roots.values(), *(message.thread_id for message, _ in said)}
    return [
        message
        if message.thread_id is not None
        else replace(message, thread_id=roots.get(message.id) or (message.id if message.id in first else None))
        for message, _ in said
    ]


def _get(content: object, key: str) -> object:
    for part in key.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content


def _first(content: Mapping[str, Any], keys: Sequence[str]) -> object:
    return next((value for key in keys if (value := _get(content, key)) not in (None, "", [], {})), None)


def _text(value: object) -> str:
    """Return the text of a value. Telegram splits a text into strings and objects that have a ``text``."""
    if isinstance(value, list):
        return "".join(each if isinstance(each, str) else _text(_get(each, "text")) for each in value)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _name(value: object) -> str:
    if isinstance(value, dict):
        value = _first(value, NAME)
    return clean_name(str(value)) if isinstance(value, str | int) else ""


def _reactions(value: object) -> int:
    """Count reactions. They are given as a number, as ``[{"name", "count"}]``, or as ``{name: count}``."""
    if isinstance(value, dict):
        return sum(map(_reactions, value.values()))
    if isinstance(value, list):
        return sum(_reactions(each["count"]) if "count" in each else 1 for each in mappings(value)) or len(value)
    return max(value, 0) if isinstance(value, int) else 0
