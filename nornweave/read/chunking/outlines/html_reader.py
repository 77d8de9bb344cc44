"""Read HTML in one pass of html.parser: the readable text and where each part of it came from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from html import unescape
from html.parser import HTMLParser

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import Block, Kind, tile

_SKIPPED_ROLES = frozenset({"navigation", "search", "contentinfo"})
_SKIPPED_CLASSES = frozenset({"headerlink", "linenos", "linenodiv", "sr-only"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CELLS = frozenset({"table", "pre", "tr", "td", "th", "caption"})
_BLOCKS = _CELLS | {
    *("p", "div", "section", "article", "main", "header", "body", "html", "center", "blockquote", "hr", "address"),
    *("ul", "ol", "li", "dl", "dt", "dd", "thead", "tbody", "tfoot", "figure", "figcaption", "details", "summary"),
    *("nav", "footer", "aside", "noscript", "title", "iframe", "object"),
    *("form", "fieldset", "select", "option", "textarea", "button"),
}
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_SPACE = re.compile(r"\s+")
_PERMALINKS = frozenset({"¶", "#", "§", "\u200b"})
# html.unescape's own pattern: what it resolves as a whole must resolve alike in parts.
_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")
# Words with single blanks between them, which collapsing blank space does not move.
_UNMOVED = re.compile(r"\S+(?:\s\S+)*\s*|\A\s+")
_INDENT_BOUND = 8
_ANCHOR_BOUND = 500


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of readable text and the stretch of the file that it came from, which is empty for marks added here."""

    start: int
    length: int
    source: Span


@dataclass(frozen=True, slots=True)
class Readable:
    """The readable text of an HTML file.

    Attributes:
        blocks: tile ``text``.
        runs: in order of both texts.
        tags: where in the file the tag of each block starts, by the block's start in ``text``; ascending.
    """

    text: str
    blocks: Sequence[Block]
    runs: Sequence[Run]
    tags: dict[int, int]

    def source_of(self, offset: int) -> int:
        """Return where in the file the readable text at ``offset`` comes from: its block's tag, or inside a block."""
        if offset in self.tags:
            return self.tags[offset]
        position = bisect_right(self.runs, offset, key=lambda run: run.start) - 1
        if position < 0:
            return 0
        run = self.runs[position]
        return run.source.start + min(offset - run.start, max(0, len(run.source) - 1))


def _resolved(text: str, data: str, source: Span) -> list[tuple[str, Span]]:
    """Cut ``data``, which ``source`` says with references, at the references; whole when that does not fit together."""
    pieces: list[tuple[str, Span]] = []
    start = source.start
    for reference in _REFERENCE.finditer(text, source.start, source.end):
        if start < reference.start():
            pieces.append((text[start : reference.start()], Span(start, reference.start())))
        pieces.append((unescape(reference[0]), Span(*reference.span())))
        start = reference.end()
    if start < source.end:
        pieces.append((text[start : source.end], Span(start, source.end)))
    return pieces if "".join(piece for piece, _ in pieces) == data else [(data, source)]


def _collapsed(text: str, source: Span) -> list[tuple[str, Span]]:
    """Collapse blank space, in as many parts as it takes for each to start where its source does."""
    whole = _SPACE.sub(" ", text)
    if len(whole) == len(text) or len(source) != len(text):
        return [(whole, source)]
    return [
        (_SPACE.sub(" ", part[0]), Span(source.start + part.start(), source.start + part.end()))
        for part in _UNMOVED.finditer(text)
    ]


def _stripped(text: str, source: Span) -> tuple[str, Span]:
    stripped = text.lstrip(" ")
    same = len(text) == len(source)
    return stripped, Span(source.end - len(stripped), source.end) if same else source


def _id_of(attrs: list[tuple[str, str | None]]) -> str:
    return next((value for name, value in attrs if name == "id" and value), "")[:_ANCHOR_BOUND]


class HtmlReader(HTMLParser):
    """Writes the readable text while html.parser goes through the file once.

    Attributes:
        skipped: tags that are left out with all they hold.
        by_mark: whether roles and classes may leave an element out too.
        skipping: the element being left out; after ``read`` one that was never closed.
        length: of what was written so far.
    """

    def __init__(self, source: str, skipped: Collection[str], *, by_mark: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.skipped = skipped
        self.by_mark = by_mark
        self.length = 0
        self.skipping = ""
        self._skip_depth = 0
        self._lines = [0, *(match.end() for match in re.finditer("\n", source))]
        self._out: list[str] = []
        self._blocks: list[Block] = []
        self._runs: list[Run] = []
        self._tags: dict[int, int] = {}
        self._pending: list[tuple[str, Span]] = []
        self._text_start = -1
        self._block_at = 0
        self._kind: Kind = "paragraph"
        self._level = 0
        self._anchor = ""
        self._item = False
        self._depth = 0
        self._pre = 0
        self._tables = 0
        self._row: list[list[tuple[str, Span]]] = []
        self._rows: list[Block] = []

    def read(self) -> None:
        """Go through the whole file."""
        self.feed(self.source)
        self.close()
        self._flush(len(self.source))
        self._end_table()

    def readable(self) -> Readable:
        """Return what was written."""
        text = "".join(self._out)
        return Readable(text, tile(self._blocks, text) if text else [], self._runs, self._tags)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a block, or start to skip."""
        if self.skipping:
            self._skip_depth += tag == self.skipping
        elif tag in self.skipped or (attrs and self._left_out(tag, attrs)):
            if tag in _BLOCKS:
                self._flush(self._at())
            self.skipping, self._skip_depth = tag, 1
        elif tag == "br":
            self._add("\n" if not self._tables else " ", Span(self._at(), self._at()))
        elif tag in _HEADINGS:
            self._flush(self._at())
            self._end_table()
            self._kind, self._level = "heading", _HEADINGS[tag]
            self._anchor = _id_of(attrs)
        elif tag in _BLOCKS:
            self._open(tag, self._at())
            self._anchor = _id_of(attrs) if tag == "dt" else ""

    def handle_endtag(self, tag: str) -> None:
        """Close a block, or stop to skip."""
        if self.skipping:
            self._skip_depth -= tag == self.skipping
            if not self._skip_depth:
                self.skipping = ""
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._close(tag, self._at())

    def handle_data(self, data: str) -> None:
        """Take a run of text; references are resolved already."""
        if self.skipping:
            return
        self._take(data, self._at())

    def unknown_decl(self, data: str) -> None:
        """Take the text of a CDATA section."""
        if data.upper().startswith("CDATA[") and not self.skipping:
            self._take(data[6:], self._at() + len("<![CDATA["))

    def _take(self, data: str, at: int) -> None:
        if self.source.startswith(data, at):
            self._add(data, Span(at, at + len(data)))
            return
        end = self.source.find("<", at + 1)
        for piece, source in _resolved(self.source, data, Span(at, end if end > 0 else len(self.source))):
            self._add(piece, source)

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def _left_out(self, tag: str, attrs: list[tuple[str, str | None]]) -> bool:
        if not self.by_mark or tag in _VOID or tag in {"body", "html", "main"}:
            return False
        return any(
            (name == "role" and value in _SKIPPED_ROLES)
            or (name == "class" and value is not None and not _SKIPPED_CLASSES.isdisjoint(value.split()))
            for name, value in attrs
        )

    def _add(self, text: str, source: Span) -> None:
        if self._kind == "heading" and text.strip() in _PERMALINKS:
            return
        if not self._pending:
            if not text.strip():
                return
            self._block_at = min(self._block_at, source.start) if self._block_at >= 0 else source.start
        self._pending.append((text, source))

    def _open(self, tag: str, at: int) -> None:
        if self._tables and tag not in _CELLS:
            self._add(" ", Span(at, at))
            return
        self._flush(at)
        if tag in {"table", "pre"}:
            self._end_table()
        if tag == "tr":
            self._end_row()
        self._tables += tag == "table"
        self._pre += tag == "pre"
        self._depth += tag in {"ul", "ol"}
        self._item = tag == "li" or (self._item and tag in {"p", "div"})
        self._kind = "code" if self._pre else "list" if tag in {"li", "dt", "dd"} else self._kind

    def _close(self, tag: str, at: int) -> None:
        if self._tables and tag not in _CELLS and tag not in _HEADINGS:
            self._add(" ", Span(at, at))
            return
        self._flush(at)
        if tag == "tr":
            self._end_row()
        if tag == "table":
            self._end_table()
        self._tables = max(0, self._tables - (tag == "table"))
        self._pre = max(0, self._pre - (tag == "pre"))
        self._depth = max(0, self._depth - (tag in {"ul", "ol"}))
        self._item = self._item and tag not in {"li", "ul", "ol"}

    def _flush(self, at: int) -> None:
        """Write the block whose text is pending; the next one starts at ``at``."""
        pending, self._pending = self._pending, []
        kind, self._kind = self._kind, "code" if self._pre else "paragraph"
        anchor, self._anchor = self._anchor, ""
        if self._tables and kind == "paragraph" and pending:
            if not self._row:
                self._tags.setdefault(-1, self._block_at)
            self._row.append(pending)
        elif pending:
            self._write_block(kind, pending, anchor)
        self._block_at = at

    def _write_block(self, kind: Kind, pending: list[tuple[str, Span]], anchor: str) -> None:
        item = kind == "list" or self._item
        joins = item and bool(self._blocks) and self._blocks[-1].kind == "list"
        self._separate("\n" if joins else "\n\n")
        start = self.length
        if self._item:
            self._write("  " * min(max(0, self._depth - 1), _INDENT_BOUND) + "- ", Span(self._block_at, self._block_at))
            self._item = False
        title = self._write_runs(pending, verbatim=kind == "code")
        title = one_line(title) if kind == "heading" else ""
        self._tags[start] = self._block_at
        kind = "paragraph" if kind == "heading" and not title else "list" if item and kind == "paragraph" else kind
        level = self._level if kind == "heading" else 0
        self._blocks.append(Block(Span(start, self.length), kind, level, title, anchor))

    def _write_runs(self, pending: list[tuple[str, Span]], *, verbatim: bool = False) -> str:
        before = len(self._out)
        blank = True
        while not verbatim and len(pending) > 1 and not pending[-1][0].strip():
            pending = pending[:-1]
        for number, (text, source) in enumerate(pending, start=1):
            parts = [(text, source)] if verbatim or text == "\n" else _collapsed(text, source)
            for part, part_source in parts:
                run, run_source = _stripped(part, part_source) if blank and not verbatim else (part, part_source)
                run = run.rstrip() if number == len(pending) and run_source.end == source.end else run
                if run:
                    self._write(run, run_source)
                    blank = run[-1].isspace()
        return "".join(self._out[before:])

    def _write(self, text: str, source: Span) -> None:
        self._runs.append(Run(self.length, len(text), source))
        self._out.append(text)
        self.length += len(text)

    def _separate(self, separator: str) -> None:
        if self._out:
            self._out.append(separator)
            self.length += len(separator)

    def _end_row(self) -> None:
        """Write a table's row as one line, cells joined by bars."""
        row, self._row = self._row, []
        at = self._tags.pop(-1, self._block_at)
        if not row:
            return
        self._separate("\n" if self._rows else "\n\n")
        start = self.length
        for number, cell in enumerate(row):
            if number:
                self._write(" | ", Span(cell[0][1].start, cell[0][1].start))
            self._write_runs([(" " if text == "\n" else text, source) for text, source in cell])
        self._tags[start] = at
        self._rows.append(Block(Span(start, self.length), "table" if len(row) > 1 else "paragraph"))

    def _end_table(self) -> None:
        """Make one block of the rows so far; a table whose rows have one cell only lays out paragraphs."""
        self._end_row()
        rows, self._rows = self._rows, []
        if any(row.kind == "table" for row in rows):
            whole = replace(rows[0], span=Span(rows[0].span.start, rows[-1].span.end), kind="table")
            self._blocks.append(whole)
        else:
            self._blocks += rows
