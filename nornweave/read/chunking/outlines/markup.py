"""The outline of Markdown and reStructuredText: one pass over the lines.

A format says what block begins at a line and where it ends; everything else is shared. A block costs what its lines
cost, whatever the nesting, and nothing that a page names is executed or included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from unicodedata import combining, east_asian_width

from nornweave.core.text.inline_markup import front_matter, one_line, plain_line
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import (
    Block,
    Kind,
    closes_fence,
    container_blocks,
    even_line_ends,
    lines,
    opened_fence,
    tile,
)

Rows: TypeAlias = Sequence[str]


class _Found(NamedTuple):
    """What begins at a line: the line behind it, and of a heading how it is marked and what it says."""

    kind: Kind
    end: int
    mark: int | tuple[str, bool] = 0
    title: str = ""


def outline_markdown(text: str) -> list[Block]:
    """Outline Markdown: front matter, headings (ATX, setext, HTML), code, tables, lists and quotes, paragraphs."""
    start = front_matter(text)[1]
    front = [Block(Span(0, start), "front")] if start else []
    even = even_line_ends(text)
    blocks = (
        part
        for block in _outlined(even, start, _markdown_block)
        for part in (container_blocks(even, block.span) if block.kind == "list" else (block,))
    )
    return tile([*front, *blocks], text)


def outline_rst(text: str) -> list[Block]:
    """Outline reStructuredText: titles, literal and code blocks, tables (also as directives), everything else."""
    return tile(_outlined(even_line_ends(text), 0, _rst_block), text)


def _outlined(text: str, start: int, block_at: Callable[[Rows, int, str], _Found]) -> Iterator[Block]:
    """Yield the blocks; a heading that is marked by a style has the level of the place where the style first stood."""
    spans = list(lines(text, Span(start, len(text))))
    rows = [text[span.start : span.end].rstrip() for span in spans]
    styles: list[object] = []
    line, above = 0, ""
    while line < len(rows):
        if not rows[line]:
            line += 1
            continue
        found = block_at(rows, line, above)
        level = found.mark
        if not isinstance(level, int):
            if level not in styles:
                styles.append(level)
            level = styles.index(level) + 1
        yield Block(Span(spans[line].start, spans[found.end - 1].end), found.kind, level, found.title)
        above = rows[found.end - 1] if found.kind in {"paragraph", "list"} else ""
        line = found.end


def _end(rows: Rows, line: int, goes_on: Callable[[str], object]) -> int:
    """Return the end of the lines that go on after this one."""
    end = line + 1
    while end < len(rows) and goes_on(rows[end]):
        end += 1
    return end


def _indent(row: str) -> int:
    expanded = row.expandtabs(4) if "\t" in row else row
    return len(expanded) - len(expanded.lstrip())


def _indented_end(rows: Rows, line: int, indent: int) -> int:
    """Return the end of the lines that are blank or indented so far; blank ones at the end stay out."""
    end = line
    while line < len(rows) and (not rows[line] or _indent(rows[line]) >= indent):
        line += 1
        if rows[line - 1]:
            end = line
    return end


# Markdown.

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+([^\n]*))?$")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")
_SETEXT = re.compile(r" {0,3}(=+|-+)$")
_HTML_HEADING = re.compile(r"\s*<h([1-6])\b[^<>]*>(.*)</h\1\s*>\Z", re.I)
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}$")
_ITEM = re.compile(r"( {0,3}(?:([-*+])|\d{1,9}([.)]))(?:[ \t]+(?=\S)|$)| {0,3}>)")
_COLUMNS = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")
_TAG = re.compile(r" {0,3}<(?:(/?[A-Za-z][\w-]*)(?=[\s/>]|$)|!--|[?!])")
_WHOLE = {"table": "</table", "pre": "</pre", "script": "</script", "style": "</style", "!--": "-->"}
_INLINE_TAGS = frozenset(
    {"a", "abbr", "b", "br", "code", "em", "i", "img", "kbd", "small", "span", "strong", "sub", "sup"}
)
_LONGEST = 2_000


def _markdown_block(rows: Rows, line: int, _above: str) -> _Found:
    row = rows[line]
    if fence := opened_fence(row):
        end = _end(rows, line, lambda row: not closes_fence(row, fence))
        return _Found("code", min(end + 1, len(rows)))
    if row.startswith(("    ", "\t")):
        return _Found("code", _indented_end(rows, line, 4))
    if (atx := _ATX.match(row[:_LONGEST])) and (title := plain_line(_CLOSING_HASHES.sub("", (atx[2] or "").strip()))):
        return _Found("heading", line + 1, len(atx[1]), title)
    if _RULE.match(row[:_LONGEST]):
        return _Found("paragraph", line + 1)
    if "<" in row[:4] and (html := _html_block(rows, line)):
        return html
    if item := _ITEM.match(row):
        return _Found("list", _container_end(rows, line, item))
    if "|" in row and line + 1 < len(rows) and "-" in rows[line + 1] and _COLUMNS.match(rows[line + 1][:_LONGEST]):
        return _Found("table", _end(rows, line + 1, lambda row: row and not _interrupts(row)))
    end = line + 1
    while end < len(rows) and rows[end]:
        if underline := _SETEXT.match(rows[end][:_LONGEST]):
            title = plain_line(" ".join(row.strip() for row in rows[line:end]))
            return _Found("heading", end + 1, 1 if underline[1][0] == "=" else 2, title)
        if _interrupts(rows[end]):
            break
        end += 1
    return _Found("paragraph", end)


def _interrupts(row: str) -> bool:
    """Say whether a line ends the paragraph above it without a blank line between."""
    if not (body := row.lstrip()) or body[0].isalpha():
        return False
    item = _ITEM.match(row)
    opens = item is not None and (item[3] is None or body.startswith("1")) and len(item[0]) < len(row)
    tag = _TAG.match(row)
    return bool(
        opens
        or (item is not None and ">" in item[0])
        or _ATX.match(row[:_LONGEST])
        or opened_fence(row)
        or _RULE.match(row[:_LONGEST])
        or (tag is not None and (tag[1] or "").strip("/").lower() not in _INLINE_TAGS)
    )


def _html_block(rows: Rows, line: int) -> _Found | None:
    row = rows[line]
    if (heading := _HTML_HEADING.match(row[:_LONGEST])) and (title := plain_line(heading[2])):
        return _Found("heading", line + 1, int(heading[1]), title)
    tag = _TAG.match(row)
    if tag is None:
        return None
    name = (tag[1] or "!--").lower()
    if name.strip("/") in _INLINE_TAGS:
        return None
    kind: Kind = "table" if name == "table" else "code" if name == "pre" else "paragraph"
    if closing := _WHOLE.get(name):
        end = line
        while end < len(rows) and closing not in rows[end].lower():
            end += 1
            if end < len(rows) and name == "table" and _ATX.match(rows[end][:_LONGEST]):
                return _Found(kind, end)
        return _Found(kind, min(end + 1, len(rows)))
    return _Found(kind, _end(rows, line, bool))


def _container_end(rows: Rows, line: int, item: re.Match[str]) -> int:
    """Return the end of a list or quotation: lines that are indented, begin another item, or go on with a paragraph."""
    mark, depth = _mark(item), len(item[0].rstrip()) + 1
    end = at = line + 1
    fence: str | None = None
    while at < len(rows):
        row, follows = rows[at], at == end
        inside = mark != ">" and _indent(row) >= depth
        if fence is not None and (inside or not row):
            fence = None if closes_fence(row, fence) else fence
            end = at + 1 if row else end
        elif inside:
            fence = opened_fence(row.lstrip())
            end = at + 1 if row else end
        elif row:
            fence = None
            other = _ITEM.match(row)
            same = other is not None and _mark(other) == mark and not _RULE.match(row)
            if other and same and (follows or mark != ">"):
                depth = len(other[0].rstrip()) + 1
            elif not follows or _interrupts(row):
                break
            end = at + 1
        at += 1
    return end


def _mark(item: re.Match[str]) -> str:
    return item[2] or item[3] or ">"


# reStructuredText.

_LONGEST_TITLE, _MOST_TARGETS = 300, 40
_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1*\Z")
_ROLE = re.compile(r":[A-Za-z][\w:+.-]{0,60}:`([^`<>]{0,300}?)(?:\s*<[^`<>]{0,300}>)?`")
_INLINE = re.compile(r"(``|\*\*|[*`|])(?=\S)(.{0,300}?\S)\1_{0,2}")
_ESCAPE = re.compile(r"\\(?:\s|(\S))")
_NO_PARAGRAPH = re.compile(
    r"\.\.(?:\s|\Z)|__\s|:[^:\s][^:]{0,80}:(?:\s|\Z)|[-*+•]\s|[(]?(?:\d{1,9}|[A-Za-z]|#)[.)]\s|\||>>>\s"
)
_TARGET = re.compile(r"\.\. _[^\n]{1,200}:\s*\Z")
_DIRECTIVE = re.compile(r"\s*\.\. +(?:\|[^|\n]{1,80}\| +)?([A-Za-z][\w:.+-]{0,60})::")
_GRID = re.compile(r"\s*\+(?:[-=]+\+)+\Z")
_SIMPLE = re.compile(r"\s*=+(?: +=+)+\Z")
_BULLET = re.compile(r"\s*(?:[-*+•]|[(]?(?:\d{1,9}|[A-Za-z]|#)[.)])\s")
_CODE = """
code code-block sourcecode parsed-literal literalinclude math prompt productionlist doctest testcode testsetup
testoutput ipython jupyter-execute command-output raw graphviz digraph mermaid uml plantuml
"""
_TABLES = "table list-table csv-table flat-table tabularcolumns"
_DIRECTIVES: Mapping[str, Kind] = {**dict.fromkeys(_CODE.split(), "code"), **dict.fromkeys(_TABLES.split(), "table")}


def _rst_block(rows: Rows, line: int, above: str) -> _Found:
    row = rows[line]
    if title := _title(rows, _below_targets(rows, line)):
        return title
    if above.endswith("::") and not _DIRECTIVE.match(above):  # the paragraph above announced a literal block
        return _Found("code", _literal_end(rows, line))
    if kind := _directive(row):
        return _Found(kind, _indented_end(rows, line + 1, _indent(row) + 1))
    if _GRID.match(row):
        return _Found("table", _end(rows, line, lambda row: row.lstrip().startswith(("+", "|"))))
    if _SIMPLE.match(row) and (table := _simple_table_end(rows, line)):
        return _Found("table", table)
    end = line + 1
    while (
        end < len(rows) and rows[end] and not _directive(rows[end]) and not (_ends(rows[end - 1]) and _title(rows, end))
    ):
        end += 1
    if row.lstrip().startswith(">>> "):
        return _Found("code", end)
    return _Found("list" if _BULLET.match(row) else "paragraph", end)


def _directive(row: str) -> Kind | None:
    """Return what a line opens that stays whole, also without a blank line above."""
    directive = _DIRECTIVE.match(row) if ".." in row[:80] else None
    return _DIRECTIVES.get(directive[1].rpartition(":")[2]) if directive else None


def _title(rows: Rows, line: int) -> _Found | None:
    """Return the title that begins here; as in docutils, an underline below four characters is as long as its title."""
    row, below, last = [*rows[line : line + 3], "", "", ""][:3]
    if not row or not below or max(len(row), len(below)) > _LONGEST_TITLE:
        return None
    over = bool(_UNDERLINE.match(row)) and last == row
    title, under = (below, row) if over else (row, below)
    if (not over and (row[0].isspace() or not _UNDERLINE.match(below))) or (
        len(under) < 4 and _columns(title) > len(under)
    ):
        return None
    return _Found("heading", line + 2 + over, (under[0], over), _read(title)) if _read(title) else None


def _columns(title: str) -> int:
    return sum((2 if east_asian_width(char) in "WF" else 1) for char in title if not combining(char))


def _read(title: str) -> str:
    return one_line(_ESCAPE.sub(r"\1", _INLINE.sub(r"\2", _ROLE.sub(r"\1", title))))


def _ends(row: str) -> bool:
    """Say whether a title may stand right below a line: not below one of a paragraph."""
    return not row or row[0].isspace() or bool(_NO_PARAGRAPH.match(row) or _UNDERLINE.match(row))


def _below_targets(rows: Rows, line: int) -> int:
    """Return the line below the ``.. _targets:`` that name a section and go with its title."""
    title = line
    while title < min(line + _MOST_TARGETS, len(rows)) and (not rows[title] or _TARGET.match(rows[title])):
        title += 1
    return title


def _literal_end(rows: Rows, line: int) -> int:
    """Return the end of a literal block: where the indentation ends, or, unindented, the quoting."""
    mark = rows[line][0]
    if mark.isspace():
        return _indented_end(rows, line, _indent(rows[line]))
    return _end(rows, line, lambda row: row.lstrip().startswith(mark))


def _simple_table_end(rows: Rows, line: int) -> int | None:
    """Apply docutils' rule: a table ends at its third border, or at a border with nothing below."""
    borders = 0
    for end in range(line + 1, len(rows)):
        if _SIMPLE.match(rows[end]):
            borders += 1
            if borders == 2 or end + 1 == len(rows) or not rows[end + 1]:
                return end + 1
    return None
