"""A source of message files: JSON of any exporter, text logs of chats, mailboxes."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from nornweave.connect.conversation import conversation, gather_threads, load_documents
from nornweave.connect.files.exports import FolderSource
from nornweave.connect.messages.log import read_log
from nornweave.connect.messages.records import read_records
from nornweave.connect.transcripts import date_of
from nornweave.core.errors import DocumentSkipped
from nornweave.core.text.decode import decode
from nornweave.core.types import Document, Entry, Message, SourceId
from nornweave.read.formats.mbox import MAIL, read_mail

_JSON = (".jsonl", ".ndjson", ".json")
SUFFIXES = (".txt", ".log", ".weechatlog", *_JSON, *MAIL)


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
