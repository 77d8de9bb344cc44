"""The port to PDF libraries: the glyphs that somebody sees, with their places and fonts, and the file's properties.

Two libraries implement it (``docs/licences.md`` compares them): PyMuPDF (``mupdf``) and PDFium (``pdfium``).
Coordinates are points, x to the right, y downwards, from the top left corner of the page before it is rotated.

Text may be transparent, as white as the page, covered by a box, outside its clip, on a layer that is off, or smaller
than a point. Only text that its colour, its mode or a filled box beside it makes doubtful is looked up in a picture of
the page: it is hidden where the picture has one colour. The text layer of a scanned page lies over an image, and stays.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Protocol, TypeAlias, cast

from nornweave.core.errors import DocumentError
from nornweave.core.installation import installer

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]


def around(boxes: Sequence[Box]) -> Box:
    """Return the smallest box that contains all of ``boxes``. There must be at least one box."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


ENCRYPTED = "encrypted: needs a password to open; save a copy without one and ingest that"


def broken(error: Exception) -> DocumentError:
    """Return a ``DocumentError`` for an error of a PDF library."""
    return DocumentError(f"broken PDF: {error}; expected a readable file, export or download it again")


def lacks_end(raw: bytes) -> bool:
    """Tell whether ``%%EOF`` is missing at the end of the file."""
    return b"%%EOF" not in raw[-4096:]


@dataclass(frozen=True, slots=True, kw_only=True)
class GlyphRun:
    """Neighbouring characters of one font and size.

    Attributes:
        text: the characters. U+FFFD stands for a glyph to which the font gives no Unicode value.
        origin: the place on the baseline at which the first character begins.
        raised: whether the run stands above the baseline of the line, as an exponent or the mark of a footnote does.
        box: the box around the characters; ``None`` if the library does not tell it.
        is_uncertain: whether the colour, opacity, mode, clip or layer of the run may hide it.
    """

    text: str
    size: float
    font: str
    origin: Point
    bold: bool = False
    italic: bool = False
    mono: bool = False
    raised: bool = False
    box: Box | None = None
    is_uncertain: bool = False


@dataclass(frozen=True, slots=True)
class GlyphLine:
    """Runs on one baseline without a wide gap between them.

    ``direction`` is the unit vector of the reading direction.
    """

    runs: Sequence[GlyphRun]
    box: Box
    direction: Point = (1.0, 0.0)


@dataclass(frozen=True, slots=True)
class PageGlyphs:
    """The glyphs of a page. Lines are in the order of the file, and the lines of one block are together.

    ``unseen`` is the number of hidden runs, which are left out.
    """

    width: float
    height: float
    blocks: Sequence[Sequence[GlyphLine]]
    unseen: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A page drawn as a picture: the red, green and blue values of each pixel, row by row."""

    width: int
    height: int
    pixels: bytearray


class PdfFile(Protocol):
    """An open PDF file.

    Attributes:
        properties: ``title``, ``author``, ``subject``, ``keywords``, ``creationDate`` and ``modDate``, as the file
            states them.
        bookmarks: the level, from 1, and the title of each bookmark, in order.
        is_truncated: whether the end of the file is missing.
    """

    page_count: int
    properties: Mapping[str, str]
    bookmarks: Sequence[tuple[int, str]]
    is_truncated: bool

    def page(self, number: int) -> PageGlyphs:
        """Read what a page shows. The number of the first page is 0."""

    def images_on(self, number: int) -> int:
        """Count the images on a page."""

    def picture(self, number: int, scale: float) -> Picture:
        """Draw a page at ``scale`` pixels per point."""

    def recognise(self, number: int, dpi: int, languages: str, folder: str) -> PageGlyphs:
        """Read a page by OCR. This needs a library with ``PdfLibrary.has_ocr``.

        Args:
            languages: Tesseract's names of the languages, joined by ``+``. Their data is in ``folder``.
        """


class PdfLibrary(Protocol):
    """A library that reads PDF files.

    Attributes:
        has_ocr: whether the library can recognise scanned pages.
    """

    has_ocr: bool

    def opened(self, raw: bytes) -> AbstractContextManager[PdfFile]:
        """Open a PDF file.

        Raises:
            DocumentError: the file is broken or encrypted. The error may be raised later, while the file is open.
        """


VARIABLE = "NORNWEAVE_PDF_LIBRARY"
_PACKAGES = {"pymupdf": "pymupdf", "pdfium": "pypdfium2"}
_MODULES = {"pymupdf": "nornweave.read.pdf.mupdf", "pdfium": "nornweave.read.pdf.pdfium"}
_NONE = (
    "PDF files need a library that is not installed: {} pypdfium2 (Apache-2.0 or BSD-3-Clause) or pymupdf "
    "(AGPL or commercial licence, see NOTICE), or leave PDF files out with exclude: ['*.pdf']"
)


def load_library() -> PdfLibrary:
    """Import the configured PDF library, or an installed one if none is configured.

    Raises:
        DocumentError: no library is installed, or ``NORNWEAVE_PDF_LIBRARY`` names one that is unknown or not installed.
    """
    stated = os.environ.get(VARIABLE)
    if stated and stated not in _PACKAGES:
        raise DocumentError(f"{VARIABLE} is {stated!r}; expected 'pymupdf' or 'pdfium'")
    for name in [stated] if stated else _PACKAGES:
        try:
            return cast(PdfLibrary, importlib.import_module(_MODULES[name]))
        except ImportError:
            if stated:
                raise DocumentError(
                    f"{VARIABLE} is {stated!r}, but {_PACKAGES[name]} is not installed. {_NONE.format(installer())}"
                ) from None
    raise DocumentError(_NONE.format(installer()))


def library_version() -> str:
    """Return the name and version of the library that reads PDF files, without importing the library."""
    stated = os.environ.get(VARIABLE)
    candidates = [stated] if stated in _PACKAGES else _PACKAGES
    return next((found for name in candidates if (found := _version(_PACKAGES[name]))), "no-pdf-library")


@cache
def _version(package: str) -> str | None:
    try:
        return f"{package}-{version_of(package)}"
    except PackageNotFoundError:
        return None


LEAST_SIZE = 1.0
"""Points; smaller letters are not seen."""
FAINT = 26  # of 255: less than a tenth of a letter is painted
_LIGHT = 200  # of 255 for each of red, green and blue, from which text may be as light as its page
_CONTRAST = 14  # of 255 between the darkest and the lightest pixel; less is not seen
_ABOVE, _BELOW = 0.7, 0.1  # of the font's size: where letters stand above and below the baseline
_SCALE, _MOST_PIXELS = 1.0, 2_000_000
_LEAST_DRAWN = 3.0  # pixels of a letter's height; smaller ones may leave no mark in the picture
_MOST_FILLS = 100
_LEAST_LETTERS = 2  # of a run that may be hidden


def is_light(colour: int) -> bool:
    """Tell whether a colour (0xRRGGBB) is so light that a text in it may not be visible on the page."""
    return min(colour >> 16 & 255, colour >> 8 & 255, colour & 255) >= _LIGHT


def without_unseen(
    page: PageGlyphs, fills: Sequence[Box], images: Sequence[Box], draw: Callable[[float], Picture]
) -> PageGlyphs:
    """Return the page without hidden runs. Its ``unseen`` is their number.

    Args:
        fills, images: the boxes of the filled areas and of the images on the page.
        draw: a function that draws the page, not rotated, at a number of pixels per point.
    """
    scale = min(_SCALE, math.sqrt(_MOST_PIXELS / max(page.width * page.height, 1.0)))
    drawn: list[Picture] = []

    def is_unseen(run: GlyphRun, direction: tuple[float, float]) -> bool:
        if sum(map(str.isalnum, run.text)) < _LEAST_LETTERS or not run.box or not all(map(math.isfinite, run.box)):
            return False
        if run.size < LEAST_SIZE and run.box[2] - run.box[0] < LEAST_SIZE * len(run.text):
            return True
        band = _band(run, direction)
        is_scanned = run.is_uncertain and any(_encloses(image, band) for image in images)
        is_doubtful = run.is_uncertain or any(_encloses(fill, band) for fill in fills)
        if is_scanned or not is_doubtful or run.size * scale < _LEAST_DRAWN:
            return False
        if not drawn:
            drawn.append(draw(scale))
        return not _has_ink(drawn[0], band, scale)

    unseen = 0
    blocks: list[list[GlyphLine]] = []
    for block in page.blocks:
        blocks.append([])
        for line in block:
            hidden = [is_unseen(run, line.direction) for run in line.runs]
            unseen += sum(hidden)
            runs = [run for run, is_hidden in zip(line.runs, hidden, strict=True) if not is_hidden]
            if len(runs) == len(line.runs):
                blocks[-1].append(line)
            elif runs:
                blocks[-1].append(
                    replace(line, runs=runs, box=around([run.box for run in runs if run.box] or [line.box]))
                )
    return replace(page, blocks=[block for block in blocks if block], unseen=unseen) if unseen else page


def filled_areas(boxes: Iterable[Box]) -> list[Box]:
    """Return the boxes that may cover text or have the colour of the text.

    The result is empty for a page with many boxes, because such a page is a drawing.
    """
    areas = [box for box in boxes if box[2] - box[0] > LEAST_SIZE and box[3] - box[1] > LEAST_SIZE]
    return areas if len(areas) <= _MOST_FILLS else []


def covering(areas: Sequence[Box], box: Box, baseline: float, size: float) -> tuple[int, ...]:
    """Return the numbers of the areas in which the middle of a letter lies. A run ends where these numbers change."""
    x, y = (box[0] + box[2]) / 2, baseline - size / 4
    return tuple(at for at, (x0, y0, x1, y1) in enumerate(areas) if x0 <= x <= x1 and y0 <= y <= y1)


def _band(run: GlyphRun, direction: tuple[float, float]) -> Box:
    """Return a box around the letters of a run that is low enough not to touch the neighbouring lines."""
    x0, y0, x1, y1 = run.box or (0.0, 0.0, 0.0, 0.0)
    if abs(direction[0] - 1) > 0.01:
        return x0, y0, x1, y1
    return x0, run.origin[1] - _ABOVE * run.size, x1, run.origin[1] + _BELOW * run.size


def _encloses(outer: Box, inner: Box) -> bool:
    return around([outer, (inner[0] + 1, inner[1] + 1, inner[2] - 1, inner[3] - 1)]) == tuple(outer)


def _has_ink(picture: Picture, box: Box, scale: float) -> bool:
    """Tell whether a picture has more than one colour inside a box. Outside of the page the result is ``False``."""
    left, right = (min(max(round(x * scale), 0), picture.width) for x in (box[0], box[2]))
    top, bottom = (min(max(round(y * scale), 0), picture.height) for y in (box[1], box[3]))
    low, high = [255] * 3, [0] * 3
    for row in range(top, bottom if left < right else top):
        start = row * picture.width
        pixels = picture.pixels[(start + left) * 3 : (start + right) * 3]
        for colour in range(3):
            part = pixels[colour::3]
            low[colour], high[colour] = min(low[colour], *part), max(high[colour], *part)
            if high[colour] - low[colour] >= _CONTRAST:
                return True
    return False
