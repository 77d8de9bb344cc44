"""The readable text of an HTML file: how it is written down, and where it stands in the file."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import Block, Kind, tile

_SPACE = re.compile(r"\s+")
_REPEATED = re.compile(r"(?<=\s) +")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LONG = 3
"""Letters of a word that is looked for in the file; a shorter one may stand in any tag."""
_REACH = 5_000
"""Characters of the file that are looked through for the next word: tags, comments and scripts may come between."""
_MISSED = 30
"""Words in a row that are not found, after which the rest of a block is not looked for."""


@dataclass(frozen=True, slots=True)
class Readable:
    """The readable text of an HTML file.

    Attributes:
        blocks: tile ``text``.
        tags: where in the file the tag of each block starts, by the block's start in ``text``; ascending.
    """

    text: str
    blocks: Sequence[Block]
    tags: dict[int, int]

    def words(self, source: str) -> Iterator[tuple[Span, int]]:
        """Yield every word and sign of the text, and where in the file it stands; -1 where that was not found."""
        starts = sorted(self.tags)
        ends = [*(self.tags[start] for start in starts[1:]), len(source)]
        for start, following, end in zip(starts, [*starts[1:], len(self.text)], ends, strict=False):
            cursor, missed = self.tags[start], 0
            for word in _TOKEN.finditer(self.text, start, following):
                at = -1
                if len(word[0]) >= _LONG and missed < _MISSED:
                    at = source.find(word[0], cursor, min(end, cursor + _REACH))
                    missed = missed + 1 if at < 0 else 0
                cursor = max(cursor, at + len(word[0])) if at >= 0 else cursor
                yield Span(*word.span()), at

    def sources_of(self, offsets: Iterable[int], words: Iterable[tuple[Span, int]]) -> Iterator[int]:
        """Yield where in the file the text at each offset comes from: its block's tag, or a place inside the block."""
        anchors = sorted({**{word.start: at for word, at in words if at >= 0}, **self.tags}.items())
        for offset in offsets:
            place = bisect_right(anchors, (offset, sys.maxsize)) - 1
            start, at = anchors[place] if place >= 0 else (offset, 0)
            following = anchors[place + 1][1] if place + 1 < len(anchors) else sys.maxsize
            yield min(at + offset - start, max(at, following))


class ReadableWriter:
    """Writes readable text, block by block."""

    def __init__(self) -> None:
        self.length = 0
        self._out: list[str] = []
        self._blocks: list[Block] = []
        self._tags: dict[int, int] = {}
        self._cells: list[str] = []
        self._row_at = 0
        self._rows: list[Block] = []

    def readable(self) -> Readable:
        """Return what was written."""
        text = "".join(self._out)
        return Readable(text, tile(self._blocks, text) if text else [], self._tags)

    def block(
        self,
        pieces: Sequence[str],
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
        follows = in_list and self._blocks and self._blocks[-1].kind == "list"
        text = "".join(pieces).rstrip() if kind == "code" else collapsed(pieces)
        title = one_line(text) if kind == "heading" else ""
        if kind == "heading" and not title:
            kind, level = "paragraph", 0
        elif kind == "paragraph" and in_list:
            kind = "list"
        self._blocks.append(self._written(bullet + text, at, "\n" if follows else "\n\n", kind, level, title, anchor))

    def cell(self, pieces: Sequence[str], at: int) -> None:
        """Add a cell to the table's row."""
        if not self._cells:
            self._row_at = at
        self._cells.append(" ".join(collapsed(pieces).split("\n")))

    def end_row(self) -> None:
        """Write a table's row as one line, cells joined by bars."""
        cells, self._cells = self._cells, []
        if cells:
            kind: Kind = "table" if len(cells) > 1 else "paragraph"
            self._rows.append(self._written(" | ".join(cells), self._row_at, "\n" if self._rows else "\n\n", kind))

    def end_table(self) -> None:
        """Make one block of the rows so far; a table whose rows have one cell only lays out paragraphs."""
        self.end_row()
        rows, self._rows = self._rows, []
        if any(row.kind == "table" for row in rows):
            self._blocks.append(replace(rows[0], span=Span(rows[0].span.start, rows[-1].span.end), kind="table"))
        else:
            self._blocks += rows

    def _written(
        self, text: str, at: int, separator: str, kind: Kind, level: int = 0, title: str = "", anchor: str = ""
    ) -> Block:
        if self._out:
            self._out.append(separator)
            self.length += len(separator)
        start = self.length
        self._out.append(text)
        self.length += len(text)
        self._tags[start] = at
        return Block(Span(start, self.length), kind, level, title, anchor)


def collapsed(pieces: Sequence[str]) -> str:
    """Join the pieces of a block with single blanks; a piece that is a line end stays one."""
    text = "".join(piece if piece == "\n" else _SPACE.sub(" ", piece) for piece in pieces)
    return _REPEATED.sub("", text).strip()
