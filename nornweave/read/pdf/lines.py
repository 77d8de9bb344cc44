"""Group single characters into lines and blocks, for a library that only gives the place of each."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from nornweave.read.pdf.port import Box, GlyphLine, GlyphRun, Point, around

# Of the font's size: between words, between cells, back to the left, between the lines of a block. MuPDF's distances.
_SPACE, _CELL, _BACK, _LEADING = 0.15, 0.8, 0.5, 1.4
_SPACE_SEEN = 0.03  # where the library sees a blank; PDFium 159 sees some between letters that touch
_RAISED = 0.1  # of the font's size above the baseline


@dataclass(frozen=True, slots=True)
class FontStyle:
    """A font: its name and how it looks."""

    name: str
    bold: bool
    italic: bool
    mono: bool


@dataclass(frozen=True, slots=True)
class Glyph:
    """A character.

    Attributes:
        is_apart: whether the PDF library sees a blank before the character.
        is_uncertain: whether the colour, opacity, mode, clip or layer of the character may hide it.
        covers: the numbers of the filled areas in which the character lies.
    """

    text: str
    origin: Point
    box: Box
    direction: Point
    size: float
    font: FontStyle
    is_apart: bool = False
    is_uncertain: bool = False
    covers: tuple[int, ...] = ()


def blocks_of(glyphs: Iterable[Glyph]) -> list[list[GlyphLine]]:
    """Group glyphs, in the order of the file, into blocks of lines. Missing blanks between words are added."""
    blocks: list[list[list[Glyph]]] = []
    before: Glyph | None = None
    for glyph in glyphs:
        gap, drop = _distance(before, glyph) if before else (0.0, math.inf)
        if abs(drop) > _LEADING:
            blocks.append([[]])
        elif abs(drop) >= _CELL or gap >= _CELL or gap <= -_BACK:
            blocks[-1].append([])
        elif before and gap >= (_SPACE_SEEN if glyph.is_apart else _SPACE) and " " not in (before.text, glyph.text):
            blocks[-1][-1].append(replace(before, text=" "))
        blocks[-1][-1].append(glyph)
        before = glyph
    return [[_line(line) for line in block] for block in blocks]


def _distance(before: Glyph, glyph: Glyph) -> tuple[float, float]:
    """Return how far a glyph is from the previous glyph: along the line, and from the baseline.

    The unit is the font size.
    """
    along, down = glyph.direction
    if before.direction[0] * along + before.direction[1] * down < 0.9:
        return 0.0, math.inf
    x, y = glyph.origin
    size = max(min(before.size, glyph.size), 0.01)  # the number of a line is set smaller than the line
    drop = (along * (y - before.origin[1]) - down * (x - before.origin[0])) / size
    if glyph.origin == before.origin:  # the letters of a ligature all have its place
        return 0.0, drop
    if before.box[0] > glyph.box[0] and _is_right_to_left(before.text + glyph.text):
        return (before.box[0] - glyph.box[2]) / size, drop
    x0, y0, x1, y1 = before.box
    return (along * x + down * y - max(along * x0, along * x1) - max(down * y0, down * y1)) / size, drop


def _is_right_to_left(text: str) -> bool:
    return not text.isascii() and any(unicodedata.bidirectional(letter) in {"R", "AL"} for letter in text)


def _line(glyphs: Sequence[Glyph]) -> GlyphLine:
    first = glyphs[0]

    def style(glyph: Glyph) -> tuple[object, ...]:
        return glyph.font, glyph.size, _is_raised(glyph, first), glyph.is_uncertain, glyph.covers

    runs = [_run(list(run), first) for _, run in groupby(glyphs, style)]
    return GlyphLine(runs, around([run.box for run in runs if run.box]), first.direction)


def _run(glyphs: Sequence[Glyph], first: Glyph) -> GlyphRun:
    font = glyphs[0].font
    return GlyphRun(
        text="".join(glyph.text for glyph in glyphs),
        size=glyphs[0].size,
        font=font.name,
        origin=glyphs[0].origin,
        bold=font.bold,
        italic=font.italic,
        mono=font.mono,
        raised=_is_raised(glyphs[0], first),
        box=around([glyph.box for glyph in glyphs]),
        is_uncertain=glyphs[0].is_uncertain,
    )


def _is_raised(glyph: Glyph, first: Glyph) -> bool:
    return first.direction == (1.0, 0.0) and glyph.origin[1] < first.origin[1] - _RAISED * glyph.size
