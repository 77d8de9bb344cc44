"""A source of newline-delimited messages: chat logs as text, JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import PurePosixPath
from typing import Any

from nornweave.connect.conversation import (
    clean,
    clean_name,
    conversation,
    gather_threads,
    mappings,
    parse_time,
)
from nornweave.connect.files.exports import FolderSource, split_speaker
from nornweave.connect.transcripts.source import date_of
from nornweave.core.errors import DocumentError, DocumentSkipped
from nornweave.core.text.decode import decode
from nornweave.core.types import Document, Entry, Message, SourceId

SUFFIXES = (".txt", ".log", ".jsonl", ".ndjson", ".json")
_LINES = (".jsonl", ".ndjson", ".json")

# What exports call the same thing, likeliest first.
TEXT_KEYS = ("text", "content", "message", "body")
SPEAKER_KEYS = ("user", "author", "speaker", "username", "sender", "from", "name")
TIME_KEYS = ("ts", "timestamp", "date", "created_at", "time")
THREAD_KEYS = ("thread_id", "thread_ts")
_NAME_KEYS = ("display_name", "name", "login", "username", "id")

_SLACK_TS = re.compile(r"\d{9,11}\.\d{4,6}")
_MOMENT = re.compile(
    r"\s*[\[(]?(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2}| UTC)?)?)[\])]?"
    r"(?:\s*-\s+|\s*,?\s+)(?=\S)"
)
_CLOCK = re.compile(r"\s*[\[(]?([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?[\])]?\s+(?:-\s+)?(?=\S)")


def parse_messages(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of a file of messages.

    Raises:
        DocumentError: broken JSON (line and column are named), or no message in it.
    """
    path = PurePosixPath(entry.path)
    said = read_messages(raw, path)
    if not said:
        raise DocumentSkipped("no message in it says anything")
    return conversation(
        source_id,
        entry,
        raw,
        gather_threads(said),
        format="messages",
        title=path.stem,
        metadata={"source_type": "messages", "channel": path.stem},
    )


def read_messages(raw: bytes, path: PurePosixPath) -> list[Message]:
    """Read the messages of one file, in its order.

    Raises:
        DocumentError: binary, empty, or broken JSON.
    """
    text = decode(raw).replace("\r\n", "\n").replace("\r", "\n")
    if path.suffix.lower() in _LINES or _looks_like_json_lines(text):
        return _from_objects(_json_lines(text))
    began = date_of(path)
    lines = enumerate(text.split("\n"), start=1)
    return [message for number, line in lines if (message := _from_line(line, number, began)) is not None]


def _looks_like_json_lines(text: str) -> bool:
    first = text.lstrip().split("\n", 1)[0]
    try:
        return first.startswith("{") and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _json_lines(text: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise DocumentError(
                f"line {number} column {error.colno}: {error.msg}; expected one JSON object a line"
            ) from error
        except (ValueError, RecursionError) as error:
            raise DocumentError(f"line {number}: no readable JSON ({type(error).__name__})") from error


def _from_objects(numbered: Iterator[tuple[int, object]]) -> list[Message]:
    found = []
    keys: set[str] = set()
    for number, each in numbered:
        content = {"text": each} if isinstance(each, str) else each
        if not isinstance(content, dict):
            raise DocumentError(f"message {number} is a JSON {type(each).__name__}; expected an object with 'text'")
        keys.update(content)
        message = _from_object(content, number)
        if message is not None:
            found.append(message)
    if keys and keys.isdisjoint(TEXT_KEYS):
        raise DocumentError(f"no message has any of the keys {TEXT_KEYS}; found {sorted(keys)[:20]}")
    return found


def _from_object(content: Mapping[str, Any], number: int) -> Message | None:
    said = _first(content, TEXT_KEYS)
    body = clean(str(said)) if isinstance(said, str | int | float) else ""
    if not body:
        return None
    moment = _first(content, TIME_KEYS)
    identifier = content.get("id")
    if identifier in (None, ""):
        identifier = moment if isinstance(moment, str) and _SLACK_TS.fullmatch(moment) else number
    thread = _first(content, THREAD_KEYS)
    channel = _name(content.get("channel"))
    return Message(
        id=clean(str(identifier)),
        speaker=_name(_first(content, SPEAKER_KEYS)),
        body=body,
        thread_id=clean(str(thread)) if thread not in (None, "") else None,
        timestamp=parse_time(moment),
        reactions=_reactions(content.get("reactions")),
        channel=channel or None,
    )


def _first(content: Mapping[str, Any], keys: Sequence[str]) -> object:
    return next((content[key] for key in keys if content.get(key) not in (None, "")), None)


def _name(value: object) -> str:
    if isinstance(value, dict):
        value = _first(value, _NAME_KEYS)
    return clean_name(str(value)) if isinstance(value, (str, int)) else ""


def _reactions(value: object) -> int:
    """Count reactions given as a number, as ``[{"name", "count"}]``, or as ``{name: count}``."""
    if isinstance(value, dict):
        return sum(map(_reactions, value.values()))
    if isinstance(value, list):
        return sum(_reactions(each["count"]) if "count" in each else 1 for each in mappings(value)) or len(value)
    return max(value, 0) if isinstance(value, int) else 0


def _from_line(line: str, number: int, began: datetime | None) -> Message | None:
    """Read ``[2026-01-16 14:22] alice: text``; the time, or the time and the speaker, may be missing."""
    if not line.strip():
        return None
    rest, moment, offset = _without_time(line, began)
    speaker, said = split_speaker(rest) or ("", rest)
    if not clean(said):
        speaker, said = "", rest  # "Open questions:" is all that the line says
    body = clean(said)
    if not body:
        return None
    return Message(id=str(number), speaker=clean_name(speaker), body=body, timestamp=moment, offset=offset)


def _without_time(line: str, began: datetime | None) -> tuple[str, datetime | None, float | None]:
    """Split off a moment, or a time of day, which counts from the file's date, or else from midnight of no day."""
    stamped = _MOMENT.match(line)
    moment = parse_time(stamped[1]) if stamped else None
    if stamped is not None and moment is not None:
        return line[stamped.end() :], moment, None
    clock = _CLOCK.match(line)
    if clock is None:
        return line, None, None
    at = time(int(clock[1]), int(clock[2]), int(clock[3] or 0))
    rest = line[clock.end() :]
    if began is not None:
        return rest, datetime.combine(began.date(), at, UTC), None
    return rest, None, at.hour * 3600.0 + at.minute * 60 + at.second


class MessagesSource(FolderSource):
    """A folder, or a file, of newline-delimited messages."""

    version = "messages-1"
    suffixes = SUFFIXES
    parser = staticmethod(parse_messages)
