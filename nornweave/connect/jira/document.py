"""Read an issue of Jira as its feed wrote it: what was reported, then the comments, by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from nornweave.connect.conversation import (
    RawMessage,
    as_is,
    clean,
    clean_name,
    conversation,
    load_stored,
    mappings,
    parse_time,
)
from nornweave.connect.jira.adf import text_of_adf
from nornweave.core.errors import DocumentSkipped
from nornweave.core.types import Document, Entry, JsonValue, SourceId

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


def _message(issue: Mapping[str, Any], content: Mapping[str, Any], text: str) -> RawMessage:
    return RawMessage(
        id=clean_name(str(content.get("id"))),
        speaker=_text(content, "author") or _UNKNOWN,
        body=clean(text),
        thread_id=_text(issue, "key") or None,
        timestamp=parse_time(content.get("created")),
        channel=_text(issue, "project") or None,
    )


def _moment(message: RawMessage) -> tuple[datetime, int, str]:
    return message.timestamp or _LATEST, len(message.id), message.id


def _text(content: Mapping[str, Any], key: str) -> str:
    return clean_name(as_is(content.get(key), str) or "")


def _names(content: Mapping[str, Any], key: str) -> Iterator[str]:
    value = content.get(key)
    for each in value if isinstance(value, list) else ():
        if isinstance(each, str) and each.strip():
            yield clean_name(each)
