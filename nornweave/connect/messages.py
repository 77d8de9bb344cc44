"""A source of message files: JSON of any exporter, text logs of chats, mailboxes.

Exporters differ in what they call the same thing, not in what they say: records are found by their keys, anywhere in
the file. The table knows DiscordChatExporter, Telegram Desktop, Mattermost (bulk export and API), Slack, Google Chat,
Teams, Rocket.Chat, Matrix and Messenger.

Text logs are WhatsApp's exports in the date forms of its languages, IRC logs, and lines with a time. A line without a
time goes on with the message above it, in WhatsApp's exports also after a blank line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
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
from nornweave.connect.files.exports import FolderSource, split_speaker
from nornweave.connect.transcripts import date_of
from nornweave.core.errors import DocumentError, DocumentSkipped
from nornweave.core.text.decode import decode
from nornweave.core.types import Document, Entry, Message, SourceId
from nornweave.read.formats.mbox import MAIL, read_mail

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

_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202b\u202c\ufeff")
_MOMENT = re.compile(
    r"\s*[\[(]?(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2}| UTC)?)?)[\])]?"
    r"(?:\s*-\s+|\s*,?\s+)(?=\S)"
)
_CLOCK = re.compile(r"\s*[\[(]?([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?[\])]?\s+(?:-\s+)?(?=\S)")
# "[14/10/2025, 15:34:09] ", "10/14/25, 3:34 PM - ", "14.10.25, 15:34 - ", "2025. 10. 14. 오후 3:34, "
_LOCAL = re.compile(
    r"\s*\[?(\d{1,4})([./-])\s?(\d{1,2})\2\s?(\d{1,4})\.?,?\s+([^\W\d_]{1,3}\.?\s?)?(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"(?:\s?([^\W\d_](?:\.\s?)?[^\W\d_]\.?))?(?:\]\s*|\s+[-–]\s+|,\s+|\s*:\s+)(?=\S)"
)
_AFTERNOON = frozenset(("pm", "下午", "오후", "午後", "μμ", "μ", "du", "nm", "ch"))
_MORNING = frozenset(("am", "上午", "오전", "午前", "πμ", "de", "fm", "sa"))
_IN_ANGLES = re.compile(r"<[ @+%&~!]*([^<>\s][^<>\n]{0,47})>\s*(.*)", re.DOTALL)
_ACTION = re.compile(r"\*\s+(\S{1,48})\s+(.+)", re.DOTALL)
_NOTICE = re.compile(r"(?:-!-|\*{3}|-->|<--|--|→|←)(?:\s|$)")
_DAY = re.compile(r"(?:---|\*{3,4}|Session).*?\b([A-Z][a-z]{2}) +(\d{1,2})(?: \d\d:\d\d(?::\d\d)?)?,? (\d{4})")
_NO_TEXT = re.compile(r"<[^<>\n]{3,40}>")  # <Media omitted>, in any language
_LABEL = re.compile(r"([^:\n]{1,60}?):\s+(.*)", re.DOTALL)


LEAST_MESSAGES = 3
"""Fewer messages do not show that a text is a chat."""


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


@dataclass(slots=True)
class _Line:
    """The first line of a message, and the lines that continue the message.

    ``parts`` has the three numbers of a date as written, and ``clock`` the time of day in seconds since midnight.
    """

    number: int
    said: list[str]
    moment: datetime | None = None
    parts: tuple[int, int, int] | None = None
    clock: int | None = None
    day: date | None = None


def is_chat(text: str) -> bool:
    """Tell whether a text is the log of a chat: most lines begin messages, which have a time and several speakers."""
    try:
        messages, notices = read_log(text, None)
    except ValueError:
        return False
    stamped = [each for each in messages if each.speaker and (each.timestamp or each.offset is not None)]
    lines = sum(bool(line.strip()) for line in text.splitlines())
    return len(stamped) >= LEAST_MESSAGES and 2 * (len(stamped) + notices) > lines


def read_log(text: str, began: date | None) -> tuple[list[Message], int]:
    """Read the messages of a log in order.

    Args:
        began: the day in the file's name, used for messages that have only a time of day; ``None`` if there is none.

    Returns:
        The messages, and the number of notices that are left out, such as who joined or what is not in the export.
    """
    lines = list(_lines(text, began))
    local = [line for line in lines if line.parts]
    order = _date_order(local)
    messages: list[Message] = []
    notices = 0
    for line in lines:
        moment, offset = line.moment, None
        if line.parts:
            moment = _local(line, order)
        elif line.clock is not None and line.day is not None:
            moment = datetime.combine(line.day, time(), UTC) + timedelta(seconds=line.clock)
        elif line.clock is not None:
            offset = float(line.clock)
        is_stamped = moment is not None or offset is not None
        said = _split_speaker("\n".join(line.said), is_export=line.parts is not None, is_stamped=is_stamped)
        if said is None:
            notices += 1
        elif body := clean(said[1]):
            name = clean_name(said[0])
            messages.append(Message(id=str(line.number), speaker=name, body=body, timestamp=moment, offset=offset))
    return messages, notices


def _lines(text: str, began: date | None) -> Iterator[_Line]:
    """Yield the lines of each message. ``began`` is the day of its first lines; ``None`` if it is unknown."""
    current: _Line | None = None
    is_apart = False
    for number, line in enumerate(text.translate(_MARKS).split("\n"), 1):
        if not line.strip():
            is_apart = True
            if current is not None:
                current.said.append("")
            continue
        if day := _DAY.match(line):
            began = _named_day(*day.groups()) or began
            continue
        begun = _split_moment(line, number, began)
        if begun is None and current is not None and not (is_apart and current.parts is None) and _has_time(current):
            current.said.append(line)
            continue
        if current is not None:
            yield current
        current, is_apart = begun or _Line(number, [line]), False
    if current is not None:
        yield current


def _has_time(line: _Line) -> bool:
    return line.moment is not None or line.parts is not None or line.clock is not None


def _named_day(month: str, day: str, year: str) -> date | None:
    moment = parse_time(f"{day} {month} {year} 00:00:00 +0000")
    return moment.date() if moment else None


def _split_moment(line: str, number: int, day: date | None) -> _Line | None:
    """Split off the date and time, or the time of day, at a line's start; ``None`` if there is none."""
    if (local := _LOCAL.match(line)) and (clock := _seconds(local)) is not None:
        return _Line(number, [line[local.end() :]], parts=(int(local[1]), int(local[3]), int(local[4])), clock=clock)
    stamped = _MOMENT.match(line)
    if stamped is not None and (moment := parse_time(stamped[1])) is not None:
        return _Line(number, [line[stamped.end() :]], moment=moment)
    at = _CLOCK.match(line)
    if at is None:
        return None
    clock = int(at[1]) * 3600 + int(at[2]) * 60 + int(at[3] or 0)
    return _Line(number, [line[at.end() :]], clock=clock, day=day)


def _seconds(local: re.Match[str]) -> int | None:
    """Return the time of day in seconds; ``None`` if it is invalid."""
    half = "".join(filter(str.isalnum, (local[9] or local[5] or "").casefold()))  # or a word: "à 15:34"
    hour, minute, second = int(local[6]), int(local[7]), int(local[8] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    if half in _AFTERNOON | _MORNING and hour <= 12:
        hour = hour % 12 + 12 * (half in _AFTERNOON)
    return hour * 3600 + minute * 60 + second


_ORDERS = ((2, 1, 0), (2, 0, 1), (0, 1, 2))  # where year, month and day stand: 14/10/2025, 10/14/2025, 2025/10/14


def _date_order(lines: Sequence[_Line]) -> tuple[int, int, int]:
    """Return the order of day, month and year in which the most dates are valid and ascending.

    If several orders are equally good, the day is first.
    """

    def wrong(order: tuple[int, int, int]) -> tuple[int, int]:
        moments = [_local(line, order) for line in lines]
        known = [moment for moment in moments if moment is not None]
        return len(moments) - len(known), sum(after < before for before, after in pairwise(known))

    return min(_ORDERS, key=wrong)


def _local(line: _Line, order: tuple[int, int, int]) -> datetime | None:
    parts = line.parts or (0, 0, 0)
    year, month, day = (parts[place] for place in order)
    if (order[0] == 0) != (parts[0] > 31):  # a year of four digits stands first, or last
        return None
    year += 2000 * (year < 100) - 543 * (year > 2400)  # of the Buddhist era
    try:
        return datetime(year, month, day, tzinfo=UTC) + timedelta(seconds=line.clock or 0)
    except ValueError:
        return None


def _split_speaker(text: str, *, is_export: bool, is_stamped: bool) -> tuple[str, str] | None:
    """Split the rest of a line into speaker and text; ``None`` for a notice.

    If ``is_export`` (of a messenger), any text before a colon is a name, and a line without a name is a notice. If
    ``is_stamped``, the line begins with a time, and the names and notices of chat programs are recognised.
    """
    plain = text.lstrip()
    if is_stamped and (match := _IN_ANGLES.match(plain) or _ACTION.match(plain)):
        return match[1], match[2]
    if is_stamped and _NOTICE.match(plain):
        return None
    if is_stamped and "\t" in plain:  # WeeChat: prefix, tab, text
        name, _, said = plain.partition("\t")
        if _NOTICE.match(f"{name.strip()} "):
            return None
        action = _ACTION.match(f"* {said}") if name.strip() == "*" else None
        return (action[1], action[2]) if action else (name.strip(" @+%&~!"), said)
    if is_export:
        match = _LABEL.match(plain)
        return (
            None
            if match is None or _NO_TEXT.fullmatch(match[2].strip())
            else (match[1].strip("~ \u202f\xa0"), match[2])
        )
    speaker, said = split_speaker(text) or ("", text)
    return (speaker, said) if clean(said) else ("", text)  # "Open questions:" is all that the line says
