"""Read formats that write one setting a line: YAML, TOML, INI, ``.env``, shell, HCL, nginx, Dockerfiles.

They are read line by line with a table for each, and not by a grammar: a passage may begin and end anywhere, one YAML
file in six is a template, and of nginx and HOCON there is no grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.configuration.brackets import MAX_DEPTH, MAX_ITEMS, BracketReader, Entry

MAX_LINE = 1000
"""Characters; longer lines hold data."""
MAX_BRACKETS = 8_000
"""Characters of a list or mapping in brackets."""
MAX_UNCLOSED = 64_000
"""Characters of one text that are read in vain, in search of closing brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSyntax:
    """How a format writes settings.

    Attributes:
        setting: what stands before a value: ``key``, in YAML ``indent`` and ``item`` before it.
        remark: what begins a comment line; ``marks`` are characters that begin a comment behind a value.
        trailing: characters behind a value that do not belong to it.
        item: a line that adds ``value`` to the list above.
        section: the header of a section, in which ``name`` stands.
        has_braces: ``name {`` opens a block.
        opaque: how values begin that only refer to another (anchors of YAML).
    """

    setting: re.Pattern[str]
    remark: tuple[str, ...]
    marks: str = "#"
    trailing: str = " \t"
    item: re.Pattern[str] | None = None
    section: re.Pattern[str] | None = None
    has_braces: bool = False
    opaque: str = ""


YAML = LineSyntax(
    setting=lazy_pattern(
        r"(?P<indent>[ \t]*)(?P<item>(?:-[ \t]+){0,4})"
        r"(?P<quote>[\"']?)(?P<key>[A-Za-z_@][\w.\-/@ ]{0,79}?)(?P=quote)[ \t]{0,8}:(?:[ \t]+|$)"
    ),
    remark=("#",),
    item=lazy_pattern(r"(?P<indent>[ \t]*)-[ \t]+(?P<value>[^\s\[{&*!|>][^\n]*)$"),
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
    item=lazy_pattern(r"(?P<indent>[ \t]+)(?P<value>[^\s#;][^\n]*)$"),
    section=lazy_pattern(r"[ \t]*\[{1,2}(?P<name>[\w.\-\"' :/\t]{1,120})\]{1,2}[ \t]*(?:[#;][^\n]*)?$"),
)
BLOCKS = LineSyntax(
    setting=lazy_pattern(
        r"[ \t]*(?P<quote>\"?)(?P<key>[A-Za-z_][\w.\-]{0,79})(?P=quote)"
        r"(?:[ \t]{0,60}(?:=(?!=)|:(?=[ \t]))[ \t]*|[ \t]+(?=[^\s;]+;[ \t]*(?:#[^\n]*)?$))"
    ),
    remark=("#", "//"),
    trailing=";, \t",
    has_braces=True,
)
_BLOCK_SCALAR = lazy_pattern(r"[|>][+-]?\d?")
_VARIABLE = lazy_pattern(r"[\"']?(?P<name>-{0,2}[\w.-]+)=(?!=)(?P<value>[^\n]*)")
_WORD = lazy_pattern(r"[\w.\-]{1,80}")
_EXPOSED = lazy_pattern(r"[ \t]*EXPOSE[ \t]+(?P<value>\d{2,5})(?:/\w{3,4})?[ \t]*$", re.IGNORECASE)
_ENVIRONMENT = lazy_pattern(
    r"[ \t]*ENV[ \t]+(?P<key>[A-Za-z_]\w{0,79})[ \t]+(?P<value>[^\s=][^\n]{0,300})$", re.IGNORECASE
)
_FLAG = lazy_pattern(r"--(?P<key>[a-z][a-z-]{1,40})[= ](?P<value>\d[\w.]{0,20})")


@dataclass(slots=True)
class _OpenList:
    """A key without a value: the lines below may be its members."""

    column: int
    key: str
    start: int
    end: int
    parents: tuple[str, ...]
    items: list[str] = field(default_factory=list)

    def entries(self) -> Iterator[Entry]:
        """Yield the list if it is a short one of plain values; one of ``NAME=value`` as settings."""
        variables = [_VARIABLE.fullmatch(item) for item in self.items]
        if len(self.items) > MAX_ITEMS or not self.items:
            return
        if not all(variables):
            yield Entry(self.key, "", self.start, self.end, self.parents, tuple(self.items))
        for variable in variables if all(variables) else ():
            if variable:
                value = variable["value"].rstrip("\"'")
                yield Entry(variable["name"], value, self.start, self.end, (*self.parents, self.key))


class _LineReader:
    """Reads one text; holds the keys above the line at hand, each with its column, and the list that is open."""

    def __init__(self, text: str, syntax: LineSyntax) -> None:
        self._text = text
        self._syntax = syntax
        self._stack: list[tuple[int, tuple[str, ...]]] = []
        self._list: _OpenList | None = None
        self._scalar_column: int | None = None
        self._named: tuple[int, str] | None = None
        self._next = 0
        self._unclosed = 0

    def read(self) -> Iterator[Entry]:
        """Yield the settings in order."""
        while self._next <= len(self._text):
            at = self._next
            end = self._text.find("\n", at)
            end = len(self._text) if end < 0 else end
            self._next = end + 1
            if end - at <= MAX_LINE:
                yield from self._line(self._text[at:end].rstrip("\r"), at)
        yield from self._close_list()

    def _line(self, line: str, at: int) -> Iterator[Entry]:
        bare = line.strip(" \t")
        if not bare or bare.startswith(self._syntax.remark):
            return
        if self._syntax.has_braces and self._brace(bare):
            return
        header = self._syntax.section.match(line) if self._syntax.section and bare[0] == "[" else None
        if header is not None:
            yield from self._close_list()
            keys = tuple(part.strip("\"' ") for part in re.split(r"[.:]", header["name"]) if part.strip("\"' "))
            self._stack = [(0, keys)]
        elif self._syntax.item and self._list and (item := self._syntax.item.match(line)) and self._add_item(item, at):
            return
        elif (match := self._syntax.setting.match(line)) is not None:
            yield from self._setting(match, line, at)
        else:
            self._list = None

    def _add_item(self, item: re.Match[str], at: int) -> bool:
        """Add a line to the open list; ``False`` if it is none of its members."""
        if not self._list or len(item["indent"]) < self._list.column or self._syntax.setting.match(item.string):
            return False
        if len(self._list.items) <= MAX_ITEMS:
            self._list.items.append(without_comment(item["value"], self._syntax.marks))
        self._list.end = at + len(item[0].rstrip())
        return True

    def _brace(self, bare: str) -> bool:
        """Open or close a block; the words of its head are keys above."""
        if bare.endswith("{") or "{ " in bare:
            if len(self._stack) < MAX_DEPTH and not bare.endswith("}"):
                self._stack.append((0, tuple(_WORD.findall(bare[: bare.index("{")]))[:3]))
            return True
        if bare.startswith("}") and self._stack:
            self._stack.pop()
        return bare.startswith("}")

    def _setting(self, match: re.Match[str], line: str, at: int) -> Iterator[Entry]:
        column, is_indented = 0, self._syntax is YAML
        if is_indented:
            column = len(match["indent"]) + len(match["item"])
            if self._scalar_column is not None and column > self._scalar_column:
                return  # inside of a text
            self._scalar_column = None
        yield from self._close_list()
        while is_indented and self._stack and self._stack[-1][0] >= column:
            self._stack.pop()
        value = without_comment(line[match.end() :], self._syntax.marks).rstrip(self._syntax.trailing)
        start, begin = at + match.start("key"), at + match.end()
        parents = tuple(key for _, keys in self._stack for key in keys)
        entry = Entry(match["key"], value, start, begin + len(value), parents)
        if is_indented and _BLOCK_SCALAR.fullmatch(value):
            self._scalar_column = column
        elif value[:1] in {"[", "{"} and value[:2] not in {"{{", "{%"} and (found := self._brackets(entry, begin)):
            yield from found[0]
        elif value and value[0] not in self._syntax.opaque:
            yield self._renamed(entry, column)
        elif not value and self._syntax.item:
            indent = len(match["indent"]) if is_indented else 1
            self._list = _OpenList(indent, entry.key, start, start + len(entry.key), parents)
            if is_indented and len(self._stack) < MAX_DEPTH:
                self._stack.append((column, (entry.key,)))

    def _brackets(self, entry: Entry, begin: int) -> tuple[list[Entry], int] | None:
        """Read a list or a mapping, which may go on over lines; ``None`` if what begins so is neither."""
        if self._unclosed > MAX_UNCLOSED:
            return None
        reader = BracketReader(self._text, above=entry.parents, key=(entry.key, entry.start))
        limit = min(len(self._text), begin + MAX_BRACKETS)
        found = reader.read_value(begin, limit)
        if reader.closed_at is None:
            self._unclosed += limit - begin
            return None
        line_end = self._text.find("\n", reader.closed_at)
        line_end = len(self._text) if line_end < 0 else line_end
        if without_comment(self._text[reader.closed_at : line_end], self._syntax.marks).strip(",; \t\r\\"):
            return None
        self._next = line_end + 1
        return found, line_end

    def _close_list(self) -> Iterator[Entry]:
        if self._list is not None:
            yield from self._list.entries()
        self._list = None

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
    """Yield the settings of a text with plain values or short lists of them, in order."""
    return _LineReader(text, syntax).read()


def dockerfile_entries(text: str) -> Iterator[Entry]:
    """Yield what a Dockerfile sets: ``ENV``, ``ARG``, the port that it exposes, the flags of its health check."""
    for entry in line_entries(text, SECTIONS):
        is_argument = text[max(0, entry.start - 4) : entry.start].upper() == "ARG "
        yield Entry("default", entry.value, entry.start, entry.end, ("docker", entry.key)) if is_argument else entry
    at = 0
    for line in text.split("\n"):
        if len(line) <= MAX_LINE:
            yield from _instruction(line.rstrip("\r"), at)
        at += len(line) + 1


def _instruction(line: str, at: int) -> Iterator[Entry]:
    if match := _EXPOSED.match(line):
        yield Entry("port", match["value"], at, at + match.end("value"), ("docker",))
    elif match := _ENVIRONMENT.match(line):
        yield Entry(match["key"], match["value"].strip(), at + match.start("key"), at + match.end("value"))
    elif line.startswith("HEALTHCHECK"):
        for flag in _FLAG.finditer(line):
            yield Entry(flag["key"], flag["value"], at + flag.start(), at + flag.end(), ("docker", "healthcheck"))


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
