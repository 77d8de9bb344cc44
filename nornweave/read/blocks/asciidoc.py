"""The blocks of AsciiDoc: titles, delimited blocks, lists of terms, tables; comments and attributes are not text."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import Span
from nornweave.read.blocks.block import (
    Block,
    Blocks,
    Found,
    Kind,
    Reading,
    Stretch,
    blanked,
    end_of,
    even_line_ends,
    read_lines,
    united,
)
from nornweave.read.blocks.unseen import UnseenParts, is_internal

_TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?$")
_UNDERLINE = re.compile(r"([=~^+-])\1{2,}$")
_LEVELS = "=-~^+"
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|={4,}|\*{4,}|_{4,}|--|`{3,}[\w+#.-]*|[|,:!]={3,})$")
_KINDS: Mapping[str, Kind] = {"-": "code", ".": "code", "+": "code", "`": "code", "|": "table", ",": "table",
                              ":": "table", "!": "table"}  # fmt: skip
# ``[source,java]``, ``[NOTE]``, ``[[anchor]]``, and ``.A title``: they belong to the block below.
_ATTRIBUTES = re.compile(r"\[(?:\[[^\[\]]*\]|[^\[\]]*)\]$|\.[^\s.].*$")
_SOURCE = re.compile(r"\[(?:source|,|listing)[\w%]*,?[ \t]*([\w+#.-]*)")
_COMMENT = re.compile(r"//(?!/)")
_ENTRY = re.compile(r":!?[\w-]+!?:(?:[ \t]|$)")
_SET = re.compile(r"^:(!?[\w-]+!?):(?:[ \t]+([^\n]*))?$", re.MULTILINE)
_INDEX_TERM = re.compile(
    r"(?P<shown>\\(?:\(\(\(|indexterm:|anchor:|\[\[)|(?<![\w+])\+(?=[^\s+])[^+\n]+\+(?![\w+])|\[\[\[[^\[\]\n]*\]\]\])"
    r"|\[\[[\w:.-]+(?P<label>,[^\[\]\n]+)\]\]|\banchor:[\w:.-]+\[(?P<of_anchor>[^\[\]\n]+)\]"
    r"|\(\(\((?:[^()\n]|\n(?!\n)|\([^()\n]*\))+\)\)\)|\bindexterm:\[[^\]\n]*\]"
)
"""A term of the index, or the label of an anchor, that is not shown where it stands. An escaped one is shown."""
_HIDES = ("(((", "indexterm:", "+++", "pass:", "[[", "anchor:")
_AS_HTML = {"backend": "html5", "basebackend": "html", "filetype": "html", "outfilesuffix": ".html"}
_PASSED = re.compile(r"\+\+\+[^+\n]+\+\+\+|\bpass:\w*\[[^\n]*\]")
_REFERENCE = re.compile(r"(?<![\\$])\{(\w[\w-]*)\}")
_LONGEST_VALUE = 1_000
# Of a block of code: attributes are replaced in it.
_SUBSTITUTES = re.compile(r"subs=[\"']?[^\"'\]]*(?:attributes|normal)")
# Pages show this entry of their head by its name: ``{description}``.
_DESCRIPTION = ":description: "
_DESCRIBED = re.compile(rf"^{_DESCRIPTION}[^\n]*$", re.MULTILINE)
_PREPROCESSOR = re.compile(r"(?:ifdef|ifndef|endif)::[^\[\]]*\[\][ \t]*$|ifeval::")
"""Of a condition; text in its brackets (``ifdef::name[text]``) is shown."""
_CONDITION = re.compile(r"(?:if(?P<not>n)?def::(?P<names>[^\[\]]+)|ifeval::)\[(?P<said>[^\]]*)\]")
_COMPARED = re.compile(r"\s*(\"[^\"{}]*\"|'[^'{}]*'|\d+)\s*([=!<>]=|[<>])\s*(\"[^\"{}]*\"|'[^'{}]*'|\d+)\s*")
_OF_HTML, _OF_OTHER = re.compile(r"(?:base)?backend-x?html5?"), re.compile(r"(?:base)?backend-(?!x?html)[\w-]+")
"""Names that converters to HTML set, and names that only other converters set."""
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
_TERM = re.compile(r"[ \t]*((?!//|\[)\S.*?)(?::{2,4}|;;)(?:[ \t]+(?=\S)|$)")
_ITEM = re.compile(r"[ \t]*(?:\*{1,6}|-|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|<(?:\d+|\.)>)[ \t]+\S")
_MARKS = re.compile(
    r"\[\[[^\[\]]*\]\]|anchor:\S*?\[[^\[\]]*\]|<<[^<>,]*,([^<>]*)>>|(?:link:|https?:)\S*?\[([^\[\]]*)\]|[`*_+#]{1,2}(?=\S)([^`*_+#]*)[`*_+#]{1,2}"
)


def read_asciidoc(text: str) -> Blocks:
    """Read AsciiDoc. A reference such as ``{name}`` is shown as its value if the document defines one."""
    even = even_line_ends(text)
    asciidoc = _Asciidoc(UnseenParts(even))
    read = read_lines(text, 0, asciidoc.block_at)
    values = {name: value for name, value in asciidoc.values.items() if value}
    if not values and not any(mark in even for mark in _HIDES):
        return read
    shown = blanked(even_line_ends(read.text), sorted(asciidoc.literal, key=lambda span: span.start))
    terms = (term for term in _INDEX_TERM.finditer(shown) if not term["shown"])
    unseen = [Span(*term.span(term.lastgroup or 0)) for term in terms]
    unseen += [span for raw in _PASSED.finditer(shown) for span in asciidoc.unseen.within(Span(*raw.span()))]
    if unseen:
        hidden = tuple(united((*read.hidden, *unseen)))
        read = replace(read, text=blanked(read.text, hidden), hidden=hidden)
    if not values:
        return read
    said: list[tuple[Span, str]] = []
    room = len(text)  # values that name values may grow without end
    for match in _REFERENCE.finditer(shown):
        value = values.get(match[1].lower(), "")
        room -= len(value)
        if value and room > 0:
            said.append((Span(*match.span()), value))
    if entry := _DESCRIBED.search(read.text) if any(value == values.get("description") for _, value in said) else None:
        said.append((Span(*entry.span()), ""))  # it is shown where the page names it
    return Blocks(
        read.text, _with_values(read.blocks, values), read.hidden, sorted(said, key=lambda each: each[0].start)
    )


def _with_values(blocks: Iterable[Block], values: Mapping[str, str]) -> tuple[Block, ...]:
    return tuple(
        replace(
            block,
            info=one_line(_resolved(block.info, values)) if block.kind != "code" else block.info,
            parts=_with_values(block.parts, values),
        )
        for block in blocks
    )


def _resolved(text: str, values: Mapping[str, str]) -> str:
    if "{" not in text or len(text) > _LONGEST_VALUE:
        return text
    return _REFERENCE.sub(lambda name: values.get(name[1].lower()) or name[0], text)


@dataclass(slots=True)
class _Asciidoc:
    """Reads one AsciiDoc text.

    Attributes:
        values: the values of the attributes that the text sets. The value is empty if the text unsets an attribute or
            gives it several values.
        literal: the spans of code. In code a name in braces is not a reference to an attribute.
    """

    unseen: UnseenParts
    values: dict[str, str] = field(default_factory=dict)
    literal: list[Span] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    """Attributes that the text sets, whatever else holds."""
    conditions: int = 0
    """Conditions around the line that is read."""

    def block_at(self, reading: Reading, stretch: Stretch, at: int, _above: str) -> Found:
        """Return the block that begins at the line ``at``, which is not blank. Its kind may be ``hidden``."""
        rows = stretch.rows
        start = at
        while start + 1 < len(rows) and (
            _ATTRIBUTES.match(rows[start]) or (start > at and (not rows[start] or _COMMENT.match(rows[start])))
        ):
            reading.hidden += [stretch.spans[start]] if _COMMENT.match(rows[start]) else []
            start += 1
        if (end := self._condition_end(rows, start)) > start:
            return Found("hidden", end)
        named = rows[at:start]
        found = _below_attributes(rows, start, named)
        if _PREPROCESSOR.match(rows[start]):
            self.conditions = max(0, self.conditions + (-1 if rows[start].startswith("endif") else 1))
        if _ENTRY.match(rows[start]):
            self._set(rows[start : found.end])
        for row in range(start, found.end) if found.kind == "table" else ():
            end = self._condition_end(rows, row)
            is_unseen = _COMMENT.match(rows[row]) or _PREPROCESSOR.match(rows[row])
            reading.hidden += [stretch.span(row, end)] if end > row else [stretch.spans[row]] if is_unseen else []
        if rows[start].startswith("++++") or any(row.startswith("[pass") for row in named):
            reading.hidden += self.unseen.within(stretch.span(start, found.end))
        if found.kind == "code" and not any(_SUBSTITUTES.search(row) for row in named):
            self.literal.append(stretch.span(start, found.end))
        return Found("hidden", found.end) if any(row.startswith("[comment") for row in named) else found

    def _condition_end(self, rows: Sequence[str], at: int) -> int:
        """Return the end of the condition that begins at a line and does not hold in HTML, or is for internal text.

        ``at`` if none begins there.
        """
        condition = _CONDITION.match(rows[at])
        if condition is None or not self._is_unseen(condition):
            return at
        depth = 0 if condition["names"] and condition["said"] else 1
        end = at + 1
        while depth and end < len(rows):
            opens = _CONDITION.match(rows[end])
            is_block = rows[end].startswith("ifeval::") or rows[end].endswith("[]")
            depth += is_block if opens else -rows[end].startswith("endif::")
            end += 1
        return end

    def _is_unseen(self, condition: re.Match[str]) -> bool:
        """Tell whether a condition hides its text. Unknown names may be set where the pages are made."""
        values = {**_AS_HTML, **self.values}
        if condition["names"] is None and (compared := _COMPARED.fullmatch(_resolved(condition["said"], values))):
            left, right = (int(each) if each.isdigit() else each.strip("\"'") for each in (compared[1], compared[3]))
            return type(left) is type(right) and not _SIGNS[compared[2]](left, right)
        names = condition["names"] or condition["said"]
        if any(name.lower() in self.values for name in re.split(r"[,+]", names)):
            return bool(condition["not"]) and self.defined.issuperset(re.split(r"[,+]", names.lower()))
        if condition["not"]:
            return _OF_HTML.fullmatch(names) is not None
        each_other = map(_OF_OTHER.fullmatch, re.split(r"[,+]", names))
        return is_internal(names) or (any(each_other) if "+" in names else all(each_other))

    def _set(self, rows: Sequence[str]) -> None:
        for entry in _SET.finditer("\n".join(rows).replace(" \\\n", " ")):
            name, given = entry[1].strip("!").lower(), one_line(entry[2] or "").removesuffix("@")
            self.defined -= {name} if "!" in entry[1] else set()
            self.defined |= {name} if "!" not in entry[1] and not self.conditions else set()
            is_plain = "!" not in entry[1] and len(given) <= _LONGEST_VALUE and not given.startswith("pass:")
            value = _resolved(given, self.values) if is_plain else ""
            is_one = len(value) <= _LONGEST_VALUE and self.values.get(name, value) == value
            self.values[name] = value if is_one else ""


def _below_attributes(rows: Sequence[str], at: int, named: Sequence[str]) -> Found:
    row = rows[at]
    if _COMMENT.match(row):
        return Found("hidden", at + 1)
    if row.startswith(_DESCRIPTION):
        return Found("paragraph", at + 1)
    if _ENTRY.match(row):
        end = at + 1
        while end < len(rows) and (rows[end - 1].endswith("\\") or _is_unseen_entry(rows[end])):
            end += 1
        return Found("hidden", end)
    if _PREPROCESSOR.match(row):
        return Found("hidden", at + 1)
    if delimiter := _DELIMITER.match(row):
        return _delimited(rows, at, delimiter[1], named)
    if title := _TITLE.match(row):
        return Found("heading", at + 1, len(title[1]), _read(title[2]))
    below = rows[at + 1] if at + 1 < len(rows) else ""
    if _UNDERLINE.match(below) and abs(len(below) - len(row)) < 3 and not row[0].isspace():
        return Found("heading", at + 2, _LEVELS.index(below[0]) + 1, _read(row))
    if _ITEM.match(row):
        return Found("list", _text_end(rows, at))
    if term := _TERM.match(row):
        return _term(rows, at, term)
    if row[0].isspace():
        return Found("code", end_of(rows, at, lambda row: row and not _COMMENT.match(row)))
    end = _text_end(rows, at)
    is_author = at > 0 and rows[at - 1].startswith("= ")
    entries = (below for below in range(at, end) if is_author and _ENTRY.match(rows[below]))
    return Found("paragraph", next(entries, end))


def _is_unseen_entry(row: str) -> bool:
    return _ENTRY.match(row) is not None and not row.startswith(_DESCRIPTION)


def _delimited(rows: Sequence[str], at: int, delimiter: str, named: Sequence[str]) -> Found:
    closing = rows[at] if delimiter[0] != "`" else delimiter[:3]
    last = end_of(rows, at, lambda row: row != closing)
    end = min(last + 1, len(rows))
    if delimiter[0] == "/":
        return Found("hidden", end)
    said = next((row[1:] for row in named if row[0] == "."), "")
    if kind := _KINDS.get(delimiter[0]) if delimiter != "--" else None:
        source = next((found[1] for row in named if (found := _SOURCE.match(row))), "")
        return Found(kind, end, 0, "asciidoc" if kind == "table" else source or rows[at].strip("`-.+"))
    return (
        Found("note", end, info=_read(said), body=at + 1, cut=end - last) if last > at + 1 else Found("paragraph", end)
    )


def _term(rows: Sequence[str], at: int, term: re.Match[str]) -> Found:
    """Return a term with its explanation and the blocks that a ``+`` attaches. Blank lines may follow the term."""
    lead = term.end() if term.end() < len(rows[at]) else 0
    end = at + 1
    while end < len(rows):
        row, above = rows[end], rows[end - 1]
        if not row:
            below = end_of(rows, end, lambda row: not row)
            if below == len(rows) or not (
                rows[below][0].isspace() or _ITEM.match(rows[below]) or (end == at + 1 > lead)
            ):
                break
            end = below
        if _TERM.match(rows[end]) or _TITLE.match(rows[end]):
            break
        if delimiter := _DELIMITER.match(row):
            if above != "+" and not _ATTRIBUTES.match(above):
                break
            end = _delimited(rows, end, delimiter[1], ()).end - 1
        end += 1
    body = at if lead else at + 1 if end > at + 1 else -1
    return Found("term", end, info=_read(term[1]), body=body, lead=lead)


def _text_end(rows: Sequence[str], at: int) -> int:
    return end_of(
        rows, at, lambda row: row and not any(mark.match(row) for mark in (_DELIMITER, _COMMENT, _PREPROCESSOR))
    )


def _read(title: str) -> str:
    return one_line(_MARKS.sub(lambda mark: mark[1] or mark[2] or mark[3] or "", title))
