"""Read PDF files with PDFium, by way of pypdfium2 (Apache-2.0 or BSD-3-Clause).

PDFium tells the place, font and size of every character; ``lines`` makes lines and blocks of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ctypes import byref, c_double, c_int, c_uint, c_ulong, c_void_p, cast, create_string_buffer
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import pypdfium2
import pypdfium2.raw as c

from nornweave.core.errors import DocumentError
from nornweave.read.pdf.lines import FontStyle, Glyph, blocks_of
from nornweave.read.pdf.port import ENCRYPTED, Box, PageGlyphs, Picture, broken, lacks_end
from nornweave.read.pdf.unseen import FAINT, covering, filled_areas, is_light, without_unseen

has_ocr = False

_MONO, _ITALIC, _FORCE_BOLD = 1, 1 << 6, 1 << 18  # flags of a font, ISO 32000-1, table 123
_ITALIC_NAME = re.compile(r"italic|oblique", re.IGNORECASE)
# Bold fonts whose names do not say "bold"; PDFium does not look into the font.
_BOLD_NAME = re.compile(r"-Medi(?!um)|(?:Bd|Blk)(?![a-z])")
_HYPHEN = 2  # what PDFium 159 writes for a hyphen at the end of a line
_UNKNOWN = frozenset({0, 0xFFFE, 0xFFFF})
_UNPAINTED = frozenset({c.FPDF_TEXTRENDERMODE_INVISIBLE, c.FPDF_TEXTRENDERMODE_CLIP})


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
