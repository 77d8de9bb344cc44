"""All fields that a document's head states, as plain JSON within bounds: what declared filters look at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date

from nornweave.core.text.field_names import field_key
from nornweave.core.types import JsonValue

MAX_FIELDS = 200
"""Of one mapping, and members of one list."""
MAX_CHARACTERS = 1_024
MAX_DEPTH = 5
_LARGEST = 2**63 - 1


def plain_fields(fields: Mapping[str, object], depth: int = MAX_DEPTH) -> dict[str, JsonValue]:
    """Return fields as JSON, dates as ISO 8601; what is too deep, too long or too many is left out or cut."""
    plain = ((field_key(str(name)[:MAX_CHARACTERS]), _plain(value, depth)) for name, value in fields.items())
    return dict([(name, value) for name, value in plain if name and value is not None][:MAX_FIELDS])


def _plain(value: object, depth: int) -> JsonValue:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else str(value)[:MAX_CHARACTERS]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return plain_fields(value, depth - 1) if depth > 1 else None
    if isinstance(value, list | tuple):
        return [_plain(member, depth - 1) for member in value[:MAX_FIELDS]] if depth > 1 else None
    return str(value)[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
