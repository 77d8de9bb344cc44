"""The outline of reStructuredText: docutils finds the titles, a scan of lines finds the blocks between them.

docutils 0.23 parses whole pages at some 450 KB a second, ten times slower than the rest of chunking, and runs or
refuses directives that only Sphinx knows. So it is given the lines that may be titles and nothing else: their levels
follow from their order alone, and nothing is executed or included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import docutils
from docutils import nodes
from docutils.frontend import Values, get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import column_width, new_document

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import Block, Kind, even_line_ends, lines, tile

# docutils takes a quarter of a millisecond for a title; beyond these bounds levels follow from the styles alone.
_TITLES_BOUND = 2_000
_TITLE_LENGTH = 300

_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1*\Z")
_ROLE = re.compile(r":[A-Za-z][\w:+.-]{0,60}:`([^`<>]{0,300}?)(?:\s*<[^`<>]{0,300}>)?`")
_NO_PARAGRAPH = re.compile(
    r"\.\.(?:\s|\Z)|__\s|:[^:\s][^:]{0,80}:(?:\s|\Z)|[-*+•]\s|[(]?(?:\d{1,9}|[A-Za-z]|#)[.)]\s|\||>>>\s"
)
_TARGET = re.compile(r"\.\. _[^\n]{1,200}:\s*\Z")
_DIRECTIVE = re.compile(r"\s*\.\. +(?:\|[^|\n]{1,80}\| +)?([A-Za-z][\w:.+-]{0,60})::")
_GRID = re.compile(r"\s*\+(?:[-=]+\+)+\Z")
_SIMPLE = re.compile(r"\s*=+(?: +=+)+\Z")
_BULLET = re.compile(r"\s*(?:[-*+•]|[(]?(?:\d{1,9}|[A-Za-z]|#)[.)])\s")
_CODE = frozenset(
    {
        *("code", "code-block", "sourcecode", "parsed-literal", "literalinclude", "math", "prompt", "productionlist"),
        *("doctest", "testcode", "testsetup", "testoutput", "ipython", "jupyter-execute", "command-output", "raw"),
        *("graphviz", "digraph", "mermaid", "uml", "plantuml"),
    }
)
_TABLES = frozenset({"table", "list-table", "csv-table", "flat-table", "tabularcolumns"})


@dataclass(frozen=True, slots=True)
class _Title:
    """Lines that may be a title: ``first`` to ``end`` (exclusive), underline and overline included."""

    first: int
    end: int
    text: str
    style: tuple[str, bool]


@cache
def _settings() -> Values:
    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = False
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    return settings


def outline_rst(text: str) -> list[Block]:
    """Outline reStructuredText: titles, literal and code blocks, tables (also as directives), everything else."""
    even = even_line_ends(text)
    spans = list(lines(even, Span(0, len(text))))
    rows = [even[span.start : span.end].rstrip() for span in spans]
    candidates = list(_candidates(rows))
    headings = {
        _first_target(rows, title.first): (title, level, name) for title, level, name in _levels(rows, candidates)
    }
    blocks = []
    for kind, first, end in _scan(rows, headings):
        _, level, name = headings[first] if kind == "heading" else (None, 0, "")
        blocks.append(Block(Span(spans[first].start, spans[end - 1].end), kind, level, name))
    return tile(blocks, text)


def _candidates(rows: Sequence[str]) -> Iterator[_Title]:
    line = 0
    while line < len(rows):
        title = _title_at(rows, line) if rows[line] and (line == 0 or _ends(rows, line - 1)) else None
        if title:
            yield title
        line = title.end if title else line + 1


def _ends(rows: Sequence[str], line: int) -> bool:
    """Say whether a title may stand right below ``line``: not below a line of a paragraph."""
    row = rows[line]
    return not row or row[0].isspace() or bool(_NO_PARAGRAPH.match(row) or _UNDERLINE.match(row))


def _title_at(rows: Sequence[str], line: int) -> _Title | None:
    row = rows[line]
    below = rows[line + 1] if line + 1 < len(rows) else ""
    if not below or len(row) > _TITLE_LENGTH or len(below) > _TITLE_LENGTH:
        return None
    if _UNDERLINE.match(row) and line + 2 < len(rows) and rows[line + 2] == row and _fits(below, row):
        return _Title(line, line + 3, below, (row[0], True))
    if not row[0].isspace() and _UNDERLINE.match(below) and _fits(row, below):
        return _Title(line, line + 2, row, (below[0], False))
    return None


def _fits(title: str, underline: str) -> bool:
    """Apply docutils' rule: an underline of three characters or less must be as long as its title."""
    return len(underline) >= 4 or column_width(title) <= len(underline)


def _levels(rows: Sequence[str], candidates: Sequence[_Title]) -> Iterator[tuple[_Title, int, str]]:
    sections = _docutils_sections(rows, candidates) if 0 < len(candidates) <= _TITLES_BOUND else None
    if sections is None:
        yield from _levels_by_style(candidates)
        return
    remaining = iter(candidates)
    for raw, level, name in sections:
        candidate = next((title for title in remaining if title.text.strip() == raw), None)
        if candidate and name:
            yield candidate, level, name


def _docutils_sections(rows: Sequence[str], candidates: Sequence[_Title]) -> list[tuple[str, int, str]] | None:
    """Return title as written, level and title as read of each section that docutils sees in the candidates alone."""
    skeleton: list[str] = []
    for candidate in candidates:
        skeleton += [*rows[candidate.first : candidate.end], ""]
    document = new_document("", _settings())
    try:
        Parser().parse("\n".join("".join(c if c.isprintable() else " " for c in row) for row in skeleton), document)
    except (docutils.ApplicationError, docutils.DataError, AssertionError, LookupError, ValueError, RecursionError):
        return None
    found = []
    for section in document.findall(nodes.section):
        title = section.next_node(nodes.title)
        if title is not None:
            found.append((title.rawsource.strip(), len(section.section_hierarchy()), _read(title.astext())))
    return found


def _read(title: str) -> str:
    return one_line(_ROLE.sub(r"\1", title) if "`" in title else title)


def _levels_by_style(candidates: Sequence[_Title]) -> Iterator[tuple[_Title, int, str]]:
    styles: list[tuple[str, bool]] = []
    for title in candidates:
        if title.style not in styles:
            styles.append(title.style)
        name = _read(title.text)
        if name:
            yield title, styles.index(title.style) + 1, name


def _first_target(rows: Sequence[str], line: int) -> int:
    """Return the first of the ``.. _targets:`` right above a title, which name its section and go with it."""
    first = line
    while line > 0 and (not rows[line - 1] or _TARGET.match(rows[line - 1])):
        line -= 1
        if rows[line]:
            first = line
    return first


def _scan(rows: Sequence[str], headings: dict[int, tuple[_Title, int, str]]) -> Iterator[tuple[Kind, int, int]]:
    """Yield kind, first line and end line (exclusive) of every block; blank lines between blocks are left out."""
    line = 0
    literal = False  # the paragraph above announced a literal block
    while line < len(rows):
        if not rows[line]:
            line += 1
            continue
        kind, end = _block_at(rows, headings, line, literal)
        yield kind, line, end
        literal = kind in {"paragraph", "list"} and rows[end - 1].endswith("::") and not _DIRECTIVE.match(rows[end - 1])
        line = end


def _block_at(
    rows: Sequence[str], headings: dict[int, tuple[_Title, int, str]], line: int, literal: bool
) -> tuple[Kind, int]:
    row = rows[line]
    if line in headings:
        return "heading", headings[line][0].end
    if literal:
        return "code", _literal_end(rows, line)
    if directive := _DIRECTIVE.match(row):
        name = directive[1].rpartition(":")[2]
        if name in _CODE or name in _TABLES:
            return ("code" if name in _CODE else "table"), _indented_end(rows, line + 1, _indent(row) + 1)
    if _GRID.match(row):
        return "table", _run_end(rows, line, ("+", "|"))
    if _SIMPLE.match(row) and (end := _simple_table_end(rows, line)):
        return "table", end
    end = _paragraph_end(rows, headings, line)
    if row.lstrip().startswith(">>> "):
        return "code", end
    return ("list" if _BULLET.match(row) else "paragraph"), end


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _paragraph_end(rows: Sequence[str], headings: dict[int, tuple[_Title, int, str]], line: int) -> int:
    end = line + 1
    while end < len(rows) and rows[end] and end not in headings and not _opens(rows[end]):
        end += 1
    return end


def _opens(row: str) -> bool:
    """Say whether a line opens a block that must stay whole, though no blank line stands above it."""
    directive = _DIRECTIVE.match(row) if ".." in row[:80] else None
    return bool(directive and directive[1].rpartition(":")[2] in _CODE | _TABLES)


def _indented_end(rows: Sequence[str], line: int, indent: int) -> int:
    end = line
    while line < len(rows) and (not rows[line] or _indent(rows[line]) >= indent):
        line += 1
        if rows[line - 1]:
            end = line
    return end


def _literal_end(rows: Sequence[str], line: int) -> int:
    """Return the end of a literal block: where the indentation ends, or, unindented, the quoting."""
    if rows[line][0].isspace():
        return _indented_end(rows, line, _indent(rows[line]))
    return _run_end(rows, line, (rows[line][0],))


def _run_end(rows: Sequence[str], line: int, starts: tuple[str, ...]) -> int:
    end = line + 1
    while end < len(rows) and rows[end].lstrip().startswith(starts):
        end += 1
    return end


def _simple_table_end(rows: Sequence[str], line: int) -> int | None:
    """Apply docutils' rule: a table ends at its third border, or at a border with nothing below."""
    borders = 0
    for end in range(line + 1, len(rows)):
        if _SIMPLE.match(rows[end]):
            borders += 1
            if borders == 2 or end + 1 == len(rows) or not rows[end + 1]:
                return end + 1
    return None
