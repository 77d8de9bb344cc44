"""The outline of a document: its blocks in sections, each with the headings and names above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import Span
from nornweave.read.blocks.block import Block, Kind

UnitKind: TypeAlias = Kind | Literal["label"]
HOLDING = frozenset({"note", "term"})
HEADS = frozenset({"heading", "front", "label"})
"""What says something of what follows it."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A block, or the lines that name one (a ``label``), with the blank space behind it.

    Attributes:
        above: the notes and terms that hold it, the outermost first; of a label also the one that it names.
    """

    block: Block
    span: Span
    kind: UnitKind
    above: tuple[Block, ...] = ()


def units_of(blocks: Iterable[Block], above: tuple[Block, ...] = (), *, opens: bool = False) -> Iterator[Unit]:
    """Yield blocks as units; what holds headings is opened.

    Args:
        opens: whether all that holds blocks is opened.
    """
    for block in blocks:
        is_holding = block.kind in HOLDING and bool(block.parts)
        if is_holding and (opens or _has_heading(block)):
            head = Span(block.span.start, block.parts[0].span.start)
            if len(head):
                yield Unit(block, head, "label", (*above, block))
            yield from units_of(block.parts, (*above, block))
        else:
            yield Unit(block, block.span, block.kind if is_holding or block.kind not in HOLDING else "paragraph", above)


def _has_heading(block: Block) -> bool:
    return any(part.kind == "heading" or _has_heading(part) for part in block.parts)


def kinds_of(block: Block) -> frozenset[str]:
    """Return the kinds of a block and of all that it holds."""
    return frozenset({block.kind}).union(*map(kinds_of, block.parts))


def tile(units: Iterable[Unit], text: str, whole: Span) -> list[Unit]:
    """Close the gaps: the first unit starts with the whole, each ends where the next begins; blank ones go."""
    tiled: list[Unit] = []
    for unit in units:
        if not tiled:
            tiled.append(replace(unit, span=Span(whole.start, unit.span.end)))
        elif len(unit.span) and not text[unit.span.start : unit.span.end].isspace():
            tiled[-1] = replace(tiled[-1], span=Span(tiled[-1].span.start, unit.span.start))
            tiled.append(unit)
    if tiled:
        tiled[-1] = replace(tiled[-1], span=Span(tiled[-1].span.start, whole.end))
    elif len(whole):
        tiled.append(Unit(Block(whole, "paragraph"), whole, "paragraph"))
    return tiled


def opened(unit: Unit, text: str) -> list[Unit]:
    """Return what a unit holds, as units that tile it."""
    return tile(units_of((unit.block,), unit.above, opens=True), text, unit.span)


# What stands above the first heading in no more tokens than this (a comment, "Skip to content") joins its section.
_SMALL_PREAMBLE = 20
_ABSTRACT = re.compile(r"(?:[\dIVX.]+\s+)?abstract\W*\Z", re.I)
_REFERENCES = re.compile(r"(?:[\dIVX.]+\s+)?(?:references|bibliography|works cited|literature cited)\W*\Z", re.I)


@dataclass(slots=True)
class OutlineSection:
    """A heading's blocks up to the next heading; ``path`` holds the titles above it and its own."""

    path: tuple[str, ...]
    level: int
    units: list[Unit] = field(default_factory=list)

    @property
    def span(self) -> Span:
        """From the first unit to the last."""
        return Span(self.units[0].span.start, self.units[-1].span.end)

    @property
    def bare(self) -> bool:
        """Say whether there is nothing under the heading."""
        return all(unit.kind in HEADS for unit in self.units)


def sections_of(units: Sequence[Unit], *, academic: bool) -> Iterator[OutlineSection]:
    """Yield a section for each heading and for what stands above the first; together they hold all units, in order.

    Args:
        academic: whether headings inside an abstract or the references open no section.
    """
    section = OutlineSection((), 0)
    above: list[tuple[int, str]] = []
    labels: list[Unit] = []
    for unit in units:
        level, title = unit.block.level, unit.block.info
        whole = academic and section.path and (_ABSTRACT.match(section.path[-1]) or _REFERENCES.match(section.path[-1]))
        if unit.kind == "label":  # it names what follows
            labels.append(unit)
            continue
        if unit.kind == "heading" and not (whole and level > section.level):
            if section.units:
                yield section
            while above and above[-1][0] >= level:
                above.pop()
            above.append((level, title))
            names = [block.info for block in unit.above if block.info]
            section = OutlineSection((*(title for _, title in above[:-1]), *names, title), level)
        section.units += (*labels, unit)
        labels = []
    section.units += labels
    if section.units:
        yield section


def joined(sections: Iterable[OutlineSection], index: TokenIndex) -> Iterator[OutlineSection]:
    """Join headings with nothing under them, and the little above the first one, to the section below.

    Its path names those headings; a heading with nothing under it and no section of its own below stays alone.
    """
    above: OutlineSection | None = None
    for section in sections:
        bare = section.bare or (not section.path and _tokens(section, index) <= _SMALL_PREAMBLE)
        if above and above.path == section.path[: len(above.path)]:
            above.units += section.units
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
    return sum(index.count(unit.span) for unit in section.units if unit.kind != "front")


def top_level(sections: Sequence[OutlineSection]) -> int:
    """Return the level of a paper's named sections: below a single title they are the second level in use."""
    levels = [unit.block.level for section in sections for unit in section.units if unit.kind == "heading"]
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
