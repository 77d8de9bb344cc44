"""The port to PDF libraries: the glyphs of each page with their places and fonts, and the file's properties.

Two libraries implement it (``docs/licences.md`` compares them): PyMuPDF (``mupdf``) and PDFium (``pdfium``).
Coordinates are points, x to the right, y downwards, from the top left corner of the page before it is rotated.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
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
