"""Make the example corpus's paper: a two-column PDF of two pages, the same every time.

    python examples/make_paper.py [OUTPUT]

Its text stands in ``paper.txt``: ``#`` and ``##`` before headings, blank lines between paragraphs, and ``\\-`` where a
word may be broken at the end of a line. The study, its authors and its figures are invented; the works it cites exist.
Fonts are the PDF base fonts, so nothing is embedded and the file stays small.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pymupdf

TEXT = Path(__file__).parent / "paper.txt"
OUTPUT = Path(__file__).parent / "payments" / "research" / "retry-storms.pdf"

PAGE_WIDTH, PAGE_HEIGHT = 595.0, 842.0  # A4
MARGIN = 54.0
GUTTER = 20.0
COLUMN_WIDTH = (PAGE_WIDTH - 2 * MARGIN - GUTTER) / 2
BOTTOM = PAGE_HEIGHT - 60.0

TITLE = "Retry Storms in Card Payment Networks: Budgets, Jitter and Duplicate Authorizations"
AUTHORS = ("Liv Halvorsen", "Kwame Boateng", "Chiara Neri")
AFFILIATION = "Institute for Dependable Commerce, Trondheim"
VENUE = "Proceedings of the 3rd Workshop on Resilient Payment Systems (RPS 2025), 14 September 2025"
DOI = "doi:10.5555/rps.2025.0017"

TABLE_CAPTION = "Table 1: Outages of ten minutes, medians over 31 days."
TABLE = (
    ("Policy", "Peak load", "Recovery"),
    ("no retries", "1.0", "41 s"),
    ("backoff", "4.6", "7 min 12 s"),
    ("full jitter", "3.9", "3 min 20 s"),
    ("jitter, budget 10 %", "1.2", "55 s"),
)


@dataclass(frozen=True)
class Style:
    """How a block of text looks."""

    font: str
    size: float
    before: float
    indent: float = 0.0

    @property
    def leading(self) -> float:
        return self.size * 1.22


BODY = Style("tiro", 10.2, 3.0, indent=9.0)
FIRST = Style("tiro", 10.2, 3.0)
HEADING = {1: Style("tibo", 11.5, 11.0), 2: Style("tibo", 10.0, 7.0)}
CAPTION = Style("tiit", 8.8, 6.0)
CELL = Style("tiro", 8.8, 1.0)
REFERENCE = Style("tiro", 8.6, 2.0)


def sections() -> Iterator[tuple[str, int, list[str]]]:
    """Yield heading, level and paragraphs; ``\\-`` becomes a soft hyphen (U+00AD)."""
    blocks = TEXT.read_text(encoding="utf-8").replace("\\-", "\u00ad").strip().split("\n\n")
    heading, level, paragraphs = "", 1, list[str]()
    for block in blocks:
        if not block.startswith("#"):
            paragraphs.append(" ".join(block.split()))
            continue
        if heading:
            yield heading, level, paragraphs
        marks, heading = block.split(" ", 1)
        level, paragraphs = len(marks), []
    yield heading, level, paragraphs


def width(text: str, style: Style) -> float:
    length: float = pymupdf.get_text_length(text, style.font, style.size)
    return length


def break_word(word: str, room: float, style: Style) -> tuple[str, str]:
    """Return the longest part that fits, with its hyphen, and the rest; nothing and the word if none fits."""
    parts = word.split("\u00ad")
    for count in range(len(parts) - 1, 0, -1):
        head = "".join(parts[:count]) + "-"
        if width(head, style) <= room:
            return head, "\u00ad".join(parts[count:])
    return "", word


def lines(text: str, style: Style) -> Iterator[str]:
    """Fill lines greedily, breaking words only at soft hyphens."""
    line = ""
    room = COLUMN_WIDTH - style.indent
    for word in text.split(" "):
        rest = word
        whole = word.replace("\u00ad", "")
        candidate = f"{line} {whole}" if line else whole
        if width(candidate, style) <= room:
            line = candidate
            continue
        head, tail = break_word(rest, room - width(f"{line} ", style), style)
        yield f"{line} {head}" if head else line
        line = (tail if head else rest).replace("\u00ad", "")
        room = COLUMN_WIDTH
    yield line


class Columns:
    """Sets lines top to bottom, left column then right column, page after page."""

    def __init__(self, document: pymupdf.Document, top: float) -> None:
        self._document = document
        self._page = document[0]
        self._column = 0
        self._top = top
        self._y = top

    def room_for(self, height: float) -> None:
        """Go to the next column unless ``height`` points are left in this one."""
        if self._y + height <= BOTTOM:
            return
        self._column += 1
        if self._column == 2:
            self._column = 0
            self._page = self._document.new_page(width=PAGE_WIDTH, height=PAGE_HEIGHT)
            self._top = MARGIN
        self._y = self._top

    @property
    def _left(self) -> float:
        return MARGIN + self._column * (COLUMN_WIDTH + GUTTER)

    def put(self, text: str, style: Style, indent: float = 0.0) -> None:
        self.room_for(style.leading)
        self._y += style.leading
        at = (self._left + indent, self._y)
        self._page.insert_text(at, text, fontname=style.font, fontsize=style.size)

    def skip(self, height: float) -> None:
        self._y += height if self._y > self._top else 0.0

    def paragraph(self, text: str, style: Style) -> None:
        self.skip(style.before)
        for number, line in enumerate(lines(text, style)):
            self.put(line, style, style.indent if number == 0 else 0.0)

    def row(self, cells: tuple[str, ...], style: Style) -> None:
        self.room_for(style.leading)
        self._y += style.leading
        for cell, share in zip(cells, (0.0, 0.5, 0.74), strict=True):
            at = (self._left + share * COLUMN_WIDTH, self._y)
            self._page.insert_text(at, cell, fontname=style.font, fontsize=style.size)

    def rule(self) -> None:
        self._page.draw_line((self._left, self._y + 3), (self._left + COLUMN_WIDTH, self._y + 3), width=0.5)
        self._y += 3


def centered(page: pymupdf.Page, y: float, text: str, style: Style) -> float:
    page.insert_text(((PAGE_WIDTH - width(text, style)) / 2, y), text, fontname=style.font, fontsize=style.size)
    return y + style.leading


def title_block(page: pymupdf.Page) -> float:
    """Set title, authors and venue over both columns; return where the columns start."""
    title = Style("tibo", 16.0, 0.0)
    head, tail = TITLE.split(": ")
    y = centered(page, 78.0, f"{head}:", title)
    y = centered(page, y, tail, title) + 4
    y = centered(page, y, ", ".join(AUTHORS), Style("tiro", 11.0, 0.0))
    y = centered(page, y, AFFILIATION, Style("tiit", 9.5, 0.0)) + 2
    y = centered(page, y, VENUE, Style("tiro", 8.5, 0.0))
    return centered(page, y, DOI, Style("tiro", 8.5, 0.0)) + 6


def table(columns: Columns) -> None:
    columns.room_for(CELL.leading * (len(TABLE) + 2) + 12)
    columns.paragraph(TABLE_CAPTION, CAPTION)
    columns.skip(2)
    for number, cells in enumerate(TABLE):
        columns.row(cells, CELL)
        if number in {0, len(TABLE) - 1}:
            columns.rule()
    columns.skip(5)


def section(columns: Columns, heading: str, level: int, paragraphs: Sequence[str]) -> None:
    style = HEADING[level]
    columns.room_for(style.before + style.leading + 3 * BODY.leading)
    columns.skip(style.before)
    columns.put(heading, style)
    for number, text in enumerate(paragraphs):
        if text == "TABLE":
            table(columns)
        elif heading == "References":
            columns.paragraph(text, REFERENCE)
        else:
            columns.paragraph(text, BODY if number else FIRST)


def page_numbers(document: pymupdf.Document) -> None:
    for number, page in enumerate(document, start=1):
        centered(page, PAGE_HEIGHT - 34.0, str(number), Style("tiro", 8.5, 0.0))


def make_paper(path: Path) -> None:
    """Write the paper."""
    document = pymupdf.open()
    page = document.new_page(width=PAGE_WIDTH, height=PAGE_HEIGHT)
    columns = Columns(document, title_block(page))
    for heading, level, paragraphs in sections():
        section(columns, heading, level, paragraphs)
    page_numbers(document)
    document.set_metadata(
        {
            "title": TITLE,
            "author": ", ".join(AUTHORS),
            "subject": VENUE,
            "keywords": "retries, payments, reliability",
            "creationDate": "D:20250914090000Z",
            "modDate": "D:20250914090000Z",
        }
    )
    document.save(path, garbage=4, deflate=True, no_new_id=True)
    document.close()


if __name__ == "__main__":
    make_paper(Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT)
