"""Read YAML line by line, because a passage may begin and end anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.disagree.facts.configuration.entries import (
    MAX_DEPTH,
    MAX_ITEMS,
    Entry,
    items_of,
    lines_of,
    without_comment,
)

_KEY = re.compile(
    r"(?P<indent>[ \t]*)(?P<item>(?:-[ \t]+){0,4})"
    r"(?P<quote>[\"']?)(?P<key>[A-Za-z_@][\w.\-/@ ]{0,79}?)(?P=quote)[ \t]{0,8}:(?:[ \t]+|$)"
)
_SCALAR_ITEM = re.compile(r"(?P<indent>[ \t]*)-[ \t]+(?P<value>[^\s\[{&*!|>][^\n]*)$")
_BLOCK = re.compile(r"[|>][+-]?\d?")
_FLOW = re.compile(
    r"[\"']?(?P<key>[A-Za-z_][\w.\-]{0,60})[\"']?[ \t]{0,8}:[ \t]+"
    r"(?P<value>\"[^\"]{0,200}\"|'[^']{0,200}'|[^,{}\[\]\"']{1,200})"
)


class _Yaml:
    """The state of reading: the keys above, and the list that is being collected."""

    def __init__(self) -> None:
        self.stack: list[tuple[int, str]] = []
        self.block_depth: int | None = None
        self.opened: tuple[int, str, int, tuple[str, ...]] | None = None
        self.items: list[str] = []
        self.items_end = 0
        self.named: tuple[int, str] | None = None

    def parents(self) -> tuple[str, ...]:
        return tuple(key for _, key in self.stack)

    def close_list(self) -> Iterator[Entry]:
        """Yield the list that ends here, if it is a short one of plain values."""
        if self.opened and self.items and len(self.items) <= MAX_ITEMS:
            _, key, start, parents = self.opened
            if all("=" in item for item in self.items):
                for item in self.items:
                    name, _, value = item.strip("\"'").partition("=")
                    yield Entry(name, value, start, self.items_end, (*parents, key))
            else:
                yield Entry(key, "", start, self.items_end, parents, tuple(self.items))
        self.opened, self.items = None, []


def yaml_entries(text: str) -> Iterator[Entry]:
    """Yield the keys of YAML with plain values or short lists of them, in order."""
    state = _Yaml()
    for at, line in lines_of(text):
        bare = line.lstrip(" \t")
        if not bare or bare[0] == "#":
            continue
        match = _KEY.match(line) if ":" in line else None
        if match is not None:
            yield from _keyed(state, match, line, at)
        elif state.opened and (item := _SCALAR_ITEM.match(line)) and len(item["indent"]) >= state.opened[0]:
            state.items.append(without_comment(item["value"]))
            state.items_end = at + len(line.rstrip())
        else:
            state.opened, state.items = None, []
    yield from state.close_list()


def _keyed(state: _Yaml, match: re.Match[str], line: str, at: int) -> Iterator[Entry]:
    depth = len(match["indent"]) + len(match["item"])
    if state.block_depth is not None and depth > state.block_depth:
        return
    state.block_depth = None
    yield from state.close_list()
    while state.stack and state.stack[-1][0] >= depth:
        state.stack.pop()
    parents, key = state.parents(), match["key"]
    value = without_comment(line[match.end() :])
    start = at + match.start("key")
    end = at + line.find(value, match.end()) + len(value) if value else start + len(key)
    if _BLOCK.fullmatch(value):
        state.block_depth = depth
    elif value.startswith("{"):
        yield from _flow(value, end - len(value), (*parents, key))
    elif value.startswith("["):
        if (items := items_of(value)) is not None:
            yield Entry(key, "", start, end, parents, items)
    elif value and value[0] not in "&*!":
        yield _named(state, Entry(key, value, start, end, parents), depth)
    elif not value:
        state.opened = (len(match["indent"]), key, start, parents)
        state.items_end = end
        if len(state.stack) < MAX_DEPTH:
            state.stack.append((depth, key))


def _named(state: _Yaml, entry: Entry, depth: int) -> Entry:
    """Read ``- name: TIMEOUT`` with ``value: 30`` below as a setting of that name."""
    if entry.key == "name":
        state.named = (depth, entry.value.strip("\"'"))
    elif entry.key in {"value", "default"} and state.named and state.named[0] == depth:
        key = state.named[1] if entry.key == "value" else entry.key
        parents = entry.parents if entry.key == "value" else (*entry.parents, state.named[1])
        return Entry(key, entry.value, entry.start, entry.end, parents)
    return entry


def _flow(value: str, at: int, parents: tuple[str, ...]) -> Iterator[Entry]:
    """Read a mapping in braces of one level."""
    for match in _FLOW.finditer(value):
        end = match.start("value") + len(match["value"].rstrip())
        yield Entry(match["key"], match["value"].strip(), at + match.start("key"), at + end, parents)
