"""Read the keys of a configuration file with their values: JSON by its brackets, other formats line by line.

They are read without a grammar: a passage may begin and end anywhere, and one YAML file in six is a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern

MAX_DEPTH = 40
MAX_LINE = 1000
"""Characters; longer lines hold data."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value.

    Attributes:
        key: the key as it is written, without quotes.
        value: the value as it is written, without a comment.
        start, end: the offsets of the start of the key and the end of the value in the text.
        parents: the keys above, outermost first.
        is_remark: whether the entry is commented out.
    """

    key: str
    value: str
    start: int
    end: int
    parents: tuple[str, ...] = ()
    is_remark: bool = False


# Strings that are not closed end with their line.
_TOKEN = lazy_pattern(
    r"\"(?P<text>(?:[^\"\\\n]|\\[^\n]?)*+)(?:\"|(?=\n)|\Z)(?P<colon>[ \t\r\n]{0,80}:)?"
    r"|(?P<open>[{\[])|(?P<close>[}\]])|(?P<remark>//[^\n]*)|(?P<word>[\w.+-]++)"
)


def bracket_entries(text: str) -> Iterator[Entry]:
    """Yield the keys of JSON with plain values. Members of lists are data and are left out."""
    key: tuple[str, int] | None = None
    stack: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["colon"]:
            key = token["text"], token.start()
            continue
        if token["open"]:
            stack.append("[" if token["open"] == "[" else key[0] if key else "")
        elif token["close"] and stack:
            stack.pop()
        elif key is not None and not token["close"] and "[" not in stack and len(stack) <= MAX_DEPTH:
            yield Entry(key[0], token[0], key[1], token.end(), tuple(filter(None, stack)))
        key = None


_SETTING = lazy_pattern(
    r"(?P<lead>[ \t]*(?:-[ \t]+){0,4})(?:(?:export|readonly|ENV|ARG|set)[ \t]+)?"
    r"(?P<quote>[\"']?)(?P<key>\d*[A-Za-z_@](?:[\w.\-/@]|[ ](?=[^\n=]{0,79}:|[^\n\"]{0,79}\"[ \t]*=)){0,79}?)"
    r"(?P=quote)[ \t]{0,40}(?::(?=[ \t]|$)|[:?+]?=(?!=))[ \t]*"
)
_SECTION = lazy_pattern(r"[ \t]*\[{1,2}(?P<name>[\w.\-\"' :/\t]{1,120})\]{1,2}[ \t]*(?:[#;][^\n]*)?$")
_BLOCK_SCALAR = lazy_pattern(r"[|>][+-]?\d?")
_REMARKS = ("#", ";", "!", "//")
# A setting that is commented out: a name and one value, of which no sentence consists.
_COMMENTED = lazy_pattern(
    r"[ \t]*[#;]+[ \t]*(?:export[ \t]+)?(?P<key>[a-z_][\w.-]{0,79}(?=[ \t]*:)|[A-Za-z_][\w.-]{0,79}(?=[ \t]*=))[ \t]*"
    r"(?::[ \t]+|=(?!=)[ \t]*)(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'\[{&*!|>][^\s]*)[ \t]*(?:[#;].*)?\r?$"
)
_COMMENT = lazy_pattern(r"(?P<quoted>\"[^\"\n]*\"|'[^'\n]*')|(?:(?<![^ \t])[#;][^\n]*)")
"""A string in quotes, which may hold the mark of a comment; or a comment, at the start or behind a blank."""


def line_entries(text: str) -> Iterator[Entry]:
    """Yield the settings of YAML, TOML, INI and similar formats in order, each with the sections above it.

    ``- name: TIMEOUT`` with ``value: 30`` below it is a setting ``TIMEOUT``.
    """
    above: list[tuple[int, tuple[str, ...]]] = []
    scalar, at = -1, 0
    named: tuple[int, str] | None = None
    for line in text.split("\n"):
        start, bare = at, line.strip(" \t\r")
        at += len(line) + 1
        if not bare or len(line) > MAX_LINE or bare.startswith(_REMARKS):
            if len(line) <= MAX_LINE and (said := _COMMENTED.match(line)):
                yield Entry(said["key"], said["value"], start + said.start("key"), start + said.end("value"), (), True)
            continue
        if header := _SECTION.match(line.rstrip("\r")):
            above = [(-1, tuple(part for one in re.split(r"[.:]", header["name"]) if (part := one.strip("\"' "))))]
        match = _SETTING.match(line)
        column = len(match["lead"]) if match else 0
        if match is None or (0 <= scalar < column):  # inside of a text
            continue
        scalar = -1
        while above and above[-1][0] >= column:
            above.pop()
        value = _COMMENT.sub(lambda one: one["quoted"] or "", line[match.end() :]).strip(" \t\r\\")
        parents = tuple(key for _, keys in above for key in keys)
        entry = Entry(match["key"], value, start + match.start("key"), start + match.end() + len(value), parents)
        if _BLOCK_SCALAR.fullmatch(value):
            scalar = column
        elif not value and len(above) < MAX_DEPTH:
            above.append((column, (entry.key,)))
        elif value and value[0] not in "&*!" and (value[0] not in "[{" or value[:2] in {"{{", "{%"}):
            if entry.key == "name":
                named = column, value.strip("\"'")
            is_named = named is not None and named[0] == column and entry.key in {"value", "default"}
            yield _renamed(entry, named[1]) if named and is_named else entry


def specified_entries(text: str) -> Iterator[Entry]:
    """Yield the defaults of a specification (configobj): ``port = integer(min=1, default=6379)``."""
    return (entry for entry in line_entries(text) if entry.value.endswith(")") and "default" in entry.value)


# ``Port 22``, ``worker_connections 768;``; of what is commented out one value, unlike sentences: ``# maxmemory 2gb``.
_DIRECTIVE = lazy_pattern(
    r"[ \t]*(?P<key>\d*[A-Za-z][\w-]{1,79})[ \t]+(?P<value>(?:\"[^\"\n]*\"|[^\s{}<>=:#;][^\s{}<>;]*)"
    r"(?:[ \t]+[^\s{}<>#;]+){0,7})[ \t]*;?[ \t]*(?:#.*)?\r?$"
)
_COMMENTED_DIRECTIVE = lazy_pattern(
    r"[ \t]*[#;]+[ \t]?(?P<key>\d*[A-Za-z][\w-]{1,79})[ \t]+"
    r"(?P<value>\"[^\"\n]*\"|(?:yes|no|on|off|true|false|none)|[/~.]?[\w.:/-]*\d[\w.:/%*-]*|/[^\s;]+)[ \t]*;?[ \t]*\r?$"
)
# ``;LogLevel info``: what is switched off by a mark alone, where sentences have a blank behind it.
_SWITCHED_OFF = lazy_pattern(
    r"[ \t]*[#;](?P<key>\d*[A-Za-z][\w-]{1,79})(?:[ \t]+(?P<value>\"[^\"\n]*\"|[^\s\"=:#;{}<>][^\s\"{}<>;]*"
    r"(?:[ \t]+[^\s{}<>;]+){0,2}?)(?<![.,?!]))?[ \t]*;?[ \t]*\r?$"
)
_SENTENCE = lazy_pattern(r"[ \t]*[#;]+[ \t]+\w")
MOSTLY = 0.7
"""Share of the lines above which they are a file's form."""
_BLOCK = lazy_pattern(r"[ \t]*(?:(?P<opens>[A-Za-z][\w-]*)\b[^{}#;\n]*\{|(?P<closes>\}))[ \t]*(?:#.*)?\r?$")


def directive_entries(text: str) -> Iterator[Entry]:
    """Yield the settings in lines ``key value``. If few lines have this form, yield those of ``line_entries`` instead.

    A line that opens a block, ``server {``, is the parent of the lines in the block. If all settings of a file are in
    comments, they are the comments without a blank after the comment mark. Sentences must then have such a blank.
    """
    lines = [line for line in text.split("\n") if len(line) <= MAX_LINE and line.strip() and not _BLOCK.match(line)]
    bare = [line for line in lines if not line.lstrip().startswith((*_REMARKS, "<"))]
    off = [line for line in lines if line.lstrip()[:1] in {"#", ";"} and line.lstrip()[1:2].isalnum()]
    is_off = len(off) * MOSTLY < len([*filter(_SWITCHED_OFF.match, off)]) and any(map(_SENTENCE.match, lines))
    if len(bare) * MOSTLY >= sum(_DIRECTIVE.match(line) is not None for line in bare) and (bare or not is_off):
        yield from line_entries(text)
        return
    above: list[str] = []
    at = 0
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        if len(line) > MAX_LINE:
            continue
        if block := _BLOCK.match(line):
            if block["opens"]:
                above.append(block["opens"])
            elif above:
                above.pop()
        is_remark = line.lstrip().startswith(_REMARKS)
        commented = _SWITCHED_OFF if is_off else _COMMENTED_DIRECTIVE
        if (said := (commented if is_remark else _DIRECTIVE).match(line)) and said["value"]:
            yield Entry(
                said["key"], said["value"], start + said.start("key"), start + said.end("value"),
                tuple(above[:MAX_DEPTH]), is_remark,
            )  # fmt: skip


def _renamed(entry: Entry, name: str) -> Entry:
    """Return the entry beside ``name: X`` as a setting: ``value: 3`` → ``X: 3``, ``default: 3`` → ``X.default: 3``."""
    if entry.key == "value":
        return Entry(name, entry.value, entry.start, entry.end, entry.parents)
    return Entry(entry.key, entry.value, entry.start, entry.end, (*entry.parents, name))
