"""Where the rest of a result begins, in a few letters that any serving process understands: nothing is remembered.

``30-1f9c02ab-77e0c4d1`` means: from the 31st on, of what was asked for, out of what was published then. An agent that
repeats the question wrongly is told so. If something was published meanwhile, a note says that the order may differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nornweave.core.errors import QueryError
from nornweave.core.types import digest

DIGITS = 8
_HANDLE = re.compile(rf"([0-9]{{1,6}})-([0-9a-f]{{{DIGITS}}})-([0-9a-f]{{{DIGITS}}})")
CHANGED = "the index has changed since the part before: something may be shown twice or not at all"


@dataclass(frozen=True, slots=True)
class HandlePlace:
    """Where a part of a result begins, and whether it is still a part of the same one."""

    start: int
    notes: tuple[str, ...] = ()


def handle(start: int, asked: Mapping[str, Any], published: object) -> str:
    """Return the handle of a place.

    Args:
        start: of the part, from 0.
        asked: what the result is of.
        published: what it was made from.
    """
    return f"{start}-{_digest(asked)}-{_digest(published)}"


def place_of(after: str | None, asked: Mapping[str, Any], published: object) -> HandlePlace:
    """Read a handle; without one the result begins at its beginning.

    Raises:
        QueryError: it is none, or belongs to another question.
    """
    if after is None:
        return HandlePlace(0)
    match = _HANDLE.fullmatch(after)
    if match is None:
        raise QueryError("after", "not a handle; pass `next` of the result before as it is, or leave it out")
    if match[2] != _digest(asked):
        raise QueryError(
            "after",
            "belongs to another call; repeat its arguments exactly and change nothing but `after`, or leave it out",
        )
    return HandlePlace(int(match[1]), () if match[3] == _digest(published) else (CHANGED,))


def _digest(value: object) -> str:
    return digest(json.dumps(value, sort_keys=True, ensure_ascii=False))[:DIGITS]
