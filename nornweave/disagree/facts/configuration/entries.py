"""Read the keys of a configuration file with their values: JSON by its brackets, other formats line by line.

They are read by a table for each, and not by a grammar: a passage may begin and end anywhere, and one YAML file in six
is a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern

MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value.

    Attributes:
        key: as it is written, without quotes.
        value: as it is written, without a comment.
        start, end: offsets of key and value in the text.
        parents: the keys above, outermost first.
    """

    key: str
    value: str
    start: int
    end: int
    parents: tuple[str, ...] = ()


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
    """A bracket that is open: the key that it belongs to.

    ``is_element``: an object in a list. It is data, but for the default that it may declare for what it names.
    """

    key: str
    is_list: bool
    is_element: bool = False


def bracket_entries(text: str) -> Iterator[Entry]:
    """Yield the keys of JSON with plain values; brackets that do not show to open are taken as open."""
    at, key, too_deep = 0, None, 0
    stack: list[_Open] = []
    while token := _TOKEN.search(text, at):
        at, mark, holder = token.end(), token["mark"], stack[-1] if stack else None
        if token[0] == "/*":
            closed = text.find("*/", at)
            at = closed + 2 if closed >= 0 else len(text)
        elif token["remark"]:
            continue
        elif (name := _key_of(token)) is not None:
            key = name, token.start()
        elif mark:
            if mark in "{[" and len(stack) < MAX_DEPTH:
                is_element = holder is not None and holder.is_list and mark == "{"
                stack.append(_Open(key[0] if key else "", mark == "[", is_element))
            elif mark in "{[":
                too_deep += 1
            elif mark in "}]" and too_deep:
                too_deep -= 1
            elif mark in "}]" and stack:
                stack.pop()
            key = None
        elif key is not None:
            yield from _scalar(*key, token, stack)
            key = None


def _scalar(name: str, start: int, token: re.Match[str], stack: list[_Open]) -> Iterator[Entry]:
    written, holder = token[0].rstrip(), stack[-1] if stack else None
    if holder and holder.is_element and not holder.key and name in _IDENTITY:
        holder.key = written.strip("\"'")  # the members of a list of objects are known by their names
    if not holder or not holder.is_element or (holder.key and name == "default"):
        parents = tuple(bracket.key for bracket in stack if bracket.key)
        yield Entry(name, written, start, token.start() + len(written), parents)


def _key_of(token: re.Match[str]) -> str | None:
    if token["colon"]:
        return token["text"]
    return token["single"] if token["single_colon"] else token["key"]


MAX_LINE = 1000
"""Characters; longer lines hold data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSyntax:
    """How a format writes settings.

    Attributes:
        setting: what stands before a value: ``key``, in YAML ``indent`` and ``item`` before it.
        remark: what begins a comment line; ``marks`` are characters that begin a comment behind a value.
        trailing: characters behind a value that do not belong to it.
        section: the header of a section, in which ``name`` stands.
        opaque: how values begin that only refer to another (anchors of YAML), or go on below.
    """

    setting: re.Pattern[str]
    remark: tuple[str, ...]
    marks: str = "#"
    trailing: str = " \t"
    section: re.Pattern[str] | None = None
    opaque: str = ""


YAML = LineSyntax(
    setting=lazy_pattern(
        r"(?P<indent>[ \t]*)(?P<item>(?:-[ \t]+){0,4})"
        r"(?P<quote>[\"']?)(?P<key>[A-Za-z_@][\w.\-/@ ]{0,79}?)(?P=quote)[ \t]{0,8}:(?:[ \t]+|$)"
    ),
    remark=("#",),
    opaque="&*!",
)
SECTIONS = LineSyntax(
    setting=lazy_pattern(
        r"[ \t]*(?:export[ \t]+|readonly[ \t]+|local[ \t]+|ENV[ \t]+|ARG[ \t]+|set[ \t]+)?"
        r"(?P<quote>\"?)(?P<key>[A-Za-z_](?:[\w.\-]|(?<=\w)[/@ ](?=[^\"\n]*\"[ \t]*=)){0,79})(?P=quote)[ \t]{0,40}"
        r"(?:[:?+]?=(?!=)|:(?=[ \t]))[ \t]*"
    ),
    remark=("#", ";", "!"),
    marks="#;",
    trailing=" \t\\",
    section=lazy_pattern(r"[ \t]*\[{1,2}(?P<name>[\w.\-\"' :/\t]{1,120})\]{1,2}[ \t]*(?:[#;][^\n]*)?$"),
)
_BLOCK_SCALAR = lazy_pattern(r"[|>][+-]?\d?")


class _LineReader:
    """Reads one text; holds the keys above the line at hand, each with its column."""

    def __init__(self, text: str, syntax: LineSyntax) -> None:
        self._text = text
        self._syntax = syntax
        self._stack: list[tuple[int, tuple[str, ...]]] = []
        self._scalar_column: int | None = None
        self._named: tuple[int, str] | None = None

    def read(self) -> Iterator[Entry]:
        """Yield the settings in order."""
        at = 0
        for line in self._text.split("\n"):
            bare = line.strip(" \t\r")
            if bare and len(line) <= MAX_LINE and not bare.startswith(self._syntax.remark):
                yield from self._line(line.rstrip("\r"), bare, at)
            at += len(line) + 1

    def _line(self, line: str, bare: str, at: int) -> Iterator[Entry]:
        header = self._syntax.section.match(line) if self._syntax.section and bare[0] == "[" else None
        if header is not None:
            keys = tuple(part.strip("\"' ") for part in re.split(r"[.:]", header["name"]) if part.strip("\"' "))
            self._stack = [(0, keys)]
        elif (match := self._syntax.setting.match(line)) is not None:
            yield from self._setting(match, line, at)

    def _setting(self, match: re.Match[str], line: str, at: int) -> Iterator[Entry]:
        column, is_indented = 0, self._syntax is YAML
        if is_indented:
            column = len(match["indent"]) + len(match["item"])
            if self._scalar_column is not None and column > self._scalar_column:
                return  # inside of a text
            self._scalar_column = None
        while is_indented and self._stack and self._stack[-1][0] >= column:
            self._stack.pop()
        value = without_comment(line[match.end() :], self._syntax.marks).rstrip(self._syntax.trailing)
        end = at + match.end() + len(value)
        parents = tuple(key for _, keys in self._stack for key in keys)
        entry = Entry(match["key"], value, at + match.start("key"), end, parents)
        if is_indented and _BLOCK_SCALAR.fullmatch(value):
            self._scalar_column = column
        elif value and value[0] not in self._syntax.opaque and (value[0] not in "[{" or value[:2] in {"{{", "{%"}):
            yield self._renamed(entry, column)
        elif not value and is_indented and len(self._stack) < MAX_DEPTH:
            self._stack.append((column, (entry.key,)))

    def _renamed(self, entry: Entry, column: int) -> Entry:
        """Read ``- name: TIMEOUT`` with ``value: 30`` below as a setting of that name."""
        if self._syntax is not YAML:
            return entry
        if entry.key == "name":
            self._named = (column, entry.value.strip("\"'"))
        elif entry.key in {"value", "default"} and self._named and self._named[0] == column:
            key = self._named[1] if entry.key == "value" else entry.key
            parents = entry.parents if entry.key == "value" else (*entry.parents, self._named[1])
            return Entry(key, entry.value, entry.start, entry.end, parents)
        return entry


def line_entries(text: str, syntax: LineSyntax) -> Iterator[Entry]:
    """Yield the settings of a text with plain values, in order."""
    return _LineReader(text, syntax).read()


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
