"""Cut sections into parts within the token limit, between pieces that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nornweave.core.text.spans import LINE, SENTENCE, WORD, TokenIndex, split, strip_lines
from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import Block, Kind
from nornweave.read.chunking.outlines.sections import OutlineSection

# How far code and tables may exceed the limit before they are cut after all, in multiples of it.
_WHOLE = 4
# A heading larger than this share of the limit is text that somebody made bold.
_HEADING_SHARE = 2

# Before an item of a list, and at blank lines.
_ITEM = re.compile(r"\n[ \t]*(?:\r?\n\s*|(?=(?:[-*+]|\d{1,9}[.)])[ \t]))")
_BOUNDARIES: Mapping[Kind, Sequence[re.Pattern[str]]] = {
    "paragraph": (SENTENCE, LINE, WORD),
    "heading": (SENTENCE, LINE, WORD),
    "list": (_ITEM, LINE, SENTENCE, WORD),
    "front": (LINE, WORD),
    "code": (LINE, WORD),
    "table": (LINE, WORD),
}
_WHOLE_KINDS = frozenset({"code", "table"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a section that is not cut further."""

    span: Span
    kind: Kind
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SectionPart:
    """A chunk to be: a span of the outlined text, its section, and the pieces in it."""

    span: Span
    section: OutlineSection
    pieces: Sequence[Piece]


def cut_section(section: OutlineSection, index: TokenIndex, limit: int) -> Iterator[SectionPart]:
    """Cut a section into parts of at most ``limit`` tokens, between groups of pieces that belong together."""
    if index.count(section.span) <= limit:
        groups = [[Piece(block.span, block.kind) for block in section.blocks]]
    else:
        groups = _packed(_grouped(section.blocks, index, limit), index, limit)
    for group in groups:
        inner = strip_lines(index.text, Span(group[0].span.start, group[-1].span.end))
        if len(inner):
            alone = all(piece.kind == "front" for piece in group)
            yield SectionPart(inner, OutlineSection((), 0) if alone else section, group)


def _packed(groups: Iterator[list[Piece]], index: TokenIndex, limit: int) -> list[list[Piece]]:
    packed: list[list[Piece]] = []
    for group in groups:
        if packed and index.count(Span(packed[-1][0].span.start, group[-1].span.end)) <= limit:
            packed[-1] += group
        else:
            packed.append(group)
    return packed


def _grouped(blocks: Sequence[Block], index: TokenIndex, limit: int) -> Iterator[list[Piece]]:
    """Yield pieces that must not be parted: headings with what follows, a paragraph with the code or table below it."""
    group: list[Piece] = []
    for block in blocks:
        piece = Piece(block.span, block.kind)
        tied = bool(group) and _tied(group, block.kind)
        if tied and index.count(Span(group[0].span.start, block.span.end)) <= limit:
            group.append(piece)
            continue
        if _short_headings(group, index, limit):
            *ready, group = _under_headings(group, block, index, limit)
            yield from ready
            continue
        if group:
            yield group
        *ready, group = ([piece] for piece in _pieces(block.span, block.kind, index, limit))
        yield from ready
    if group:
        yield group


def _short_headings(group: Sequence[Piece], index: TokenIndex, limit: int) -> bool:
    if not group or any(piece.kind != "heading" for piece in group):
        return False
    return index.count(Span(group[0].span.start, group[-1].span.end)) <= limit // _HEADING_SHARE


def _tied(group: Sequence[Piece], kind: Kind) -> bool:
    """Say whether a block of ``kind`` belongs to what is above it."""
    last = group[-1].kind
    return last in {"heading", "front"} or (kind in _WHOLE_KINDS and last in {"paragraph", "list"})


def _under_headings(headings: list[Piece], block: Block, index: TokenIndex, limit: int) -> list[list[Piece]]:
    """Cut a block that exceeds the limit together with the headings above it."""
    used = index.count(Span(headings[0].span.start, headings[-1].span.end))
    first, *others = _pieces(block.span, block.kind, index, limit if block.kind in _WHOLE_KINDS else limit - used)
    return [[*headings, first], *([piece] for piece in others)]


def _pieces(span: Span, kind: Kind, index: TokenIndex, limit: int) -> list[Piece]:
    if index.count(span) <= (limit * _WHOLE if kind in _WHOLE_KINDS else limit):
        return [Piece(span, kind)]
    return [Piece(part, kind, kind in _WHOLE_KINDS) for part in split(span, index, limit, _BOUNDARIES[kind])]
