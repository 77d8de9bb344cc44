"""What is kept of an issue and a comment as Jira gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from nornweave.connect.conversation import as_is, mappings
from nornweave.connect.mirror.feed import Body, Known
from nornweave.core.types import JsonValue

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
        "status": _name(fields.get("status")),
        "resolution": _name(fields.get("resolution")),
        "type": _name(fields.get("issuetype")),
        "priority": _name(fields.get("priority")),
        "labels": [each for each in as_is(fields.get("labels"), list) or () if isinstance(each, str)],
        "components": [_name(each) for each in mappings(fields.get("components"))],
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


def _name(value: object) -> str | None:
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
