"""Build the document of a conversation from messages, in the same way for all conversational sources.

All conversational sources use it, so that Slack days, issues, transcripts and message files give the same structure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter

from nornweave.core.errors import DocumentError, DocumentSkipped
from nornweave.core.text.dates import utc
from nornweave.core.text.decode import check_size, whole_characters
from nornweave.core.text.messages import INDENT, indented_body, line_of, passages
from nornweave.core.types import (
    ContentHash,
    Document,
    Domain,
    Entry,
    JsonValue,
    Message,
    SourceId,
    Span,
    digest,
    document_id,
    freeze,
)

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_NUMBER = re.compile(r"[+-]?\d{9,22}(?:\.\d{1,9})?")

_BLANK = re.compile(r"[ \t\r\n,]*")  # some write a comma after each document
_DECODER = json.JSONDecoder()

# An epoch number above these is in milli-, micro- or nanoseconds: seconds stay below 1e11 until the year 5138.
_EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def clean(text: str) -> str:
    """Return text with LF line ends and without control characters or lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return whole_characters(_CONTROL.sub(" ", text)).strip()


def clean_name(name: str) -> str:
    """Return a speaker's or channel's name on one line, without ``: ``."""
    return " ".join(clean(name).split()).replace(": ", " ")


def render(said: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """Join messages to one text, one line each, in the given order.

    Returns:
        The text, and the messages with their spans. The spans cover the text except for the newlines between the
        messages.
    """
    lines: list[str] = []
    messages: list[Message] = []
    start = 0
    for each in said:
        line = line_of(each.speaker, each.body) if each.is_labelled else f"{INDENT}{indented_body(each.body)}"
        messages.append(replace(each, span=Span(start, start + len(line))))
        lines.append(line)
        start += len(line) + 1
    return "\n".join(lines), tuple(messages)


def _with_authors(message: Message) -> Iterator[Message]:
    """Split a message into its own text and quotations, each with its author if known."""
    for part in passages(message.body):
        speaker = message.speaker if part.author is None else clean_name(part.author)
        yield replace(message, body=part.text, speaker=speaker)


def gather_threads(raw: Iterable[Message]) -> list[Message]:
    """Put the messages of each channel and thread together, at the place of the first one of them.

    This is necessary because replies are interleaved with other messages, but a chunk is one span of text.
    """
    channels: dict[str | None, dict[tuple[str, str | int], list[Message]]] = {}
    for number, each in enumerate(raw):
        key = ("alone", number) if each.thread_id is None else ("thread", each.thread_id)
        channels.setdefault(each.channel, {}).setdefault(key, []).append(each)
    return [each for threads in channels.values() for thread in threads.values() for each in thread]


def conversation(
    source_id: SourceId,
    entry: Entry,
    content: bytes,
    raw: Sequence[Message],
    *,
    format: str,  # noqa: A002 - the field's name in types.Document
    title: str | None,
    metadata: Mapping[str, JsonValue],
    url: str | None = None,
    updated_at: datetime | None = None,
) -> Document:
    """Build the document of a conversation.

    Args:
        entry: the document's entry in the source. The entry's metadata is added, but a key in ``metadata`` overrides
            it.
        content: the bytes that ``fetch`` returned.
        raw: at least one message. The messages of one channel must be contiguous.
        metadata: ``source_type``, ``channel`` and other keys. The key ``participants`` is added here.
        url: the address at which people read the conversation.
        updated_at: the default is the time of the latest message, or else the time of the entry.
    """
    if format != "transcript":  # in captions ">>" means that somebody else speaks
        raw = [part for each in raw for part in _with_authors(each)]
    text, messages = render(raw)
    latest = max((each.timestamp for each in messages if each.timestamp is not None), default=entry.updated_at)
    people = tuple(sorted({each.speaker for each in messages if each.speaker}))
    return Document(
        id=document_id(source_id, entry.path),
        domain=Domain.CONVERSATIONS,
        source_id=source_id,
        path=entry.path,
        text=text,
        format=format,
        content_hash=ContentHash(digest(content)),
        title=title,
        updated_at=updated_at or latest,
        revision=entry.revision,
        url=url,
        metadata=freeze({**entry.metadata, **metadata, **_channel(messages), "participants": people}),
        messages=messages,
    )


def conversation_document(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document from the bytes of ``to_canonical``.

    The header has ``format`` and ``metadata``. It also has ``title``, ``url`` and ``updated_at`` if they are known.

    Raises:
        DocumentSkipped: the conversation has no messages.
        DocumentError: the content is too large, or ``to_canonical`` did not write it.
    """
    check_size(len(raw))
    header, messages = from_canonical(raw, entry.path)
    if not messages:
        raise DocumentSkipped(f"{entry.path}: nobody says anything in it")
    stated = as_is(header.get("metadata"), dict) or {}
    return conversation(
        source_id,
        entry,
        raw,
        messages,
        format=str(header.get("format")),
        title=header.get("title"),
        metadata={key: tuple(each) if isinstance(each, list) else each for key, each in stated.items()},
        url=header.get("url"),
        updated_at=parse_time(header.get("updated_at")),
    )


def _channel(messages: Iterable[Message]) -> dict[str, JsonValue]:
    """Return the metadata with the channel of the messages.

    The value is ``None`` if there are several channels, because each message then names its own. Without a channel the
    metadata is empty.
    """
    names = {each.channel or None for each in messages}
    return {} if names == {None} else {"channel": names.pop() if len(names) == 1 else None}


def parse_time(value: object) -> datetime | None:
    """Parse a time of an export: ISO 8601, RFC 5322, epoch seconds to nanoseconds, Slack ``ts``.

    Returns:
        The time in UTC. A time without a zone is taken as UTC. ``None`` if the value is not a time.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
            return utc(_from_text(value.strip()))
        number = float(value)
        divisor = next((unit for above, unit in _EPOCH_UNITS if abs(number) >= above), 1.0)
        return datetime.fromtimestamp(number / divisor, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _from_text(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.replace(",", ".").removesuffix(" UTC"))
    except ValueError:
        return parsedate_to_datetime(text)


def load_stored(raw: bytes, path: str) -> dict[str, Any]:
    """Parse an object that a feed wrote.

    Raises:
        DocumentError: the content is too large, or the feed did not write it.
    """
    check_size(len(raw))
    stored = load_json(raw, path)
    if not isinstance(stored, dict):
        raise DocumentError(f"{path}: not what was fetched from this source; sync again")
    return stored


def load_json(raw: bytes | str, where: str) -> Any:
    """Read one JSON document.

    Raises:
        DocumentError: the text is not JSON. The message names ``where``, the line and the column.
    """
    documents = load_documents(raw, where)
    if len(documents) != 1:
        raise DocumentError(
            f"{where}: {len(documents)} JSON documents in one file; expected one. Export the file again."
        )
    return documents[0][1]


def load_documents(raw: bytes | str, where: str) -> list[tuple[int, Any]]:
    """Parse consecutive JSON documents: a single one, one per line, or the joined lists of ``gh api --paginate``.

    Returns:
        Pairs of a line number and a document. The number, from 1, is that of the line on which the document begins.

    Raises:
        DocumentError: a document is not JSON. The message names ``where``, the line and the column.
    """
    documents: list[tuple[int, Any]] = []
    try:
        text = (
            (raw.decode(json.detect_encoding(raw)) if isinstance(raw, bytes) else raw).removeprefix("\ufeff").rstrip()
        )
        at, line, counted = 0, 1, 0
        while documents == [] or at < len(text):
            at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
            line += text.count("\n", counted, at)
            counted = at
            document, at = _DECODER.raw_decode(text, at)
            documents.append((line, document))
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"{where}: line {error.lineno} column {error.colno}: {error.msg}; expected JSON. Export the file again."
        ) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{where}: byte {error.start} is not UTF-8; expected JSON in UTF-8.") from error
    except RecursionError as error:
        raise DocumentError(f"{where}: nested too deeply; expected a list of messages.") from error
    except ValueError as error:
        raise DocumentError(f"{where}: not readable as JSON ({error}).") from error
    return documents


_Value = TypeVar("_Value")


def as_is(value: object, kind: type[_Value]) -> _Value | None:
    """Return ``value`` if it has the type, else ``None``. Fields of exports may have any type."""
    return value if isinstance(value, kind) else None


def mappings(value: object) -> list[dict[str, Any]]:
    """Return the objects in a JSON list. The result is empty if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


_MESSAGES = TypeAdapter(tuple[Message, ...])


def to_canonical(header: Mapping[str, JsonValue], raw: Iterable[Message]) -> bytes:
    """Write a conversation as canonical JSON: equal contents give equal bytes."""
    messages = _MESSAGES.dump_python(tuple(raw), mode="json", exclude_defaults=True)
    content = {**header, "messages": messages}
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")


def from_canonical(content: bytes, path: str) -> tuple[dict[str, Any], tuple[Message, ...]]:
    """Read the JSON of ``to_canonical``.

    Raises:
        DocumentError: ``to_canonical`` did not write the content.
    """
    header = load_json(content, path)
    try:
        messages = _MESSAGES.validate_python(header.pop("messages"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        found = type(error).__name__
        raise DocumentError(f"{path}: not what was fetched from this source ({found}); sync again.") from error
    return header, messages
