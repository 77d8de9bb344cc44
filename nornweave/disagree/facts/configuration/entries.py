"""The record that every reader of configuration returns: key, value, place, and the keys above."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 1000
"""Characters; longer lines hold data."""
MAX_DEPTH = 40
MAX_ITEMS = 32
"""Of a list that is read as a value."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value.

    Attributes:
        key: as it is written, without quotes.
        value: as it is written, without a comment; empty for a list.
        items: the members of a list, as they are written; ``None`` if the value is none.
        start, end: offsets of key and value in the text.
        parents: the keys above, outermost first.
    """

    key: str
    value: str
    start: int
    end: int
    parents: tuple[str, ...] = ()
    items: tuple[str, ...] | None = None


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield every line that is not too long, without its end, and its offset."""
    at = 0
    for line in text.split("\n"):
        if len(line) <= MAX_LINE:
            yield at, line.rstrip("\r")
        at += len(line) + 1


def without_comment(text: str, marks: str = "#") -> str:
    """Return a value without the comment behind it and without blank space around it.

    A mark counts outside quotes, at the start or behind a blank.
    """
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and (index == 0 or text[index - 1] in " \t[({,="):
            quote = character
        elif character in marks and (index == 0 or text[index - 1] in " \t"):
            return text[:index].strip()
    return text.strip()


_ITEM = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'[^']*+'|[^,\[\]{}\"'\s][^,\[\]{}\"'\n]*")


def items_of(text: str) -> tuple[str, ...] | None:
    """Split ``[a, "b", 3]`` into its members; ``None`` if it is no list of plain values, or a long one."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    inner = text[1:-1]
    if "[" in _ITEM.sub("", inner) or "{" in _ITEM.sub("", inner):
        return None
    found = tuple(match[0].strip() for match in _ITEM.finditer(inner))
    return found if len(found) <= MAX_ITEMS else None
