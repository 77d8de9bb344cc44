"""Recognise the text of scanned pages with Tesseract, which MuPDF has inside; only its language data is installed.

MuPDF 1.28 reads the data from a folder (Debian: package ``tesseract-ocr``); no program is started, no file written.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from nornweave.core.sandbox.limits import allow_more_cpu
from nornweave.read.pdf.glyphs import PdfPage, read_page
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
# Recognised sizes jitter from word to word; what differs by less than this share has the size of its page.
_SAME_SIZE = 0.25

INSTALL = "install the language data of Tesseract (Debian: tesseract-ocr) and sync again, or run OCR first (ocrmypdf)"


@dataclass(frozen=True, slots=True)
class Tesseract:
    """The language data that is installed: its folder and languages, English first."""

    folder: str
    languages: tuple[str, ...]

    @property
    def version(self) -> str:
        """Changes when a page may be read differently."""
        return f"ocr-1-{'+'.join(self.languages)}"


@cache
def installed() -> Tesseract | None:
    """Find the language data: in ``TESSDATA_PREFIX``, else where systems put it; ``None`` if there is none."""
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
    """Return what tells apart how scanned pages are read."""
    found = installed()
    return found.version if found else "no-ocr"


@dataclass(slots=True)
class Recogniser:
    """Recognises pages of one document until its pages or its processor time are spent.

    Attributes:
        recognised: numbers of the pages that were read.
        left_out: numbers of the pages that were not.
    """

    tesseract: Tesseract | None
    recognised: list[int] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    _spent_s: float = 0.0

    def read(self, page: PdfPage, source: Any, *, flags: int) -> PdfPage:
        """Return the page with its recognised text, or as it is when it may not be recognised any more."""
        if self.tesseract is None or len(self.recognised) >= MAX_PAGES or self._spent_s > OCR_SECONDS:
            self.left_out.append(page.number)
            return page
        if not self.recognised:
            allow_more_cpu(OCR_SECONDS)
        before = time.process_time()
        text = source.get_textpage_ocr(
            flags=flags, full=True, dpi=_dpi(page), language="+".join(self.tesseract.languages),
            tessdata=self.tesseract.folder,
        )  # fmt: skip
        content = text.extractDICT()
        self._spent_s += time.process_time() - before
        self.recognised.append(page.number)
        _level(content)
        read = read_page(page.number, content["width"], content["height"], content)
        return replace(read, images=page.images)


def _dpi(page: PdfPage) -> int:
    """Return the resolution to draw a page at, so that it has at most ``_MAX_PIXELS``."""
    inches = max(1.0, page.width * page.height) / 72**2
    return max(36, min(_DPI, int(math.sqrt(_MAX_PIXELS / inches))))


def _level(content: Mapping[str, Any]) -> None:
    """Give words of about the page's own size that size."""
    spans = [span for block in content["blocks"] for line in block.get("lines", ()) for span in line["spans"]]
    if not spans:
        return
    usual = median(span["size"] for span in spans)
    for line in (line for block in content["blocks"] for line in block.get("lines", ())):
        size = median(span["size"] for span in line["spans"])
        for span in line["spans"]:
            span["size"] = usual if abs(size - usual) <= _SAME_SIZE * usual else size
