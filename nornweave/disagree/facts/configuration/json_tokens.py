"""Read JSON with comments, unquoted keys and trailing commas, whole or cut anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nornweave.disagree.facts.configuration.entries import MAX_DEPTH, MAX_ITEMS, Entry

# Strings that are not closed end with their line, and words begin where one can, so that every character is looked at
# once.
_TOKEN = re.compile(
    r"\"(?P<text>(?:[^\"\\\n]|\\[^\n]?)*+)(?:\"|(?=\n)|\Z)(?P<colon>[ \t\r\n]{0,80}:)?"
    r"|'(?P<single>(?:[^'\\\n]|\\[^\n]?)*+)(?:'|(?=\n)|\Z)(?P<colon1>[ \t\r\n]{0,80}:)?"
    r"|(?P<word>(?<![\w.+-])[-+]?(?:\d|\.\d)[\w.+-]*+|true|false|null|Infinity|NaN)\b"
    r"|(?P<bare>(?<![\w$])[A-Za-z_$][\w$]*+)[ \t]{0,8}:"
    r"|(?P<mark>[{}\[\],])|(?P<remark>//[^\n]*)|/\*"
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


class _Json:
    """The state of reading: the brackets that are open, and the key whose value is awaited."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.stack: list[_Open] = []
        self.too_deep = 0
        self.key: tuple[str, int] | None = None

    def read(self) -> Iterator[Entry]:
        position = 0
        while token := _TOKEN.search(self.text, position):
            position = token.end()
            if token[0] == "/*":
                closed = self.text.find("*/", position)
                position = closed + 2 if closed >= 0 else len(self.text)
            elif token["remark"]:
                continue
            elif (name := _key_of(token)) is not None:
                self.key = (name, token.start())
            elif token["mark"]:
                yield from self._bracket(token["mark"], token)
                self.key = None
            else:
                yield from self._scalar(token)

    def _bracket(self, mark: str, token: re.Match[str]) -> Iterator[Entry]:
        if mark in "{[" and len(self.stack) < MAX_DEPTH:
            _opened(self.stack, self.key, mark, token.start())
        elif mark in "{[":
            self.too_deep += 1
        elif mark in "}]" and self.too_deep:
            self.too_deep -= 1
        elif mark in "}]" and self.stack:
            yield from _closed(self.stack, token.end())

    def _scalar(self, token: re.Match[str]) -> Iterator[Entry]:
        if self.key is not None:
            above = self.stack[-1] if self.stack else None
            if above and above.is_element and not above.key and self.key[0] in _IDENTITY:
                above.key = token[0].strip("\"'")  # the members of a list of objects are known by their names
            if not above or not above.is_element or (above.key and self.key[0] == "default"):
                yield Entry(self.key[0], token[0], self.key[1], token.end(), _above(self.stack))
            self.key = None
        elif self.stack and self.stack[-1].is_list and len(self.stack[-1].items) <= MAX_ITEMS:
            self.stack[-1].items.append(token[0])


def json_entries(text: str) -> Iterator[Entry]:
    """Yield keys with plain values, and lists of plain values; brackets that do not show to open are taken as open."""
    return _Json(text).read()


def _key_of(token: re.Match[str]) -> str | None:
    if token["colon"]:
        return token["text"]
    return token["single"] if token["colon1"] else token["bare"]


def _above(stack: list[_Open]) -> tuple[str, ...]:
    return tuple(one.key for one in stack if one.key)


def _opened(stack: list[_Open], key: tuple[str, int] | None, mark: str, at: int) -> None:
    if stack:
        stack[-1].is_plain = False
    name, start = key or ("", at)
    is_element = bool(stack) and stack[-1].is_list and mark == "{"
    stack.append(_Open(name, start, mark == "[", is_element=is_element))


def _closed(stack: list[_Open], end: int) -> Iterator[Entry]:
    one = stack.pop()
    if one.is_list and one.is_plain and one.key and len(one.items) <= MAX_ITEMS:
        yield Entry(one.key, "", one.start, end, _above(stack), tuple(one.items))
