"""Sections: the blocks of a text by heading, the path of headings above them, the token limit they are held to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import Block

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
