"""Read what stands in brackets: JSON, whole or cut anywhere, and the lists and mappings of YAML, TOML and HCL.

Comments, unquoted keys and words, ``=`` for ``:`` and trailing commas are read in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nornweave.core.text.patterns import lazy_pattern

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


# Strings that are not closed end with their line, and words begin where one can, so that every character is looked at
# once.
_TOKEN = lazy_pattern(
    r"\"(?P<text>(?:[^\"\\\n]|\\[^\n]?)*+)(?:\"|(?=\n)|\Z)(?P<colon>[ \t\r\n]{0,80}[:=])?"
    r"|'(?P<single>(?:[^'\\\n]|\\[^\n]?)*+)(?:'|(?=\n)|\Z)(?P<single_colon>[ \t\r\n]{0,80}[:=])?"
    r"|(?P<mark>[{}\[\],])|(?P<remark>//[^\n]*|#[^\n]*)|/\*"
    r"|(?P<key>(?<![\w$.])[A-Za-z_$][\w$.-]*+)[ \t]{0,8}(?::(?!/)|=)"
    r"|(?P<word>(?<![^\s{}\[\],:=])[\w$+.@%~<>(*&!?/-][^\n\"'{}\[\],#]*+)"
)
_IDENTITY = frozenset({"name", "key", "id"})


@dataclass(slots=True)
class _Open:
    """A bracket that is open: the key that it belongs to, and what a list holds if it holds plain values only.

    ``is_element``: an object in a list. It is data, but for the default that it may declare for what it names.
    """

    key: str
    start: int
    is_list: bool
    items: list[str] = field(default_factory=list)
    is_plain: bool = True
    is_element: bool = False


class BracketReader:
    """Yields keys with plain values, and lists of plain values.

    Args:
        above: the keys above what is read.
        key: the key whose value begins where reading begins, with its offset.
    """

    def __init__(self, text: str, *, above: tuple[str, ...] = (), key: tuple[str, int] | None = None) -> None:
        self._text = text
        self._above = above
        self._key = key
        self._stack: list[_Open] = []
        self._too_deep = 0
        self._is_value = False
        self.closed_at: int | None = None
        """Behind the bracket that closes the first one that is open, once it was read."""

    def read(self, at: int = 0, end: int | None = None) -> Iterator[Entry]:
        """Read a stretch; brackets that do not show to open are taken as open."""
        end = len(self._text) if end is None else end
        while not (self._is_value and self.closed_at) and (token := _TOKEN.search(self._text, at, end)):
            at = token.end()
            if token[0] == "/*":
                closed = self._text.find("*/", at, end)
                at = closed + 2 if closed >= 0 else end
            elif token["remark"]:
                continue
            elif (name := _key_of(token)) is not None:
                self._key = (name, token.start())
            elif token["mark"]:
                yield from self._bracket(token["mark"], token)
                self._key = None
            else:
                yield from self._scalar(token)

    def read_value(self, at: int, end: int) -> list[Entry]:
        """Read one list or mapping that begins at ``at``; ``closed_at`` stays ``None`` if it does not end in time."""
        self._is_value = True
        return list(self.read(at, end))

    def _bracket(self, mark: str, token: re.Match[str]) -> Iterator[Entry]:
        if mark in "{[" and len(self._stack) < MAX_DEPTH:
            self._open(mark, token.start())
        elif mark in "{[":
            self._too_deep += 1
        elif mark in "}]" and self._too_deep:
            self._too_deep -= 1
        elif mark in "}]" and self._stack:
            yield from self._close(token.end())

    def _open(self, mark: str, at: int) -> None:
        if self._stack:
            self._stack[-1].is_plain = False
        name, start = self._key or ("", at)
        is_element = bool(self._stack) and self._stack[-1].is_list and mark == "{"
        self._stack.append(_Open(name, start, mark == "[", is_element=is_element))

    def _close(self, end: int) -> Iterator[Entry]:
        closed = self._stack.pop()
        if not self._stack:
            self.closed_at = end
        if closed.is_list and closed.is_plain and closed.key and len(closed.items) <= MAX_ITEMS:
            yield Entry(closed.key, "", closed.start, end, self._parents(), tuple(closed.items))

    def _scalar(self, token: re.Match[str]) -> Iterator[Entry]:
        written = token[0].rstrip()
        holder = self._stack[-1] if self._stack else None
        if self._key is not None:
            name, start = self._key
            if holder and holder.is_element and not holder.key and name in _IDENTITY:
                holder.key = written.strip("\"'")  # the members of a list of objects are known by their names
            if not holder or not holder.is_element or (holder.key and name == "default"):
                yield Entry(name, written, start, token.start() + len(written), self._parents())
            self._key = None
        elif holder and holder.is_list and len(holder.items) <= MAX_ITEMS:
            holder.items.append(written)

    def _parents(self) -> tuple[str, ...]:
        return (*self._above, *(bracket.key for bracket in self._stack if bracket.key))


def _key_of(token: re.Match[str]) -> str | None:
    if token["colon"]:
        return token["text"]
    return token["single"] if token["single_colon"] else token["key"]
