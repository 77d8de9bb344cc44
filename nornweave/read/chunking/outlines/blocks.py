"""Blocks that tile a text, and the sections that they make: what the outlines of all formats share.

An outline module knows one format. It says where the blocks of a text are and which of them are headings. Sections
need no format any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from nornweave.core.text.spans import TokenIndex
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


# What stands above the first heading in no more tokens than this (a comment, "Skip to content") joins its section.
_SMALL_PREAMBLE = 20
_ABSTRACT = re.compile(r"(?:[\dIVX.]+\s+)?abstract\W*\Z", re.I)
_REFERENCES = re.compile(r"(?:[\dIVX.]+\s+)?(?:references|bibliography|works cited|literature cited)\W*\Z", re.I)


@dataclass(slots=True)
class OutlineSection:
    """A heading's blocks up to the next heading; ``path`` holds the titles above it and its own."""

    path: tuple[str, ...]
    level: int
    blocks: list[Block] = field(default_factory=list)

    @property
    def span(self) -> Span:
        """From the first block to the last."""
        return Span(self.blocks[0].span.start, self.blocks[-1].span.end)

    @property
    def bare(self) -> bool:
        """Say whether there is nothing under the heading."""
        return all(block.kind in {"heading", "front"} for block in self.blocks)


def sections_of(blocks: Sequence[Block], *, academic: bool) -> Iterator[OutlineSection]:
    """Yield a section for each heading and for what stands above the first; together they hold all blocks, in order.

    Args:
        academic: whether headings inside an abstract or the references open no section.
    """
    section = OutlineSection((), 0)
    above: list[tuple[int, str]] = []
    for block in blocks:
        whole = academic and section.path and (_ABSTRACT.match(section.path[-1]) or _REFERENCES.match(section.path[-1]))
        if block.kind == "heading" and not (whole and block.level > section.level):
            if section.blocks:
                yield section
            while above and above[-1][0] >= block.level:
                above.pop()
            above.append((block.level, block.title))
            section = OutlineSection(tuple(title for _, title in above), block.level)
        section.blocks.append(block)
    if section.blocks:
        yield section


def joined(sections: Iterable[OutlineSection], index: TokenIndex) -> Iterator[OutlineSection]:
    """Join headings with nothing under them, and the little above the first one, to the section below.

    Its path names those headings; a heading with nothing under it and no section of its own below stays alone.
    """
    above: OutlineSection | None = None
    for section in sections:
        bare = section.bare or (not section.path and _tokens(section, index) <= _SMALL_PREAMBLE)
        if above and above.path == section.path[: len(above.path)]:
            above.blocks += section.blocks
            above.path, above.level = section.path, section.level
        else:
            if above:
                yield above
            above = section
        if not bare:
            yield above
            above = None
    if above:
        yield above


def _tokens(section: OutlineSection, index: TokenIndex) -> int:
    return sum(index.count(block.span) for block in section.blocks if block.kind != "front")


def top_level(sections: Sequence[OutlineSection]) -> int:
    """Return the level of a paper's named sections: below a single title they are the second level in use."""
    levels = [block.level for section in sections for block in section.blocks if block.kind == "heading"]
    if not levels:
        return 1
    top = min(levels)
    return top + 1 if levels.count(top) == 1 and levels[0] == top else top


def limit_of(section: OutlineSection, top: int, h1_limit: int, limit: int, *, academic: bool) -> int:
    """Return the tokens allowed for a chunk of ``section``; ``top`` is the deepest level with ``h1_limit``."""
    if academic and section.path:
        if _ABSTRACT.match(section.path[-1]):
            return limit
        if _REFERENCES.match(section.path[-1]):
            return h1_limit
    return h1_limit if section.level <= top else limit
