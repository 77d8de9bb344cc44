"""Write Markdown: headings, text that is not markup, tables whose parts all have the header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nornweave.core.text.inline_markup import one_line

TABLE_TOKENS = 300
"""Of one table with its header, about: a longer one is written as several that each have it, one for a chunk."""
MAX_TITLE = 200

# Lines that Markdown takes for a heading, its underline, a fence, a table, a quote or the end of front matter.
_MARKUP = re.compile(r"^ {0,3}(?=#{1,6}(?:\s|$)|```|~~~|\||<h[1-6]\b|<table)", re.MULTILINE | re.IGNORECASE)
_UNDERLINE = re.compile(r"^(?=[ \t]{0,3}(?:-+|=+|\++)[ \t]*$)", re.MULTILINE)
_HEADING = re.compile(r"^(?=#{1,5} )", re.MULTILINE)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_FENCE = re.compile(r"^(?:```|~~~)", re.MULTILINE)


def heading(level: int, title: str) -> str:
    """Return a heading on one line; empty if the title is blank."""
    line = one_line(title)[:MAX_TITLE]
    return f"{'#' * level} {line}" if line else ""


def plain(text: str) -> str:
    """Return a text with a backslash before each sign that Markdown would read as structure."""
    return _UNDERLINE.sub("\n", _MARKUP.sub(r"\\", text))


def joined(blocks: Iterable[str]) -> str:
    """Join blocks with a blank line between them. Empty blocks are left out."""
    return "\n\n".join(block.strip("\n") for block in blocks if block and not block.isspace())


def fenced(text: str, language: str = "") -> str:
    """Return a code block in a ``language``, which may be empty. Its fence is longer than any fence in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def closed(text: str) -> str:
    """Return Markdown in which the last code block is closed."""
    fence = ""
    for line in text.splitlines():
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
    return f"{text}\n{fence}" if fence else text


def lowered(text: str, levels: int = 1) -> str:
    """Return Markdown with its headings ``levels`` lower. Code blocks are not changed, and level 6 stays."""
    parts = _FENCE.split(text)
    marks = _FENCE.findall(text)
    for number in range(0, len(parts), 2):
        for _ in range(levels):
            parts[number] = _HEADING.sub("#", parts[number])
    return "".join(part + mark for part, mark in zip(parts, [*marks, ""], strict=True))


def cell(text: str) -> str:
    """Return the text of a table's cell. It is one line, and bars in it are escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def row(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(cell, cells))} |"


def about_tokens(text: str) -> int:
    """Estimate the number of tokens in a text. Numbers and signs have many more than words of the same length."""
    return sum(1 + (len(token) - 1) // 5 for token in _TOKEN.findall(text))


def grouped(rows: Sequence[str], limit: int = TABLE_TOKENS, header: str = "") -> Iterator[tuple[int, int]]:
    """Divide rows into groups. Yield the index of the first row of each group and the index after the last one.

    A group and the header together have at most ``limit`` tokens, unless the group is a single row.
    """
    first, above = 0, about_tokens(header)
    size = above
    for number, text in enumerate(rows):
        tokens = about_tokens(text)
        if number > first and size + tokens > limit:
            yield first, number
            first, size = number, above
        size += tokens
    if first < len(rows):
        yield first, len(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose header is the first row. A long table becomes several tables with the same header.

    Blank rows are left out. All rows must have the same number of cells.
    """
    filled = [cells for cells in rows if any(text and not text.isspace() for text in cells)]
    if not filled:
        return ""
    header = header_lines(filled[0])
    written = [row(cells) for cells in filled[1:]]
    if not written:
        return header
    return "\n\n".join("\n".join((header, *written[first:end])) for first, end in grouped(written, header=header))


def header_lines(cells: Sequence[str]) -> str:
    """Return the header of a table and the line of dashes below it."""
    return f"{row(cells)}\n|{' --- |' * len(cells)}"
