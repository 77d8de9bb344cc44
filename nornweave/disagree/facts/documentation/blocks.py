"""Parse the structure of a text: headings, paragraphs, list entries, tables, fields, directives and code.

Tables are taken apart into their rows, cells and header.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias, cast

from nornweave.core.text.patterns import lazy_pattern

Kind: TypeAlias = Literal["heading", "paragraph", "item", "entry", "field", "table", "code"]

MAX_COLUMNS, MAX_ROWS = 16, 400
BELOW_AND_ABOVE = 2
"""Rulers of a table that has no header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedBlock:
    """A part of a text of one kind.

    Attributes:
        start: the offset of its first line. ``end`` is the offset after its last character.
        indent: the number of columns before its first word.
        body: the offset at which its words begin, after a bullet or ``#``.
        level: the level of a heading, from 1.
        info: for fenced code its language. For a table ``simple`` if its columns are ruled, ``cells`` if each cell has
            a mark, ``list`` if these marks are bullets.
    """

    kind: Kind
    start: int
    end: int
    indent: int
    body: int
    level: int = 0
    info: str = ""


# What a line begins that needs no look at the next one; a group is a kind of block, or what is read in its own way.
_BEGINS = lazy_pattern(
    r"(?P<fence>```|~~~)|(?P<cells>[|¦]={3,})|(?P<heading>#{1,6}[ \t]+(?=\S)|={1,5}[ \t]+(?=[^\s=])(?!.*=[ \t]*$))"
    r"|(?P<table>\+[-=]{2,}|\|(?=.*\|))|(?P<directive>\.\.[ \t]+[\w:.+-]{1,40}::(?=\s|$))"
    r"|(?P<field>:(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|except|exception|ivar"
    r"|cvar|vartype|default)\b[^:\n]{0,80}:(?=\s|$)"
    r"|[@\\](?:param|arg|argument|property|prop|default|defaultvalue|returns?|throws|exception|raises|type|deprecated"
    r"|option)\b)"
    r"|(?P<item>(?:[-*+•◦‣]|\d{1,3}[.)]|[a-z][.)])[ \t]+(?=\S))"
    r"|(?P<entry>\*{0,2}[A-Za-z_][\w.-]{0,60}`{0,2}[ \t]?\([^()\n]{1,120}\)[ \t]?:(?=\s|$)"
    r"|[\w*, ]{1,60} : [\w{\['\"].{0,120}$)"
)
_MARKS = frozenset("#`~|¦+.:@\\-*=•◦‣")
"""What a line begins with that needs a look, if not with a digit."""
_UNDERLINE = lazy_pattern(r"([=\-~^\"'`#*+.:_<>])\1{2,}$|==$|~~$|\^\^$|--$")
_LISTING = lazy_pattern(r"(-{4,}|\.{4,})$")
"""Around code of AsciiDoc, below its title or attributes."""
_ABOVE_LISTING = lazy_pattern(r"\[.+\]$|\.[^\s.].*")
_RULER = lazy_pattern(r"[=-]{2,}(?:[ \t]+[=-]{2,})+$")
_PIPE_RULE = lazy_pattern(r"\|?[ \t]*:?-{1,}:?[ \t]*\|[-:| \t]*$")
_NAMED = lazy_pattern(r"\s*+(?=\w+?(?:[._-]\w|(?<=[a-z])[A-Z]))[\w.-]++\s*$")
_CODE_DIRECTIVES = frozenset(
    {"code-block", "code", "sourcecode", "literalinclude", "parsed-literal", "highlight", "prompt", "doctest"}
)
_DESCRIBES = frozenset({"attribute", "confval", "data", "envvar", "option", "property", "setting"})
"""What they name may be one plain word; elsewhere it has to be spelt as a name: ``.. directive:: max_rows``."""
_TABLES_OF_ITEMS = frozenset({"list-table", "flat-table"})
_NOTES_OF_VERSIONS = frozenset({"versionadded", "versionchanged", "versionremoved", "deprecated"})
"""What stands below them held for a version, and is left out."""
INNERMOST = 99
"""The level of what a directive names."""
MAX_TITLE = 120


class _Parser:
    """Reads the lines of a text: start, end, words and indentation of each."""

    def __init__(self, text: str, raw: str) -> None:
        lines = text.split("\n")
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self.text = text
        self.bodies = [line.strip() for line in lines]
        self.starts = [start + len(line) - len(line.lstrip()) for start, line in zip(starts, lines, strict=False)]
        self.ends = [start + len(line) for start, line in zip(starts, lines, strict=False)]
        # An indent is counted before tags.
        self.indents = [len(written) - len(written.lstrip()) for written in raw.split("\n")]
        filled = [indent for indent, body in zip(self.indents[:400], self.bodies, strict=False) if body]
        self.base = min(filled[1:] or filled or [0])
        self.blocks: list[DocumentedBlock] = []
        self.styles: list[str] = []

    def parse(self) -> list[DocumentedBlock]:
        at = 0
        while at < len(self.bodies):
            at = self._block(at) if self.bodies[at] else at + 1
        return self.blocks

    def _add(self, kind: Kind, first: int, last: int, *, body: int = 0, level: int = 0, info: str = "") -> int:
        """Add a block from line ``first`` to ``last``. Return the line after it.

        Its words begin at the column ``body`` of the first line.
        """
        start = self.starts[first]
        block = DocumentedBlock(
            kind=kind, start=start, end=self.ends[last], indent=self.indents[first] - self.base,
            body=start + body, level=level, info=info,
        )  # fmt: skip
        self.blocks.append(block)
        return last + 1

    def _block(self, at: int) -> int:
        if fence := self._listing(at):
            return self._listed(at, fence)
        if self._is_underlined(at):
            mark = self.bodies[at + 1][0]
            self.styles += [mark] if mark not in self.styles else []
            self._add("heading", at, at, level=self.styles.index(mark) + 1)
            return at + 2
        begins = self._begins(at)
        kind, behind = (begins.lastgroup or "", begins.end()) if begins else ("", 0)
        if kind == "fence":
            return self._fence(at)
        if kind == "cells":
            return self._cells(at)
        if kind == "directive":
            return self._directive(at, behind)
        if kind == "heading":
            return self._add("heading", at, at, body=behind, level=behind - 1)
        if _RULER.match(self.bodies[at]):
            return self._ruled(at, at)
        if kind == "table":
            return self._add("table", at, self._last(at, lambda one: self.bodies[one][0] not in "|+"))
        return self._paragraph(at, cast(Kind, kind or "paragraph"), behind if kind == "item" else 0)

    def _begins(self, at: int) -> re.Match[str] | None:
        body = self.bodies[at]
        is_marked = body[0] in _MARKS or body[0].isdigit() or body[1:2] in {".", ")"}
        return _BEGINS.match(body) if is_marked or "):" in body or " : " in body or ") :" in body else None

    def _is_underlined(self, at: int) -> bool:
        under, body = (self.bodies[at + 1] if at + 1 < len(self.bodies) else ""), self.bodies[at]
        return (
            _UNDERLINE.match(under) is not None
            and self.indents[at + 1] == self.indents[at]
            and len(under) >= 0.7 * min(len(body), 60)  # docutils only warns where it is too short
            and (len(under) > 2 or len(body) == 2)
            and not _RULER.match(body)
            and len(body) < MAX_TITLE
        )

    def _last(self, at: int, ends: Callable[[int], object] = lambda _: False) -> int:
        """Return the last line before a blank line, or before a line for which ``ends`` is true."""
        while at + 1 < len(self.bodies) and self.bodies[at + 1] and not ends(at + 1):
            at += 1
        return at

    def _starts(self, at: int) -> bool:
        return self._begins(at) is not None or self._is_underlined(at) or self._listing(at) > 0

    def _fence(self, at: int) -> int:
        mark = self.bodies[at][:3]
        ends = (one for one in range(at + 1, len(self.bodies)) if self.bodies[one].startswith(mark))
        last = next((one for one in ends if not self.bodies[one].strip("`~")), len(self.bodies))
        if last > at + 1:
            self._add("code", at + 1, last - 1, info=self.bodies[at].strip("`~{} \t").partition(" ")[0])
        return last + 1

    def _directive(self, at: int, behind: int) -> int:
        name = self.bodies[at][2:behind].strip(" \t:").lower()
        plain = name.rpartition(":")[2]  # ``py:attribute``
        if plain in _CODE_DIRECTIVES:
            return self._indented_code(at)
        if plain in _TABLES_OF_ITEMS:
            end = self._end_of_indented(at)
            return self._add("table", at, end - 1, info="list")
        if name in _NOTES_OF_VERSIONS:
            return self._end_of_indented(at)
        word = self.bodies[at][behind:].strip()
        is_name = _NAMED.match(word) is not None or (plain.rpartition("-")[2] in _DESCRIBES and " " not in word)
        return self._add("heading" if is_name else "paragraph", at, at, body=behind, level=INNERMOST)

    def _end_of_indented(self, at: int) -> int:
        """Return the next line that is neither blank nor indented deeper."""
        indent, at = self.indents[at], at + 1
        while at < len(self.bodies) and (not self.bodies[at] or self.indents[at] > indent):
            at += 1
        return at

    def _cells(self, at: int) -> int:
        """Add a table that begins at a line such as ``|===`` and ends at an equal line. Return the line after it."""
        mark = self.bodies[at][0] + "==="
        last = next((one for one in range(at, len(self.bodies)) if mark in self.bodies[one][at == one :]), at)
        return self._add("table", at, last, info="cells")

    def _listing(self, at: int) -> int:
        """Return the line at which a code block of AsciiDoc begins, below its attributes and title; 0 without one."""
        fence = at
        while fence + 1 < len(self.bodies) and _ABOVE_LISTING.match(self.bodies[fence]):
            fence += 1
        return fence if fence > at and _LISTING.match(self.bodies[fence]) else 0

    def _listed(self, at: int, fence: int) -> int:
        mark = self.bodies[fence]
        last = next((one for one in range(fence + 1, len(self.bodies)) if self.bodies[one] == mark), len(self.bodies))
        if last > fence + 1:
            source = next((one for one in self.bodies[at:fence] if one[0] == "[" and "," in one), ",")
            self._add("code", fence + 1, last - 1, info=source.strip("[]").split(",")[1].strip())
        return last + 1

    def _indented_code(self, at: int) -> int:
        """Read lines that are indented deeper as code, without options of a directive (``:linenos:``)."""
        end = self._end_of_indented(at)
        filled = [one for one in range(at + 1, end) if self.bodies[one]]
        while filled and self.bodies[filled[0]][0] == ":":
            filled.pop(0)
        if filled:
            self._add("code", filled[0], filled[-1])
        return end

    def _ruled(self, first: int, ruler: int) -> int:
        """Add a table that ends at a ruler before a blank line. Return the line after it. It may have blank lines."""
        last = ruler
        for at in range(ruler + 1, len(self.bodies)):
            if _RULER.match(self.bodies[at]):
                last = at
                if not any(self.bodies[at + 1 : at + 2]):
                    break
            elif self.bodies[at] and self._is_underlined(at):
                break
        return self._add("table", first, self._last(last), info="simple")

    def _paragraph(self, at: int, kind: Kind, body: int) -> int:
        """Add a block from line ``at`` to the last line before a blank line or another block. Return the line after it.

        If a table begins in these lines, add the block before the table and then the table.
        """
        last = self._last(at, self._starts)
        for one in range(at + 1, last + 1):
            if _RULER.match(self.bodies[one]):
                return self._ruled(at, one)
            if _PIPE_RULE.match(self.bodies[one]) and "|" in self.bodies[one - 1]:
                if one - 1 > at:
                    self._add(kind, at, one - 2, body=body)
                return self._add("table", one - 1, self._last(one, lambda row: "|" not in self.bodies[row]))
        self._add(kind, at, last, body=body)
        return self._indented_code(last) if kind == "paragraph" and self.bodies[last].endswith("::") else last + 1


def blocks_of(text: str, raw: str) -> list[DocumentedBlock]:
    """Split the words of a text into blocks, in order and without overlaps.

    Args:
        raw: the same text with its markup. It is equal to ``text`` for a comment with marks before its lines.
    """
    return _Parser(text, raw).parse()


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its words without line breaks, and its place."""

    text: str
    start: int
    end: int


Row = list[Cell]
_LINE = lazy_pattern(r"[^\n]+")
_RULE = lazy_pattern(r"[\s|:+=-]+$")
_COLUMN = lazy_pattern(r"[=-]+")
_MARKED = {
    "|": lazy_pattern(r"(?P<row>(?!))?(?:(?<=\s)(?:\d*[.+*]?\d*[+*])?[<^>.]{0,3}[adehlmsv]?)?(?<![\\|])\|(?!=)"),
    "¦": lazy_pattern(r"¦(?:(?P<row>-)|!)?"),
}
_BULLETS = lazy_pattern(r"^[ \t]*(?P<row>\*[ \t]+)?-(?:[ \t]+|$)", re.MULTILINE)
"""What a cell begins with in AsciiDoc, in HTML as ``surface`` draws it, and in a list."""
_COLS, _SPECS = lazy_pattern(r"cols=\"?([^\"\]]*)"), lazy_pattern(r"\d+\*|[^,\s]+")
_PIPE = lazy_pattern(r"(`{1,2})(?!`)[^`\n]{1,200}\1(?!`)|(?<!\\)\|")


def read_table(text: str, block: DocumentedBlock) -> tuple[list[Row], Row | None]:
    """Return the rows of a table block and its header; the header is ``None`` if the text has none."""
    if block.info in {"cells", "list"}:
        return _marked(text, block)
    rows: list[Row] = []
    header = None
    lines = [match.span() for match in _LINE.finditer(text, text.rfind("\n", 0, block.start) + 1, block.end)]
    rules = [one for one in lines if block.info == "simple" and _RULE.match(text, *one)]
    columns = [match.start() - rules[0][0] for match in _COLUMN.finditer(text, *rules[0])] if rules else []
    has_header = len(rules) != BELOW_AND_ABOVE
    for first, last in lines:
        if not _RULE.match(text, first, last):
            cuts = [min(first + column, last) for column in columns] + [last] if columns else _pipes(text, first, last)
            rows.append([_cell(text, a, b) for a, b in zip(cuts, cuts[1:], strict=False)][:MAX_COLUMNS])
        elif has_header and len(rows) == 1 and header is None:
            header = rows.pop()
    return rows[:MAX_ROWS], header


def _marked(text: str, block: DocumentedBlock) -> tuple[list[Row], Row | None]:
    """Return the rows and the header of a table whose cells begin with marks; ``None`` if it has no header."""
    pattern = _BULLETS if block.info == "list" else _MARKED[text[block.start]]
    first, last = text.find("\n", block.start, block.end) + 1, block.end
    if block.info == "cells":
        first, last = block.start + len("|==="), text.rfind(text[block.start], block.start, block.end)
    marks = list(pattern.finditer(text, first, last))
    ends = [*(mark.start() for mark in marks[1:]), last]
    cells = [(mark["row"], _stripped(text, mark.end(), end)) for mark, end in zip(marks, ends, strict=False)]
    if text[block.start] == "|":
        attributes = text[text.rfind("\n\n", 0, block.start) + 1 : block.start]
        ends_line = text.find("\n", marks[0].end(), last) if marks else last
        columns = _stated_columns(attributes) or sum(mark.start() < ends_line for mark in marks) or 1
        rows = [[cell for _, cell in cells[at : at + columns]] for at in range(0, len(cells), columns)]
        has_header = "header" in attributes or text[ends_line + 1 : last].lstrip(" \t").startswith("\n")
    else:
        rows = []
        for begins, cell in cells:
            rows += [[]] if begins is not None or not rows else []
            rows[-1] += [cell] if begins is None or block.info == "list" else []
        rows = [row for row in rows if row]
        has_header = text.startswith("¦!", marks[1].start()) if len(marks) > 1 else False
        has_header |= ":header-rows:" in text[block.start : marks[0].start() if marks else block.end]
    rows = [row[:MAX_COLUMNS] for row in rows[: MAX_ROWS + 1] if row]
    return (rows[1:], rows[0]) if has_header and rows else (rows[:MAX_ROWS], None)


def _stripped(text: str, start: int, end: int) -> Cell:
    said = text[start:end]
    start += len(said) - len(said.lstrip())
    return Cell(" ".join(said.split()), start, max(start, start + len(said.strip())))


def _stated_columns(attributes: str) -> int:
    """Return how many columns the attributes of an AsciiDoc table state; 0 if they do not state it."""
    stated = _COLS.search(attributes)
    return sum(int(one.partition("*")[0]) if "*" in one else 1 for one in _SPECS.findall(stated[1])) if stated else 0


def _pipes(text: str, first: int, last: int) -> list[int]:
    """Return the starts of the cells of a row. Pipes in code spans or after a backslash are text."""
    cuts = [match.start() for match in _PIPE.finditer(text, first, last) if match[0] == "|"]
    if not cuts or text[first : cuts[0]].strip():
        cuts.insert(0, first - 1)
    if text[cuts[-1] + 1 : last].strip():
        cuts.append(last)
    return cuts


def _cell(text: str, start: int, end: int) -> Cell:
    start += text[start : start + 1] == "|"
    return Cell(" ".join(text[start:end].replace("\\|", "|").split()), start, max(start, end))
