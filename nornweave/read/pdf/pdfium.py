"""Read PDF files with PDFium, by way of pypdfium2 (Apache-2.0 or BSD-3-Clause).

PDFium tells the place, font and size of every character; ``lines`` makes lines and blocks of them.

Group single characters into lines and blocks, for a library that only gives the place of each.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ctypes import byref, c_double, c_int, c_uint, c_ulong, c_void_p, cast, create_string_buffer
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from typing import Any

import pypdfium2
import pypdfium2.raw as c

from nornweave.core.errors import DocumentError
from nornweave.read.pdf.port import (
    ENCRYPTED,
    FAINT,
    Box,
    GlyphLine,
    GlyphRun,
    PageGlyphs,
    Picture,
    Point,
    around,
    broken,
    covering,
    filled_areas,
    is_light,
    lacks_end,
    without_unseen,
)

has_ocr = False

_MONO, _ITALIC, _FORCE_BOLD = 1, 1 << 6, 1 << 18  # flags of a font, ISO 32000-1, table 123
_ITALIC_NAME = re.compile(r"italic|oblique", re.IGNORECASE)
# Bold fonts whose names do not say "bold"; PDFium does not look into the font.
_BOLD_NAME = re.compile(r"-Medi(?!um)|(?:Bd|Blk)(?![a-z])")
_HYPHEN = 2  # what PDFium 159 writes for a hyphen at the end of a line
_UNKNOWN = frozenset({0, 0xFFFE, 0xFFFF})
_UNPAINTED = frozenset({c.FPDF_TEXTRENDERMODE_INVISIBLE, c.FPDF_TEXTRENDERMODE_CLIP})

# Of the font's size: between words, between cells, back to the left, between the lines of a block. MuPDF's distances.
_SPACE, _CELL, _BACK, _LEADING = 0.15, 0.8, 0.5, 1.4
_SPACE_SEEN = 0.03  # where the library sees a blank; PDFium 159 sees some between letters that touch
_RAISED = 0.1  # of the font's size above the baseline


@contextmanager
def opened(raw: bytes) -> Iterator[PdfiumFile]:
    """Open a PDF. While it is open, errors of PDFium are translated to our own errors."""
    try:
        document = pypdfium2.PdfDocument(raw)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError(ENCRYPTED) from error
        raise broken(error) from error
    try:
        yield PdfiumFile(document, raw)
    except pypdfium2.PdfiumError as error:
        raise broken(error) from error
    finally:
        document.close()


class PdfiumFile:
    """A PDF file that PDFium has opened. Implements ``PdfFile``."""

    def __init__(self, document: Any, raw: bytes) -> None:
        self._document = document
        self.page_count = len(document)
        self.is_truncated = lacks_end(raw)  # PDFium does not say whether it repaired the file

    @property
    def properties(self) -> Mapping[str, str]:
        return {key[0].lower() + key[1:]: value for key, value in self._document.get_metadata_dict().items()}

    @property
    def bookmarks(self) -> Sequence[tuple[int, str]]:
        return [(entry.level + 1, entry.get_title()) for entry in self._document.get_toc()]

    def page(self, number: int) -> PageGlyphs:
        page = self._document[number]
        turned = page.get_rotation()
        try:
            page.set_rotation(0)  # PDFium sorts the characters of a page that is turned
            left, bottom, right, top = page.get_bbox()
            width, height = right - left, top - bottom
            text = page.get_textpage()  # closes when nothing refers to it any more
            fills, images = _areas(page, left, top)
            glyphs = (glyph for glyph in _glyphs(text.raw, left, top) if _is_on_page(glyph, width, height))
            parted = (replace(g, covers=covering(fills, g.box, g.origin[1], g.size)) if fills else g for g in glyphs)
            return without_unseen(PageGlyphs(width, height, blocks_of(parted)), fills, images, partial(_drawn, page))
        finally:
            page.set_rotation(turned)
            page.close()

    def images_on(self, number: int) -> int:
        return sum(1 for _ in self._document[number].get_objects(filter=[c.FPDF_PAGEOBJ_IMAGE]))

    def picture(self, number: int, scale: float) -> Picture:
        page = self._document[number]
        try:
            return _drawn(page, scale)
        finally:
            page.close()

    def recognise(self, number: int, dpi: int, languages: str, folder: str) -> PageGlyphs:
        """Raise ``NotImplementedError``, because PDFium has no OCR."""
        raise NotImplementedError


def _drawn(page: Any, scale: float) -> Picture:
    drawn = page.render(scale=scale, rev_byteorder=True, force_bitmap_format=c.FPDFBitmap_BGR)
    rows, size = bytes(drawn.buffer), drawn.width * 3
    pixels = bytearray().join(rows[row * drawn.stride : row * drawn.stride + size] for row in range(drawn.height))
    return Picture(drawn.width, drawn.height, pixels)


def _areas(page: Any, left: float, top: float) -> tuple[list[Box], list[Box]]:
    """Return the boxes of filled areas and the boxes of images. The areas inside forms are included."""
    areas: dict[bool, list[Box]] = {False: [], True: []}
    kinds = [c.FPDF_PAGEOBJ_PATH, c.FPDF_PAGEOBJ_SHADING, c.FPDF_PAGEOBJ_FORM, c.FPDF_PAGEOBJ_IMAGE]
    for painted in page.get_objects(kinds, max_depth=1):
        with suppress(pypdfium2.PdfiumError):  # an empty form has no box
            x0, y0, x1, y1 = painted.get_bounds()
            areas[painted.type == c.FPDF_PAGEOBJ_IMAGE].append((x0 - left, top - y1, x1 - left, top - y0))
    return filled_areas(areas[False]), areas[True]


def _is_uncertain(text: Any) -> bool:
    """Tell whether a text object may be hidden by its colour, opacity, mode, clip or layer."""
    red, green, blue, alpha = (c_uint() for _ in range(4))
    c.FPDFPageObj_GetFillColor(text, byref(red), byref(green), byref(blue), byref(alpha))
    marks = (c.FPDFPageObj_GetMark(text, at) for at in range(c.FPDFPageObj_CountMarks(text)))
    is_faint = alpha.value < FAINT or is_light(red.value << 16 | green.value << 8 | blue.value)
    is_clipped = c.FPDFClipPath_CountPaths(c.FPDFPageObj_GetClipPath(text)) > 0
    is_unpainted = c.FPDFTextObj_GetTextRenderMode(text) in _UNPAINTED
    return is_faint or is_clipped or is_unpainted or any(map(_names_layer, marks))


def _names_layer(mark: Any) -> bool:
    name, length = (c.FPDF_WCHAR * 4)(), c_ulong()
    c.FPDFPageObjMark_GetName(mark, name, 8, byref(length))
    return bytes(name)[:6] == "OC\0".encode("utf-16-le")


def _is_on_page(glyph: Glyph, width: float, height: float) -> bool:
    x0, y0, x1, y1 = glyph.box
    return x1 >= 0 and y1 >= 0 and x0 <= width and y0 <= height


def _glyphs(text: Any, left: float, top: float) -> Iterator[Glyph]:
    """Yield the characters of a page, without the blanks and line ends that PDFium adds.

    ``left`` and ``top`` are the place of the page's upper left corner, from which all places are measured.
    """
    x, y, matrix, box, flags = c_double(), c_double(), c.FS_MATRIX(), c.FS_RECTF(), c_int()
    name = create_string_buffer(256)
    is_apart = False
    uncertain: dict[int, bool] = {}
    for index in range(c.FPDFText_CountChars(text)):
        if c.FPDFText_IsGenerated(text, index) == 1:
            is_apart = True
            continue
        code = c.FPDFText_GetUnicode(text, index)
        unknown = code in _UNKNOWN or c.FPDFText_HasUnicodeMapError(text, index) == 1
        c.FPDFText_GetCharOrigin(text, index, byref(x), byref(y))
        c.FPDFText_GetLooseCharBox(text, index, byref(box))
        c.FPDFText_GetMatrix(text, index, byref(matrix))
        c.FPDFText_GetFontInfo(text, index, name, len(name), byref(flags))
        written = c.FPDFText_GetTextObject(text, index)
        address = cast(written, c_void_p).value or 0
        if address not in uncertain:
            uncertain[address] = bool(address) and _is_uncertain(written)
        length = math.hypot(matrix.a, matrix.b) or 1.0
        yield Glyph(
            text="\ufffd" if unknown else "-" if code == _HYPHEN else chr(code),
            origin=(x.value - left, top - y.value),
            box=(box.left - left, top - box.top, box.right - left, top - box.bottom),
            direction=(matrix.a / length, -matrix.b / length),
            size=c.FPDFText_GetFontSize(text, index) * math.sqrt(abs(matrix.a * matrix.d - matrix.b * matrix.c)),
            font=_font(name.value, flags.value),
            is_apart=is_apart,
            is_uncertain=uncertain[address],
        )
        is_apart = False


@lru_cache(maxsize=1024)
def _font(name: bytes, flags: int) -> FontStyle:
    font = name.decode("utf-8", "replace")
    return FontStyle(
        name=font,
        bold=bool(flags & _FORCE_BOLD or _BOLD_NAME.search(font)),
        italic=bool(flags & _ITALIC or _ITALIC_NAME.search(font)),
        mono=bool(flags & _MONO),
    )


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
