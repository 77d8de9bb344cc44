"""Parse the structure of a text: headings, paragraphs, list entries, tables, fields, directives and code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nornweave.core.text.patterns import lazy_pattern

Kind: TypeAlias = Literal["heading", "paragraph", "item", "entry", "field", "table", "code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedBlock:
    """A stretch of one kind.

    Attributes:
        start: of its first line; ``end`` behind its last character.
        indent: columns before it.
        body: where its own words begin (behind a bullet, a ``#``).
        level: of a heading, from 1.
        info: ``simple`` of a table with ruled columns, the language of fenced code.
    """

    kind: Kind
    start: int
    end: int
    indent: int
    body: int
    level: int = 0
    info: str = ""


_BULLET = lazy_pattern(r"(?:[-*+•◦‣]|\d{1,3}[.)]|[a-z][.)])[ \t]+(?=\S)")
_MD_HEADING = lazy_pattern(r"(#{1,6})[ \t]+(?=\S)|(={1,5})[ \t]+(?=[^\s=])(?!.*=[ \t]*$)")
_UNDERLINE = lazy_pattern(r"([=\-~^\"'`#*+.:_<>])\1{2,}$")
RULER = lazy_pattern(r"[=-]{2,}(?:[ \t]+[=-]{2,})+$")
_GRID = lazy_pattern(r"\+[-=]{2,}")
_PIPE_RULE = lazy_pattern(r"\|?[ \t]*:?-{1,}:?[ \t]*\|[-:| \t]*$")
_FIELD = lazy_pattern(
    r":(?:param|parameter|arg|argument|key|keyword|type|return|returns|rtype|raise|raises|except|exception|ivar"
    r"|cvar|vartype|default)\b[^:\n]{0,80}:(?=\s|$)"
)
_AT_FIELD = lazy_pattern(
    r"[@\\](?:param|arg|argument|property|prop|default|defaultvalue|return|returns|throws|exception|raises|type"
    r"|deprecated|option)\b"
)
_DIRECTIVE = lazy_pattern(r"\.\.[ \t]+([\w:.+-]{1,40})::(?=\s|$)")
_WORD = lazy_pattern(r"\s*\w+(?:[._-]\w|(?<=[a-z])[A-Z])[\w.-]*\s*$")
_ENTRY = lazy_pattern(
    r"\*{0,2}[A-Za-z_][\w.-]{0,60}`{0,2}[ \t]?\([^()\n]{1,120}\)[ \t]?:(?=\s|$)|[\w*, ]{1,60} : [\w{\['\"].{0,120}$"
)
HELP = lazy_pattern(r"(?:-{1,2}[A-Za-z][\w-]*)(?:[ ,/|=]{1,3}[-<\[\]A-Za-z_.:|>]{1,40}){0,4}(?:[ \t]{2,}|\t)\S")
_STARTERS = frozenset("#`~|+.:@\\-*=•◦‣<")
_CODE_DIRECTIVES = frozenset(
    {"code-block", "code", "sourcecode", "literalinclude", "parsed-literal", "highlight", "prompt", "doctest"}
)

INNERMOST = 99
"""The level of what a directive names."""
_NOTES_OF_VERSIONS = frozenset({"versionadded", "versionchanged", "versionremoved", "deprecated"})
"""What stands below them held for a version, and is left out."""


class _Parser:
    """Reads the lines of a text: where each starts and ends, its words, and how far it is indented."""

    def __init__(self, text: str, raw: str) -> None:
        self.text = text
        self.starts: list[int] = []
        self.bodies: list[str] = []
        self.columns: list[int] = []  # of the first word; an indent is counted before tags
        self.indents: list[int] = []
        at = 0
        for line, written in zip(text.split("\n"), raw.split("\n"), strict=True):
            self.starts.append(at)
            body = line.strip()
            self.bodies.append(body)
            self.columns.append(len(line) - len(line.lstrip()) if body else 0)
            self.indents.append(len(written) - len(written.lstrip()) if body else -1)
            at += len(line) + 1
        self.ends = [*(start - 1 for start in self.starts[1:]), len(text)]
        indents = [indent for indent in self.indents[1:400] if indent >= 0] or [max(self.indents[0], 0)]
        self.base = min(indents)
        self.blocks: list[DocumentedBlock] = []
        self.styles: list[str] = []

    def _end_of_indented(self, at: int, indent: int) -> int:
        """Return the first line from here on that is neither blank nor indented deeper."""
        while at < len(self.bodies) and (not self.bodies[at] or self.indents[at] > indent):
            at += 1
        return at

    def _is_underlined(self, at: int) -> bool:
        if at + 1 >= len(self.bodies):
            return False
        under = self.bodies[at + 1]
        if not under or not _UNDERLINE.match(under) or self.indents[at + 1] != self.indents[at]:
            return False
        return (
            len(under) >= 0.7 * min(len(self.bodies[at]), 60)  # docutils only warns where it is too short
            and not RULER.match(self.bodies[at])
            and len(self.bodies[at]) < 120
        )

    def _last_of_run(self, at: int) -> int:
        while at + 1 < len(self.bodies) and self.bodies[at + 1]:
            at += 1
        return at

    def parse(self) -> list[DocumentedBlock]:
        at = 0
        while at < len(self.bodies):
            at = self._block(at) if self.bodies[at] else at + 1
        return self.blocks

    def _add(self, kind: Kind, first: int, last: int, *, body: int = -1, level: int = 0, info: str = "") -> int:
        """Add the lines from ``first`` to ``last``; return the line behind them."""
        start = self.starts[first] + self.columns[first]
        block = DocumentedBlock(
            kind=kind, start=start, end=self.ends[last], indent=self.indents[first] - self.base,
            body=start if body < 0 else body, level=level, info=info,
        )  # fmt: skip
        self.blocks.append(block)
        return last + 1

    def _block(self, at: int) -> int:
        body = self.bodies[at]
        if body[0] in _STARTERS or body[0].isdigit():
            found = self._marked(at, body)
            if found:
                return found
        if self._is_underlined(at):
            self._add("heading", at, at, level=self._style(self.bodies[at + 1][0]))
            return at + 2
        return self._paragraph(at)

    def _marked(self, at: int, body: str) -> int:
        if body.startswith(("```", "~~~")):
            return self._fence(at, body)
        heading = _MD_HEADING.match(body)
        if heading and not self._is_underlined(at):
            return self._add(
                "heading", at, at, body=self.starts[at] + self.columns[at] + heading.end(), level=heading.end() - 1
            )
        if RULER.match(body):
            return self._simple_table(at, at)
        if _GRID.match(body) or (body[0] == "|" and body.count("|") > 1):
            last = at
            while last + 1 < len(self.bodies) and self.bodies[last + 1][:1] in {"|", "+"}:
                last += 1
            return self._add("table", at, last)
        if directive := _DIRECTIVE.match(body):
            return self._directive(at, directive)
        if _FIELD.match(body) or _AT_FIELD.match(body):
            return self._add("field", at, self._last_of_entry(at))
        if HELP.match(body):
            return self._add("code", at, self._last_of_run(at))
        bullet = _BULLET.match(body)
        if bullet and not _UNDERLINE.match(body):
            start = self.starts[at] + self.columns[at]
            return self._add("item", at, self._last_of_entry(at), body=start + bullet.end())
        return 0

    def _style(self, mark: str) -> int:
        if mark not in self.styles:
            self.styles.append(mark)
        return self.styles.index(mark) + 1

    def _fence(self, at: int, body: str) -> int:
        mark = body[:3]
        for last in range(at + 1, len(self.bodies)):
            if self.bodies[last].startswith(mark) and not self.bodies[last].strip("`~"):
                break
        else:
            last = len(self.bodies)
        if last > at + 1:
            self._add("code", at + 1, last - 1, info=body.strip("`~{} \t").partition(" ")[0])
        return last + 1

    def _simple_table(self, first: int, ruler: int) -> int:
        """Take a table whose columns are ruled; it ends with a ruler before a blank line, or with its run of lines."""
        last = ruler
        for at in range(ruler + 1, len(self.bodies)):
            if RULER.match(self.bodies[at]):
                last = at
                if at + 1 >= len(self.bodies) or not self.bodies[at + 1]:
                    break
            elif self.bodies[at] and self._is_underlined(at):
                break
        if last == ruler or (last + 1 < len(self.bodies) and self.bodies[last + 1]):
            last = self._last_of_run(max(last, ruler))
        return self._add("table", first, last, info="simple")

    def _directive(self, at: int, match: re.Match[str]) -> int:
        name = match[1].lower()
        indent = self.indents[at]
        if name.rpartition(":")[2] in _CODE_DIRECTIVES:
            return self._indented_code(at + 1, indent)
        if name in _NOTES_OF_VERSIONS:
            return self._end_of_indented(at + 1, indent)
        body = self.starts[at] + self.columns[at] + match.end()
        is_name = _WORD.match(self.text, body, self.ends[at]) is not None  # ``.. confval:: max_rows``
        return self._add("heading" if is_name else "paragraph", at, at, body=body, level=INNERMOST)

    def _indented_code(self, at: int, indent: int) -> int:
        """Take the lines that are indented deeper as code; options of a directive (``:linenos:``) are no code."""
        while at < len(self.bodies) and (
            not self.bodies[at] or (self.indents[at] > indent and self.bodies[at][0] == ":")
        ):
            at += 1
        first, at = at, self._end_of_indented(at, indent)
        last = at - 1
        while last >= first and not self.bodies[last]:
            last -= 1
        if last >= first:
            self._add("code", first, last)
        return at

    def _starts_block(self, at: int) -> bool:
        body = self.bodies[at]
        first = body[0]
        if first in _STARTERS or first.isdigit():
            if body.startswith(("```", "~~~", "|", "+-", "+=")) or _BULLET.match(body) or _MD_HEADING.match(body):
                return True
            if first in ":@\\." and (_FIELD.match(body) or _AT_FIELD.match(body) or _DIRECTIVE.match(body)):
                return True
        return self._is_entry(body) or self._is_underlined(at)

    @staticmethod
    def _is_entry(body: str) -> bool:
        return ("):" in body or " : " in body or ") :" in body) and _ENTRY.match(body) is not None

    def _last_of_entry(self, at: int) -> int:
        """Return the last line of an entry: up to a blank line, or what begins something else."""
        while at + 1 < len(self.bodies) and self.bodies[at + 1] and not self._starts_block(at + 1):
            at += 1
        return at

    def _paragraph(self, at: int) -> int:
        body = self.bodies[at]
        if self._is_entry(body):
            return self._add("entry", at, self._last_of_entry(at))
        last = at
        while last + 1 < len(self.bodies) and (under := self.bodies[last + 1]):
            if RULER.match(under):
                return self._simple_table(at, last + 1)
            if _PIPE_RULE.match(under) and "|" in self.bodies[last]:
                return self._pipe_table(at, last)
            if self._starts_block(last + 1):
                break
            last += 1
        following = self._add("paragraph", at, last)
        if self.bodies[last].endswith("::"):
            return self._indented_code(following, self.indents[at])
        return following

    def _pipe_table(self, at: int, header: int) -> int:
        if header > at:
            self._add("paragraph", at, header - 1)
        last = header + 1
        while last + 1 < len(self.bodies) and "|" in self.bodies[last + 1]:
            last += 1
        return self._add("table", header, last)


def blocks_of(text: str, raw: str) -> list[DocumentedBlock]:
    """Split the words of a text into blocks, in order; they do not overlap.

    Args:
        raw: the text with its markup, or the text itself where markers of a comment stand before the lines.
    """
    return _Parser(text, raw).parse()
