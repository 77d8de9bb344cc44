"""An issue of Jira: what is kept of it and its comments, and the document that it becomes.

The document begins with what was reported; then come the comments, by time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from nornweave.connect.conversation import (
    as_is,
    clean,
    clean_name,
    conversation,
    load_stored,
    mappings,
    parse_time,
)
from nornweave.connect.jira.adf import text_of_adf
from nornweave.connect.mirror.feed import Body, Known
from nornweave.core.errors import DocumentSkipped
from nornweave.core.types import Document, Entry, JsonValue, Message, SourceId

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,99})-[0-9]{1,12}", re.ASCII)
_ID = re.compile(r"[0-9]{1,20}")
# JSON that is nested deeper cannot be written again.
_MAX_DEPTH = 200


def issue_body(identity: str, key: str, fields: Mapping[str, Any]) -> Body:
    """Return what is stored of an issue."""
    return {
        "id": identity,
        "key": key,
        "summary": as_is(fields.get("summary"), str) or "",
        "description": _written(fields.get("description")),
        "environment": _written(fields.get("environment")),
        "status": _name_of(fields.get("status")),
        "resolution": _name_of(fields.get("resolution")),
        "type": _name_of(fields.get("issuetype")),
        "priority": _name_of(fields.get("priority")),
        "labels": [each for each in as_is(fields.get("labels"), list) or () if isinstance(each, str)],
        "components": [_name_of(each) for each in mappings(fields.get("components"))],
        "author": _person(fields.get("reporter")) or _person(fields.get("creator")),
        "created": as_is(fields.get("created"), str),
        "updated": as_is(fields.get("updated"), str),
    }


def comment_body(content: Mapping[str, Any]) -> Body:
    """Return what is stored of a comment."""
    return {
        "id": id_of(content),
        "author": _person(content.get("author")),
        "created": as_is(content.get("created"), str),
        "body": _written(content.get("body")),
    }


def is_as_stored(content: Mapping[str, Any], known: Known) -> bool:
    """Tell whether an issue is stored as it is; a comment that comes, changes or goes changes its time too."""
    before = known.body(f"issue/{id_of(content)}/0")
    updated = (as_is(content.get("fields"), dict) or {}).get("updated")
    return before is not None and (before.get("updated"), before.get("key")) == (updated, content.get("key"))


def _written(document: object) -> JsonValue:
    """Return a text as JSON in a text, so that nothing that is nested too deep stands in the way of the rest."""
    depth, level = 0, [document]
    while level and depth < _MAX_DEPTH:
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        depth += 1
    return None if level else json.dumps(document, ensure_ascii=False, sort_keys=True)


def loaded(written: object) -> JsonValue:
    """Return a text of an issue or a comment as Jira gave it."""
    document: JsonValue = json.loads(written) if isinstance(written, str) else None
    return document


def _name_of(value: object) -> str | None:
    return as_is((as_is(value, dict) or {}).get("name"), str)


def _person(value: object) -> str | None:
    return as_is((as_is(value, dict) or {}).get("displayName"), str)


def id_of(content: Mapping[str, Any]) -> str:
    """Return an id, as text of digits.

    Raises:
        ValueError: it is something else.
    """
    text = str(content.get("id"))
    if not _ID.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not an id")
    return text


def key_of(content: Mapping[str, Any]) -> str:
    """Return the key of an issue.

    Raises:
        ValueError: it is something else.
    """
    text = str(content.get("key"))
    if not _KEY.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not the key of an issue")
    return text


_UNKNOWN = "unknown"
_LATEST = datetime.max.replace(tzinfo=UTC)


def jira_document(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of an issue; the message that opens it has the issue's key as its id, a comment its own.

    Raises:
        DocumentSkipped: nothing is said in it.
        DocumentError: too large, or not what the feed wrote.
    """
    issue = load_stored(raw, entry.path)
    key, title = _text(issue, "key"), _text(issue, "summary")
    comments = (_message(issue, each, text_of_adf(each.get("body"))) for each in mappings(issue.get("comments")))
    opening = _message(issue, {**issue, "id": key}, _opening(issue))
    messages = [opening, *sorted(comments, key=_moment)]
    said = [message for message in messages if message.body]
    if not said:
        raise DocumentSkipped("nothing is said in the issue")
    url = _text(issue, "url") or None
    return conversation(
        source_id,
        entry,
        raw,
        said,
        format="jira",
        title=f"{key} {title}".strip() or None,
        metadata={**_metadata(issue), **_permalinks(url)},
        url=url,
        updated_at=parse_time(issue.get("updated")),
    )


def _metadata(issue: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    kind, priority = _text(issue, "type") or None, _text(issue, "priority") or None
    names = (*_names(issue, "labels"), *_names(issue, "components"), kind, priority)
    return {
        "source_type": "jira",
        "state": _text(issue, "status").lower() or None,
        "tags": tuple(dict.fromkeys(name for name in names if name)),
        "issue_type": kind,
        "priority": priority,
        "resolution": _text(issue, "resolution") or None,
    }


def _permalinks(url: str | None) -> Mapping[str, JsonValue]:
    """Return where messages are read: that which opens the issue at its own address, a comment in focus."""
    return {"permalink": url, "thread_permalink": f"{url}?focusedCommentId={{id}}"} if url else {}


def _opening(issue: Mapping[str, Any]) -> str:
    environment = text_of_adf(issue.get("environment")).strip()
    parts = (_text(issue, "summary"), text_of_adf(issue.get("description")))
    said = [*parts, f"Environment: {environment}" if environment else ""]
    return "\n\n".join(part for part in said if part.strip())


def _message(issue: Mapping[str, Any], content: Mapping[str, Any], text: str) -> Message:
    return Message(
        id=clean_name(str(content.get("id"))),
        speaker=_text(content, "author") or _UNKNOWN,
        body=clean(text),
        thread_id=_text(issue, "key") or None,
        timestamp=parse_time(content.get("created")),
        channel=_text(issue, "project") or None,
    )


def _moment(message: Message) -> tuple[datetime, int, str]:
    return message.timestamp or _LATEST, len(message.id), message.id


def _text(content: Mapping[str, Any], key: str) -> str:
    return clean_name(as_is(content.get(key), str) or "")


def _names(content: Mapping[str, Any], key: str) -> Iterator[str]:
    value = content.get(key)
    for each in value if isinstance(value, list) else ():
        if isinstance(each, str) and each.strip():
            yield clean_name(each)
