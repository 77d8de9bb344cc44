"""HTML as Markdown, each line with the number of the one it was read from; what is no text is left out."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from nornweave.read.chunking.outlines.html import PAGE, read_html

_SHOWN = replace(PAGE, marks_code=True)
_SPECIAL = re.compile(r"([\\*_\[\]<>#~])|(?<!\S)([-+]|\d+[.)])(?=\s)")
_CODE = re.compile(r"(`[^`\n]+`)")
_ITEM = re.compile(r" *- ")


def markdown_of_html(text: str) -> list[tuple[int, str]]:
    """Return Markdown that reads as a page does: headings, lists, tables and code; styles and links are plain text."""
    readable = read_html(text, _SHOWN)
    starts = sorted(readable.tags)
    lines: list[tuple[int, str]] = []
    for block in readable.blocks:
        at, said = block.span.start, readable.text[block.span.start : block.span.end].rstrip()
        written = []
        for line in said.split("\n"):
            tag = readable.tags[starts[max(0, bisect_right(starts, at) - 1)]] if starts else 0
            written.append((text.count("\n", 0, tag) + 1, line))
            at += len(line) + 1
        is_item = block.kind == "list" and bool(lines) and bool(_ITEM.match(lines[-1][1]))
        lines += [] if is_item else [(written[0][0], "")]
        lines += _marked(written, block.kind, block.level)
    return lines


def _marked(lines: list[tuple[int, str]], kind: str, level: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block with what makes Markdown of them."""
    first = lines[0][0]
    if kind == "code":
        yield first, "~~~~~~"
        yield from ((first + place, line) for place, (_, line) in enumerate(lines) if place or line.strip())
        yield first + len(lines) - 1, "~~~~~~"
    elif kind == "table":
        rows = "\n".join(_escaped(line) for _, line in lines)
        numbers = [number for number, _ in lines]
        yield from zip((first, first, *numbers), with_tables(rows).split("\n"), strict=False)
    else:
        for number, line in lines:
            bullet = _ITEM.match(line) if kind == "list" else None
            start = bullet.end() if bullet else 0
            yield number, f"{'#' * level} " * bool(level) + line[:start] + _escaped(line[start:])


def _escaped(line: str) -> str:
    """Return text that means nothing in Markdown but for the code in it."""
    return "".join(part if place % 2 else _SPECIAL.sub(r"\\\1\2", part) for place, part in enumerate(_CODE.split(line)))


def with_tables(text: str) -> str:
    """Return text that was taken out of HTML with its tables, whose cells a bar parts, as those of Markdown."""
    lines: list[str] = []
    columns = 0
    for line in text.split("\n"):
        bars = line.count(" | ")
        if bars:
            lines += [] if columns == bars else [""]
            lines.append(f"| {line} |")
            lines += [] if columns == bars else [f"|{' --- |' * (bars + 1)}"]
        else:
            lines += ["", line] if columns else [line]
        columns = bars
    return "\n".join(lines)
