"""An issue of Jira: what is kept of it and its comments, and the document that it becomes.

The document begins with what was reported; then come the comments, by time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from nornweave.connect.conversation import as_is, clean, clean_name, mappings, parse_time, to_canonical
from nornweave.connect.jira.adf import text_of_adf
from nornweave.connect.mirror.atlassian import id_of
from nornweave.connect.mirror.known import Body
from nornweave.core.types import Message

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,99})-[0-9]{1,12}", re.ASCII)
_LATEST = datetime.max.replace(tzinfo=UTC)


def issue_body(content: Mapping[str, Any], fields: Mapping[str, Any]) -> Body:
    """Return what is stored of an issue."""
    components = (_named(each, "name") for each in mappings(fields.get("components")))
    labels = (each for each in as_is(fields.get("labels"), list) or () if isinstance(each, str))
    return {
        "id": key_of(content),
        "summary": _line(fields.get("summary")),
        "description": text_of_adf(fields.get("description")),
        "environment": text_of_adf(fields.get("environment")).strip(),
        "status": _named(fields.get("status"), "name"),
        "resolution": _named(fields.get("resolution"), "name"),
        "type": _named(fields.get("issuetype"), "name"),
        "priority": _named(fields.get("priority"), "name"),
        "names": [name for each in (*labels, *components) if (name := clean_name(each))],
        "author": _named(fields.get("reporter"), "displayName") or _named(fields.get("creator"), "displayName"),
        "created": as_is(fields.get("created"), str),
        "updated": as_is(fields.get("updated"), str),
    }


def comment_body(content: Mapping[str, Any]) -> Body:
    """Return what is stored of a comment."""
    return {
        "id": id_of(content.get("id")),
        "author": _named(content.get("author"), "displayName"),
        "created": as_is(content.get("created"), str),
        "body": text_of_adf(content.get("body")),
    }


def key_of(content: Mapping[str, Any]) -> str:
    """Return the key of an issue.

    Raises:
        ValueError: it is something else.
    """
    text = str(content.get("key"))
    if not _KEY.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not the key of an issue")
    return text


def issue_bytes(issue: Body, comments: Sequence[Body], project: str, url: str) -> bytes:
    """Return the conversation of an issue; the message that opens it has the issue's key as its id."""
    key, kind, priority = issue["id"], issue["type"] or None, issue["priority"] or None
    opening = _message({**issue, "body": "\n\n".join(_reported(issue))}, key, project)
    said = sorted((_message(each, key, project) for each in comments), key=_moment)
    header = {
        "format": "jira",
        "title": f"{key} {issue['summary']}".strip(),
        "url": url,
        "updated_at": issue["updated"],
        "metadata": {
            "source_type": "jira",
            "state": issue["status"].lower() or None,
            "tags": list(dict.fromkeys(name for name in (*issue["names"], kind, priority) if name)),
            "issue_type": kind,
            "priority": priority,
            "resolution": issue["resolution"] or None,
            "permalink": url,
            "thread_permalink": f"{url}?focusedCommentId={{id}}",
        },
    }
    return to_canonical(header, [message for message in (opening, *said) if message.body])


def _reported(issue: Body) -> Iterator[str]:
    environment = f"Environment: {issue['environment']}" if issue["environment"] else ""
    yield from (part for part in (issue["summary"], issue["description"], environment) if part.strip())


def _message(content: Body, key: str, project: str) -> Message:
    return Message(
        id=content["id"],
        speaker=content["author"] or "unknown",
        body=clean(content["body"]),
        thread_id=key,
        timestamp=parse_time(content["created"]),
        channel=project,
    )


def _moment(message: Message) -> tuple[datetime, int, str]:
    return message.timestamp or _LATEST, len(message.id), message.id


def _named(value: object, key: str) -> str:
    return _line((as_is(value, dict) or {}).get(key))


def _line(value: object) -> str:
    return clean_name(as_is(value, str) or "")
