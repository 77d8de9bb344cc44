"""The readable text of an HTML file, and how it is written down: blocks, lists, tables, with the place of each run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import Block, Kind, tile

_SPACE = re.compile(r"\s+")
# Words with single blanks between them, which collapsing blank space does not move.
_UNMOVED = re.compile(r"\S+(?:\s\S+)*\s*|\A\s+")

Piece: TypeAlias = tuple[str, Span]
"""Text and where in the file it stands; the span is empty for a mark that is added."""


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


class ReadableWriter:
    """Writes readable text, block by block."""

    def __init__(self) -> None:
        self.length = 0
        self._out: list[str] = []
        self._blocks: list[Block] = []
        self._runs: list[Run] = []
        self._tags: dict[int, int] = {}
        self._cells: list[Sequence[Piece]] = []
        self._row_at = 0
        self._rows: list[Block] = []

    def readable(self) -> Readable:
        """Return what was written."""
        text = "".join(self._out)
        return Readable(text, tile(self._blocks, text) if text else [], self._runs, self._tags)

    def block(
        self,
        pieces: Sequence[Piece],
        at: int,
        kind: Kind,
        *,
        bullet: str = "",
        in_list: bool = False,
        level: int = 0,
        anchor: str = "",
    ) -> None:
        """Write a block whose tag stands at ``at``.

        Items of a list follow each other line by line; a heading without any word is a paragraph.
        """
        self._separate("\n" if in_list and self._blocks and self._blocks[-1].kind == "list" else "\n\n")
        start = self.length
        if bullet:
            self._write(bullet, Span(at, at))
        text = self._write_pieces(pieces, verbatim=kind == "code")
        title = one_line(text) if kind == "heading" else ""
        if kind == "heading" and not title:
            kind, level = "paragraph", 0
        elif kind == "paragraph" and in_list:
            kind = "list"
        self._tags[start] = at
        self._blocks.append(Block(Span(start, self.length), kind, level, title, anchor))

    def cell(self, pieces: Sequence[Piece], at: int) -> None:
        """Add a cell to the table's row."""
        if not self._cells:
            self._row_at = at
        self._cells.append(pieces)

    def end_row(self) -> None:
        """Write a table's row as one line, cells joined by bars."""
        cells, self._cells = self._cells, []
        if not cells:
            return
        self._separate("\n" if self._rows else "\n\n")
        start = self.length
        for number, cell in enumerate(cells):
            if number:
                self._write(" | ", Span(cell[0][1].start, cell[0][1].start))
            self._write_pieces([(" " if text == "\n" else text, source) for text, source in cell])
        self._tags[start] = self._row_at
        self._rows.append(Block(Span(start, self.length), "table" if len(cells) > 1 else "paragraph"))

    def end_table(self) -> None:
        """Make one block of the rows so far; a table whose rows have one cell only lays out paragraphs."""
        self.end_row()
        rows, self._rows = self._rows, []
        if any(row.kind == "table" for row in rows):
            self._blocks.append(replace(rows[0], span=Span(rows[0].span.start, rows[-1].span.end), kind="table"))
        else:
            self._blocks += rows

    def _write_pieces(self, pieces: Sequence[Piece], *, verbatim: bool = False) -> str:
        before = len(self._out)
        blank = True
        while not verbatim and len(pieces) > 1 and not pieces[-1][0].strip():
            pieces = pieces[:-1]
        for number, (text, source) in enumerate(pieces, start=1):
            parts = [(text, source)] if verbatim or text == "\n" else _collapsed(text, source)
            for part, part_source in parts:
                run, run_source = _stripped(part, part_source) if blank and not verbatim else (part, part_source)
                run = run.rstrip() if number == len(pieces) and run_source.end == source.end else run
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


def _collapsed(text: str, source: Span) -> list[Piece]:
    """Collapse blank space, in as many parts as it takes for each to start where its source does."""
    whole = _SPACE.sub(" ", text)
    if len(whole) == len(text) or len(source) != len(text):
        return [(whole, source)]
    return [
        (_SPACE.sub(" ", part[0]), Span(source.start + part.start(), source.start + part.end()))
        for part in _UNMOVED.finditer(text)
    ]


def _stripped(text: str, source: Span) -> Piece:
    stripped = text.lstrip(" ")
    same = len(text) == len(source)
    return stripped, Span(source.end - len(stripped), source.end) if same else source
