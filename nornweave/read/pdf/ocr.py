"""Recognise the text of scanned pages with the Tesseract inside MuPDF; only its language data has to be installed.

MuPDF 1.28 reads the data from a folder (Debian: package ``tesseract-ocr``); no program is started, no file written.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median

from nornweave.core.process import allow_more_cpu
from nornweave.read.pdf.glyphs import PdfPage, read_page
from nornweave.read.pdf.port import PageGlyphs, PdfFile
from nornweave.read.time_limits import OCR_SECONDS

MAX_PAGES = 50
"""Of one document; a page takes 0.5 to 4 s."""
MAX_LANGUAGES = 4
"""Each makes recognition slower."""
_DPI = 300
_MAX_PIXELS = 20_000_000
_FOLDERS = ("/usr/share/tesseract-ocr/*/tessdata", "/usr/share/tessdata", "/usr/local/share/tessdata",
            "/opt/homebrew/share/tessdata")  # fmt: skip
_NO_LANGUAGES = frozenset({"osd", "equ", "snum"})

NEEDS_PYMUPDF = "OCR needs PyMuPDF; install the extra 'pymupdf' and sync again, or run OCR first (ocrmypdf)"
INSTALL = "install the language data of Tesseract (Debian: tesseract-ocr) and sync again, or run OCR first (ocrmypdf)"


@dataclass(frozen=True, slots=True)
class Tesseract:
    """The installed language data of Tesseract: its folder and its languages, with English first."""

    folder: str
    languages: tuple[str, ...]

    @property
    def version(self) -> str:
        """A version that changes whenever a page may be read differently."""
        return f"ocr-2-{'+'.join(self.languages)}"


@cache
def installed() -> Tesseract | None:
    """Return the language data in ``TESSDATA_PREFIX`` or at the usual places; ``None`` if none is installed."""
    stated = os.environ.get("TESSDATA_PREFIX")
    folders = [Path(stated)] if stated else [found for place in _FOLDERS for found in sorted(_matching(place))]
    for folder in reversed(folders):
        names = {file.stem for file in folder.glob("*.traineddata")} - _NO_LANGUAGES
        if names:
            ordered = sorted(names, key=lambda name: (name != "eng", name))
            return Tesseract(str(folder), tuple(ordered[:MAX_LANGUAGES]))
    return None


def _matching(place: str) -> list[Path]:
    return list(Path("/").glob(place.removeprefix("/")))


def version() -> str:
    """Return a version that changes whenever scanned pages may be read differently."""
    found = installed()
    return found.version if found else "no-ocr"


@dataclass(slots=True)
class Recogniser:
    """Recognises the pages of one document until the limit of pages or of processor time is reached.

    Attributes:
        has_ocr: whether the PDF library that opened the file can recognise pages.
        recognised: the numbers of the pages that were recognised.
        left_out: the numbers of the pages that were not recognised.
    """

    tesseract: Tesseract | None
    has_ocr: bool = True
    recognised: list[int] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    _spent_s: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Tell whether pages can be recognised at all."""
        return self.has_ocr and self.tesseract is not None

    @property
    def remedy(self) -> str:
        """Return what a person can do so that scanned pages are read."""
        return INSTALL if self.has_ocr else NEEDS_PYMUPDF

    def read(self, page: PdfPage, file: PdfFile) -> PdfPage:
        """Return the page with its recognised text. If a limit is reached, return the page unchanged."""
        if (
            not self.has_ocr
            or self.tesseract is None
            or len(self.recognised) >= MAX_PAGES
            or self._spent_s > OCR_SECONDS
        ):
            self.left_out.append(page.number)
            return page
        if not self.recognised:
            allow_more_cpu(OCR_SECONDS)
        before = time.process_time()
        languages, folder = "+".join(self.tesseract.languages), self.tesseract.folder
        glyphs = file.recognise(page.number - 1, _dpi(page), languages, folder)
        self._spent_s += time.process_time() - before
        self.recognised.append(page.number)
        return replace(read_page(page.number, _levelled(glyphs)), images=page.images)


def _dpi(page: PdfPage) -> int:
    """Return a resolution at which the page has at most ``_MAX_PIXELS`` pixels."""
    inches = max(1.0, page.width * page.height) / 72**2
    return max(36, min(_DPI, int(math.sqrt(_MAX_PIXELS / inches))))


def _levelled(glyphs: PageGlyphs) -> PageGlyphs:
    """Return the page with the same size for all words, because OCR gives each word a slightly different size."""
    sizes = [run.size for lines in glyphs.blocks for line in lines for run in line.runs]
    usual = median(sizes) if sizes else 0.0
    blocks = [
        [replace(line, runs=[replace(run, size=usual) for run in line.runs]) for line in lines]
        for lines in glyphs.blocks
    ]
    return replace(glyphs, blocks=blocks)
