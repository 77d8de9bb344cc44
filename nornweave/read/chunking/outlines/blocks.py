"""Blocks that tile a text: the types and functions that the outlines of all formats share.

An outline module knows one format. It says where the blocks of a text are and which of them are headings; ``sections``
turns blocks into chunks and needs no format any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from nornweave.core.types import Span

Kind: TypeAlias = Literal["heading", "front", "paragraph", "list", "code", "table"]

_PREFIX = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?[ \t>]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text that reads as one.

    Attributes:
        span: the block and the blank space after it; the blocks of an outline tile the text.
        level: of a heading, from 1.
        title: of a heading, as a reader sees it; never empty.
        anchor: what an address of the document has after ``#`` to lead here, if the text names it.
    """

    span: Span
    kind: Kind
    level: int = 0
    title: str = ""
    anchor: str = ""


def even_line_ends(text: str) -> str:
    """Return ``text`` with ``\\n`` for every line end and every offset where it was."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def lines(text: str, span: Span) -> Iterator[Span]:
    """Cut ``span`` after every ``\\n``; only for texts with even line ends."""
    start = span.start
    while start < span.end:
        newline = text.find("\n", start, span.end)
        end = span.end if newline < 0 else newline + 1
        yield Span(start, end)
        start = end


def tile(blocks: Iterable[Block], text: str) -> list[Block]:
    """Close the gaps: the first block starts at 0, each ends where the next begins, blank ones join the one before."""
    tiled: list[Block] = []
    for block in sorted(blocks, key=lambda block: block.span.start):
        if tiled and (not len(block.span) or text[block.span.start : block.span.end].isspace()):
            continue
        if tiled:
            tiled[-1] = replace(tiled[-1], span=Span(tiled[-1].span.start, block.span.start))
        tiled.append(block if tiled else replace(block, span=Span(0, block.span.end)))
    if tiled:
        tiled[-1] = replace(tiled[-1], span=Span(tiled[-1].span.start, len(text)))
    elif text:
        tiled.append(Block(Span(0, len(text)), "paragraph"))
    return tiled


def paragraphs(text: str) -> list[Block]:
    """Outline plain text: paragraphs between blank lines, no headings."""
    even = even_line_ends(text)
    starts = [0, *(match.end() for match in re.finditer(r"\n[ \t\f\v]*\n", even))]
    spans = (Span(start, end) for start, end in zip(starts, [*starts[1:], len(text)], strict=True))
    return tile((Block(span, "paragraph") for span in spans), text)


def container_blocks(text: str, span: Span) -> Iterator[Block]:
    """Cut a list, a block quote or the like into text, fenced code and pipe tables, whatever their indentation.

    A container without any code or table comes back whole.
    """
    piece = text[span.start : span.end]
    if "```" not in piece and "~~~" not in piece and "|" not in piece:
        yield Block(span, "list")
        return
    fence: str | None = None
    current: Block | None = None
    for line in lines(text, span):
        body = _PREFIX.sub("", text[line.start : line.end], count=1)
        kind, fence, joins = _line_kind(body, fence, current)
        if current is not None and joins:
            current = replace(current, span=Span(current.span.start, line.end))
            continue
        if current is not None:
            yield current
        current = Block(line, kind)
    if current is not None:
        yield current


def _line_kind(body: str, fence: str | None, current: Block | None) -> tuple[Kind, str | None, bool]:
    """Say what a line of a container is, which fence is open after it, and whether it joins the block before."""
    if fence is not None:
        return "code", (None if closes_fence(body, fence) else fence), True
    if opened := opened_fence(body):
        return "code", opened, False
    if body.startswith("|") and body.count("|") > 1:
        return "table", None, current is not None and current.kind == "table"
    return "list", None, current is not None and (current.kind == "list" or not body.strip())


def opened_fence(line: str) -> str | None:
    """Return the fence (three or more backticks or tildes) with which ``line`` opens a code block."""
    opening = _FENCE.match(line)
    return opening[1] if opening and not (opening[1][0] == "`" and "`" in opening[2]) else None


def closes_fence(line: str, fence: str) -> bool:
    """Say whether ``line`` ends the code block that ``fence`` opened."""
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])
