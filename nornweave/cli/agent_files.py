"""Add an entry to a configuration file of another program, and remove it again. All other text stays unchanged.

JSON is edited as text, a member at a time, so that its other members keep their layout.
In files that have comments (TOML, Markdown) the entry is a block between two marked lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")


class NotEditableError(ValueError):
    """A person has to edit the file; the message says why."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object: the start of its key, and the start and end of its value."""

    key: str
    start: int
    value: int
    end: int


def with_member(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return JSON with a value set at a path of keys. Missing objects on the path are added.

    Raises:
        NotEditableError: it is not plain JSON (it has comments, for instance), or a value on the path is not an object.
    """
    text = text if text.strip() else "{}\n"
    steps = _steps(text, path)
    at, members, member = steps[-1]
    if member:
        return text[: member.value] + _format_value(value, _indent(text, member.start)) + text[member.end :]
    for key in reversed(path[len(steps) :]):
        value = {key: value}
    return _insert_member(text, at, members, path[len(steps) - 1], value)


def without_member(text: str, path: Sequence[str]) -> str:
    """Return JSON without the value at a path of keys and without objects that become empty; empty if nothing is left.

    Raises:
        NotEditableError: as ``with_member``.
    """
    steps = _steps(text, path) if text.strip() else []
    for _, members, member in reversed(steps):
        if member is None:
            return text
        place = members.index(member)
        if place + 1 < len(members):
            return text[: member.start] + text[members[place + 1].start :]
        if place:
            return text[: members[place - 1].end] + text[member.end :]
    return ""


def member_at(text: str, path: Sequence[str]) -> Any:
    """Return the value at a path of keys in a JSON text; ``None`` if there is no value.

    Raises:
        NotEditableError: as ``with_member``.
    """
    member = _steps(text, path)[-1][2] if text.strip() else None
    return json.loads(text[member.value : member.end]) if member else None


def _steps(text: str, path: Sequence[str]) -> list[tuple[int, list[_Member], _Member | None]]:
    """Return for each object on a path of keys its start, its members, and its member with the next key of the path.

    If an object lacks the next key, the member is ``None`` and the path ends there.
    """
    at, steps = _root(text), []
    for key in path:
        if text[at] != "{":
            raise NotEditableError(f"what {key!r} would stand in is not an object")
        members = list(_members(text, at))
        member = next((each for each in members if each.key == key), None)
        steps.append((at, members, member))
        if member is None:
            break
        at = member.value
    return steps


def _root(text: str) -> int:
    """Return the offset of the ``{`` that opens the outermost object."""
    try:
        loaded = json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise NotEditableError(f"it is not plain JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise NotEditableError("it holds no JSON object")
    return text.index("{")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _members(text: str, at: int) -> Iterator[_Member]:
    """Yield the members of the object that starts at ``at``, in order. The text must be valid JSON."""
    at = _after_blank(text, at + 1)
    while text[at] != "}":
        start = at
        key, at = json.JSONDecoder().raw_decode(text, at)
        value = _after_blank(text, _after_blank(text, at) + 1)
        _, end = json.JSONDecoder().raw_decode(text, value)
        yield _Member(key, start, value, end)
        at = _after_blank(text, end)
        if text[at] == ",":
            at = _after_blank(text, at + 1)


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _insert_member(text: str, at: int, members: Sequence[_Member], key: str, value: Mapping[str, Any]) -> str:
    """Return the text with a new last member in the object that starts at ``at``, in the layout of its ``members``."""
    name = json.dumps(key, ensure_ascii=False)
    if members:
        last = members[-1]
        indent = _indent(text, last.start)
        between = ", " if indent is None else f",\n{indent}"
        return text[: last.end] + f"{between}{name}: {_format_value(value, indent)}" + text[last.end :]
    line = text.rfind("\n", 0, at) + 1
    outer = text[line : _after_blank(text, line)] if text[line:at].strip() else text[line:at]
    indent = f"{outer}  "
    inside = f"{{\n{indent}{name}: {_format_value(value, indent)}\n{outer}}}"
    return text[:at] + inside + text[text.index("}", at) + 1 :]


def _indent(text: str, at: int) -> str | None:
    """Return the blanks between the beginning of a line and a place; ``None`` if there is other text between them."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return None if line.strip() or "\n" not in text[:at] else line


def _format_value(value: Mapping[str, Any], indent: str | None) -> str:
    """Return a value as JSON: on several lines with ``indent``, on one line without."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"\n{indent}")


@dataclass(frozen=True, slots=True)
class MarkedBlock:
    """A block of text between two marker lines."""

    begin: str
    end: str

    def put(self, text: str, lines: str) -> str:
        """Return a text with ``lines`` as its marked block, in place of the old block or else at the end.

        Raises:
            NotEditableError: as ``removed``.
        """
        block = f"{self.begin}\n{lines.rstrip()}\n{self.end}"
        if match := self._match(text):
            return text[: match.start(1)] + block + text[match.end(1) :]
        return f"{text}\n{block}\n" if text else f"{block}\n"

    def removed(self, text: str) -> str:
        """Return a text without the block.

        Raises:
            NotEditableError: the block has no end, or is there twice.
        """
        match = self._match(text)
        return text[: match.start()] + text[match.end() :] if match else text

    def _match(self, text: str) -> re.Match[str] | None:
        begins, ends = (text.splitlines().count(line) for line in (self.begin, self.end))
        if begins != ends or begins > 1:
            raise NotEditableError(f"the lines {self.begin!r} and {self.end!r} do not stand there once each")
        block = rf"{re.escape(self.begin)}\r?\n.*?^{re.escape(self.end)}"
        return re.search(rf"(?:^|\r?\n)({block})(?:\r?\n|\Z)", text, re.S | re.M)
