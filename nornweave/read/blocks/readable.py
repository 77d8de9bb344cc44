"""The readable text of an HTML file, and the places of its words in the file."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import Span
from nornweave.read.blocks.block import MAX_DEPTH, Block, Kind

_SPACE = re.compile(r"\s+")
_REPEATED = re.compile(r"(?<=\s) +")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LONG = 3
"""Letters of a word that is looked for in the file; a shorter one may stand in any tag."""
_REACH = 5_000
"""Characters of the file that are looked through for the next word: tags, comments and scripts may come between."""
_MOST_REPEATED = 200
"""Characters of a cell over several rows that stand in the rows below its first."""
_MISSED = 30
"""Words in a row that are not found, after which the rest of a block is not looked for."""


@dataclass(frozen=True, slots=True)
class Readable:
    """The readable text of an HTML file.

    Attributes:
        blocks: the blocks in order. Each term contains its explanation.
        written: the same blocks in order, without nesting.
        tags: start of a block in ``text`` → start of the block's tag in the file. The order is ascending.
    """

    text: str
    blocks: Sequence[Block]
    written: Sequence[Block]
    tags: dict[int, int]

    def words(self, source: str) -> Iterator[tuple[Span, int]]:
        """Yield the span of every word and sign of the text, and its offset in the HTML file ``source``.

        The offset is -1 if the word was not found in the file.
        """
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
        """Yield an offset in the file for each offset of the text.

        It is the offset of the block's tag, or an offset inside the block if a word before the place was found.
        """
        anchors = sorted({**{word.start: at for word, at in words if at >= 0}, **self.tags}.items())
        for offset in offsets:
            place = bisect_right(anchors, (offset, sys.maxsize)) - 1
            start, at = anchors[place] if place >= 0 else (offset, 0)
            following = anchors[place + 1][1] if place + 1 < len(anchors) else sys.maxsize
            yield min(at + offset - start, max(at, following))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table, and the number of columns and rows that it spans."""

    text: str = ""
    columns: int = 1
    rows: int = 1
    is_header: bool = False


class ReadableWriter:
    """Writes readable text, block by block."""

    def __init__(self) -> None:
        self.length = 0
        self._out: list[str] = []
        self._blocks: list[Block] = []
        self._tags: dict[int, int] = {}
        self._cells: list[Cell] = []
        self._over: dict[int, tuple[int, str]] = {}
        self._row_at = 0
        self._rows: list[Block] = []
        self._headers = 0
        self._terms: list[tuple[int, bool]] = []

    def readable(self) -> Readable:
        """Return the text and the blocks that were written."""
        text = "".join(self._out)
        blocks = list(_with_terms(list(zip(self._blocks, self._terms, strict=True))))
        return Readable(text, blocks, self._blocks, self._tags)

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
        terms: int = 0,
        is_term: bool = False,
    ) -> None:
        """Write a block whose tag is at the offset ``at`` of the file. ``bullet`` is written before its text.

        No blank line stands between the items of a list. A heading without a word becomes a paragraph. The block is
        nested in ``terms`` lists of terms. If ``is_term``, it is a term, whose explanation follows.
        """
        follows = in_list and self._blocks and self._blocks[-1].kind == "list"
        text = "".join(pieces).rstrip() if kind == "code" else collapsed(pieces)
        title = one_line(text) if kind == "heading" or is_term else ""
        if kind == "heading" and not title:
            kind, level = "paragraph", 0
        elif kind == "paragraph" and in_list:
            kind = "list"
        self._blocks.append(self._written(bullet + text, at, "\n" if follows else "\n\n", kind, level, title, anchor))
        self._terms.append((min(terms, MAX_DEPTH), is_term and terms > 0))

    def cell(self, pieces: Sequence[str], at: int, cell: Cell) -> None:
        """Add a cell to the current row of the table."""
        if not self._cells:
            self._row_at = at
        self._cells.append(replace(cell, text=" ".join(collapsed(pieces).split("\n"))))

    def end_row(self) -> None:
        """Write the current row of the table as one line with bars between the cells.

        A cell that spans several rows is repeated in each of them.
        """
        cells, self._cells = self._cells, []
        if cells:
            texts = list(
                self._filled([*cells[:-1], cells[-1] if cells[-1].is_header else replace(cells[-1], columns=1)])
            )
            kind: Kind = "table" if len(texts) > 1 else "paragraph"
            self._headers += self._headers == len(self._rows) and all(cell.is_header for cell in cells)
            self._rows.append(self._written(" | ".join(texts), self._row_at, "\n" if self._rows else "\n\n", kind))

    def _filled(self, cells: Sequence[Cell]) -> Iterator[str]:
        column = 0
        # A cell over several columns is a name of each of them, or one text.
        placed = [replace(cell, text=cell.text if cell.is_header or not place else "")
                  for cell in cells for place in range(cell.columns)]  # fmt: skip
        for cell in (*placed, Cell(rows=0)):
            while column in self._over:
                left, text = self._over.pop(column)
                self._over |= {column: (left - 1, text)} if left > 1 else {}
                yield text
                column += 1
            if not cell.rows:
                break
            if cell.rows > 1:
                self._over[column] = (cell.rows - 1, cell.text[:_MOST_REPEATED])
            yield cell.text
            column += 1

    def end_table(self) -> None:
        """Make one block of the rows that were written.

        A table with only one cell per row is used for layout. Its rows become paragraphs.
        """
        self.end_row()
        rows, self._rows, self._over = self._rows, [], {}
        headers, self._headers = self._headers, 0
        if any(row.kind == "table" for row in rows):
            span = Span(rows[0].span.start, rows[-1].span.end)
            self._blocks.append(Block(span, "table", range(0), headers, "bars"))
        else:
            self._blocks += rows
        self._terms += [(self._terms[-1][0] if self._terms else 0, False)] * (len(self._blocks) - len(self._terms))

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
        return Block(Span(start, self.length), kind, range(0), level, title, (), anchor)


def _with_terms(written: Sequence[tuple[Block, tuple[int, bool]]]) -> Iterator[Block]:
    """Yield blocks in order. The explanation of a term becomes the parts of the term."""
    at = 0
    while at < len(written):
        block, (depth, is_term) = written[at]
        end = at + 1
        while is_term and end < len(written) and written[end][1][0] + (not written[end][1][1]) > depth:
            end += 1
        parts = tuple(_with_terms(written[at + 1 : end]))
        if parts:
            block = replace(block, span=Span(block.span.start, parts[-1].span.end), kind="term", parts=parts)
        yield block
        at = end


def collapsed(pieces: Sequence[str]) -> str:
    """Join the pieces of a block. Each run of blank space becomes one blank, but a piece that is a line end stays."""
    text = "".join(piece if piece == "\n" else _SPACE.sub(" ", piece) for piece in pieces)
    return _REPEATED.sub("", text).strip()
