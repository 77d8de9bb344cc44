"""The record that the readers of configuration return: key, value, place, and the keys above."""

from __future__ import annotations

from dataclasses import dataclass

MAX_DEPTH = 40
MAX_ITEMS = 32
"""Of a list that is read as a value."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value.

    Attributes:
        key: as it is written, without quotes.
        value: as it is written, without a comment; empty for a list.
        start, end: offsets of key and value in the text.
        parents: the keys above, outermost first.
        items: the members of a list, as they are written; ``None`` if the value is none.
    """

    key: str
    value: str
    start: int
    end: int
    parents: tuple[str, ...] = ()
    items: tuple[str, ...] | None = None
