"""The blocks of reStructuredText: titles, directives, terms, tables, literal blocks; its comments are not text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from unicodedata import combining, east_asian_width

from nornweave.core.text.inline_markup import one_line
from nornweave.read.blocks.block import (
    Blocks,
    Found,
    Kind,
    Reading,
    Stretch,
    end_of,
    indent_of,
    indented_end,
    read_lines,
)
from nornweave.read.blocks.unseen import UnseenParts, is_unseen_directive

_LONGEST_TITLE, _MOST_TARGETS = 300, 40
_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1*\Z")
_ROLE = re.compile(r":[A-Za-z][\w:+.-]{0,60}:`([^`<>]{0,300}?)(?:\s*<[^`<>]{0,300}>)?`")
_INLINE = re.compile(r"(``|\*\*|[*`|])(?=\S)(.{0,300}?\S)\1_{0,2}")
_ESCAPE = re.compile(r"\\(?:\s|(\S))")
_NO_PARAGRAPH = re.compile(
    r"\.\.(?:\s|\Z)|__\s|:[^:\s][^:]{0,80}:(?:\s|\Z)|[-*+•]\s|[(]?(?:\d{1,9}|[A-Za-z]|#)[.)]\s|\||>>>\s"
)
_TARGET = re.compile(r"\.\. _[^\n]{1,200}:\s*\Z")
_DIRECTIVE = re.compile(
    r"\s*\.\. +(?:\|(?P<substituted>[^|\n]{1,80})\| +)?(?P<name>[A-Za-z][\w:.+-]{0,60}) ?::(?:\s+(?P<said>.*))?$"
)
# Footnotes, citations, targets and substitutions; all else behind two dots is a comment.
_EXPLICIT = re.compile(r"\s*\.\.\s+(?:\[|_|\|[^|]+\|\s)")
_COMMENT = re.compile(r"\s*\.\.(?:\s|\Z)")
_OPTION_FIELD = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_OPTION = re.compile(
    r"\s*((?:--?|/)\w[\w?-]*(?:[ =]<?[\w.|-]+>?)?(?:, (?:--?|/)\w[\w?-]*(?:[ =]<?[\w.|-]+>?)?)*)(?: {2,}(?=\S)|$)"
)
_GRID = re.compile(r"\s*\+(?:[-=]+\+)+\Z")
_SIMPLE = re.compile(r"\s*=+(?: +=+)+\Z")
_BULLET = re.compile(r"\s*(?:[-*+•]|[(]?(?:\d{1,9}|[A-Za-z]|#)[.)])\s")
_CODE = """
code code-block sourcecode parsed-literal literalinclude math prompt productionlist doctest testcode testoutput
ipython jupyter-execute command-output raw graphviz digraph mermaid uml plantuml
"""
_TABLES = "table list-table csv-table flat-table"
_DIRECTIVES: Mapping[str, Kind] = {**dict.fromkeys(_CODE.split(), "code"), **dict.fromkeys(_TABLES.split(), "table")}


def read_rst(text: str) -> Blocks:
    """Read reStructuredText."""
    return read_lines(text, 0, _block_at)


def _block_at(reading: Reading, stretch: Stretch, at: int, above: str) -> Found:
    rows = stretch.rows
    row = rows[at]
    if not reading.depth and (title := _title(rows, _below_targets(rows, at))):
        return title
    if above.endswith("::") and not _DIRECTIVE.match(above):  # the paragraph above announced a literal block
        return Found("code", _literal_end(rows, at))
    if ".." in row[:80] and (explicit := _explicit(reading, stretch, at)):
        return explicit
    if _GRID.match(row):
        return Found("table", end_of(rows, at, lambda row: row.lstrip().startswith(("+", "|"))), info="grid")
    if _SIMPLE.match(row) and (table := _simple_table_end(rows, at)):
        return Found("table", table, info="simple")
    return _option(rows, at) or _term(rows, at) or _paragraph(reading, rows, at)


def _explicit(reading: Reading, stretch: Stretch, at: int) -> Found | None:
    """Return the directive or the comment that begins at a line; ``None`` if neither begins there."""
    rows, row = stretch.rows, stretch.rows[at]
    directive = _DIRECTIVE.match(row)
    if directive is None:
        if not _COMMENT.match(row) or _EXPLICIT.match(row):
            return None
        is_empty = row.strip() == ".." and rows[at + 1 : at + 2] == [""]
        return Found("hidden", at + 1 if is_empty else indented_end(rows, at + 1, indent_of(row) + 1))
    name, argument = directive["name"].rpartition(":")[2], directive["said"] or ""
    is_used = directive["substituted"] is None or reading.text.count(f"|{directive['substituted']}|") > 1
    end = indented_end(rows, at + 1, indent_of(row) + 1)
    options = "\n".join(takewhile(bool, rows[at + 1 : end]))
    if not is_used or is_unseen_directive(name, argument, options):
        return Found("hidden", end)
    if kind := _DIRECTIVES.get(name):
        if name == "raw":
            reading.hidden += UnseenParts(reading.text).within(stretch.span(at, end))
        drawn = "grid" if any(row.lstrip().startswith("+-") for row in rows[at:end]) else "simple"
        return Found(kind, end, info=argument if kind == "code" else drawn if name == "table" else name)
    body = at + 1
    while body < end and _OPTION_FIELD.match(rows[body]):
        body += 1
    if body == end:
        return None
    is_named = body > at + 1 or not rows[body] or ":" in directive["name"]
    return Found("note", end, info=_read(argument) if is_named else "", body=body)


def _option(rows: Sequence[str], at: int) -> Found | None:
    """Return the entry of an option list that begins at a line (``-f FILE  what it does``); ``None`` without one."""
    option = _OPTION.match(rows[at]) if rows[at].lstrip()[:1] in {"-", "/"} else None
    if option is None or _UNDERLINE.match(rows[at]):
        return None
    end = indented_end(rows, at + 1, indent_of(rows[at]) + 1)
    if option.end() < len(rows[at]):
        return Found("term", end, info=option[1], body=at, lead=option.end())
    return Found("term", end, info=option[1], body=at + 1) if end > at + 1 else None


def _term(rows: Sequence[str], at: int) -> Found | None:
    """Return the entry of a definition list that begins at a line; ``None`` if no entry begins there.

    An entry is a line above lines that are indented deeper.
    """
    row, below = rows[at], rows[at + 1] if at + 1 < len(rows) else ""
    indent = indent_of(row)
    if not below or indent_of(below) <= indent or row.endswith("::") or _NO_PARAGRAPH.match(row.lstrip()):
        return None
    return Found("term", indented_end(rows, at + 1, indent + 1), info=_read(row.strip()), body=at + 1)


def _paragraph(reading: Reading, rows: Sequence[str], at: int) -> Found:
    end = at + 1
    while (
        end < len(rows)
        and rows[end]
        and not _directive(rows[end])
        and not (_COMMENT.match(rows[at]) and _COMMENT.match(rows[end]))
        and not (not reading.depth and _ends(rows[end - 1]) and _title(rows, end))
    ):
        end += 1
    if rows[at].lstrip().startswith(">>> "):
        return Found("code", end)
    return Found("list" if _BULLET.match(rows[at]) else "paragraph", end)


def _directive(row: str) -> Kind | None:
    """Return the kind of block that a directive opens; ``None`` if the line is not such a directive.

    The block needs no blank line above it, and is not divided.
    """
    directive = _DIRECTIVE.match(row) if ".." in row[:80] else None
    return _DIRECTIVES.get(directive["name"].rpartition(":")[2]) if directive else None


def _title(rows: Sequence[str], line: int) -> Found | None:
    """Return the title that begins at a line; ``None`` if no title begins there.

    As in docutils, an underline of fewer than four characters must be at least as long as its title.
    """
    row, below, last = [*rows[line : line + 3], "", "", ""][:3]
    if not row or not below or max(len(row), len(below)) > _LONGEST_TITLE:
        return None
    over = bool(_UNDERLINE.match(row)) and last == row
    title, under = (below, row) if over else (row, below)
    if (not over and (row[0].isspace() or not _UNDERLINE.match(below))) or (
        len(under) < 4 and _columns(title) > len(under)
    ):
        return None
    return Found("heading", line + 2 + over, (under[0], over), _read(title)) if _read(title) else None


def _columns(title: str) -> int:
    return sum((2 if east_asian_width(char) in "WF" else 1) for char in title if not combining(char))


def _read(title: str) -> str:
    return one_line(_ESCAPE.sub(r"\1", _INLINE.sub(r"\2", _ROLE.sub(r"\1", title))))


def _ends(row: str) -> bool:
    """Tell whether a title may begin below a line, because this line does not belong to a paragraph."""
    return not row or row[0].isspace() or bool(_NO_PARAGRAPH.match(row) or _UNDERLINE.match(row))


def _below_targets(rows: Sequence[str], line: int) -> int:
    """Return the number of the line below some targets (``.. _name:``). They belong to the title that follows."""
    title = line
    while title < min(line + _MOST_TARGETS, len(rows)) and (not rows[title] or _TARGET.match(rows[title])):
        title += 1
    return title


def _literal_end(rows: Sequence[str], line: int) -> int:
    """Return the index of the line after the literal block that begins at ``line``.

    Either all of its lines are indented, or all of them begin with the same quotation sign.
    """
    mark = rows[line][0]
    if mark.isspace():
        return indented_end(rows, line, indent_of(rows[line]))
    return end_of(rows, line, lambda row: row.lstrip().startswith(mark))


def _simple_table_end(rows: Sequence[str], line: int) -> int | None:
    """Return the end of the simple table that begins at a line; ``None`` if the table is not closed.

    By the rule of docutils it ends at its third border, or at a border above a blank line.
    """
    borders = 0
    for end in range(line + 1, len(rows)):
        if _SIMPLE.match(rows[end]):
            borders += 1
            if borders == 2 or end + 1 == len(rows) or not rows[end + 1]:
                return end + 1
    return None
