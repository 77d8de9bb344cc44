"""Read PDF files with PyMuPDF (AGPL or commercial licence), scanned pages included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

import pymupdf

from nornweave.core.errors import DocumentError
from nornweave.read.pdf.port import (
    ENCRYPTED,
    FAINT,
    Box,
    GlyphLine,
    GlyphRun,
    PageGlyphs,
    Picture,
    broken,
    covering,
    filled_areas,
    is_light,
    lacks_end,
    without_unseen,
)

has_ocr = True

# Span flags of MuPDF; 4 is serif.
_SUPERSCRIPT, _ITALIC, _MONO, _BOLD = 1, 2, 8, 16
_PAINTED = pymupdf.mupdf.FZ_STEXT_FILLED | pymupdf.mupdf.FZ_STEXT_STROKED
# Without PRESERVE_LIGATURES MuPDF spells them out; without CID_FOR_UNKNOWN_UNICODE what it cannot read is U+FFFD.
_FLAGS = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP

# MuPDF reports every oddity of a file on stderr; what matters reaches the caller as an error.
pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


@contextmanager
def opened(raw: bytes) -> Iterator[MupdfFile]:
    """Open a PDF. While it is open, errors of MuPDF are translated to our own errors."""
    try:
        with pymupdf.open(stream=raw, filetype="pdf") as document:
            if document.needs_pass:
                raise DocumentError(ENCRYPTED)
            yield MupdfFile(document, raw)
    # MuPDF's errors share no base class; these are all that 1.28 raises on broken files.
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError, pymupdf.mupdf.FzErrorBase) as error:
        raise broken(error) from error


class MupdfFile:
    """A PDF file that PyMuPDF has opened. Implements ``PdfFile``."""

    def __init__(self, document: Any, raw: bytes) -> None:
        self._document = document
        self.is_truncated = bool(document.is_repaired) and lacks_end(raw)
        self.page_count = int(document.page_count)

    @property
    def properties(self) -> Mapping[str, str]:
        return {key: str(value or "") for key, value in (self._document.metadata or {}).items()}

    @property
    def bookmarks(self) -> Sequence[tuple[int, str]]:
        return [(int(level), str(title)) for level, title, *_ in self._document.get_toc(simple=True)]

    def page(self, number: int) -> PageGlyphs:
        page = self._document[number]
        text, painted = page.get_textpage(flags=_FLAGS), page.get_bboxlog()
        fills = filled_areas(box for kind, box in painted if kind in {"fill-path", "fill-shade"})
        images = [box for kind, box in painted if kind.startswith("fill-im")]
        return without_unseen(_glyphs(text, fills), fills, images, partial(_drawn, page, page.derotation_matrix))

    def images_on(self, number: int) -> int:
        return len(self._document[number].get_images())

    def picture(self, number: int, scale: float) -> Picture:
        return _drawn(self._document[number], pymupdf.Identity, scale)

    def recognise(self, number: int, dpi: int, languages: str, folder: str) -> PageGlyphs:
        """Read a page with the Tesseract that is built into MuPDF."""
        text = self._document[number].get_textpage_ocr(
            flags=_FLAGS, full=True, dpi=dpi, language=languages, tessdata=folder
        )
        return _glyphs(text)


def _drawn(page: Any, turn: Any, scale: float) -> Picture:
    drawn = page.get_pixmap(matrix=turn * pymupdf.Matrix(scale, scale), colorspace=pymupdf.csRGB)
    return Picture(drawn.width, drawn.height, bytearray(drawn.samples))


def _glyphs(text: Any, fills: Sequence[Box] = ()) -> PageGlyphs:
    content = text.extractRAWDICT() if fills else text.extractDICT()
    blocks = [[_line(line, fills) for line in block.get("lines", ())] for block in content["blocks"]]
    return PageGlyphs(content["width"], content["height"], blocks)


def _line(line: Mapping[str, Any], fills: Sequence[Box]) -> GlyphLine:
    spans = (part for span in line["spans"] for part in (_parts(span, fills) if fills else [span]))
    return GlyphLine([_run(span) for span in spans], line["bbox"], line["dir"])


def _parts(span: Mapping[str, Any], fills: Sequence[Box]) -> Iterator[Mapping[str, Any]]:
    """Divide a span of letters where a filled area begins or ends, and yield each part in the form of a span."""
    size = span["size"]
    for _, part in groupby(span["chars"], lambda each: covering(fills, each["bbox"], each["origin"][1], size)):
        letters = list(part)
        box = (letters[0]["bbox"][0], span["bbox"][1], letters[-1]["bbox"][2], span["bbox"][3])
        text = "".join(letter["c"] for letter in letters)
        yield {**span, "text": text, "origin": letters[0]["origin"], "bbox": box}


def _run(span: Mapping[str, Any]) -> GlyphRun:
    flags = span["flags"]
    return GlyphRun(
        text=span["text"],
        box=span["bbox"],
        is_uncertain=not span["char_flags"] & _PAINTED or span["alpha"] < FAINT or is_light(span["color"]),
        size=span["size"],
        font=span["font"],
        origin=span["origin"],
        bold=bool(flags & _BOLD),
        italic=bool(flags & _ITALIC),
        mono=bool(flags & _MONO),
        raised=bool(flags & _SUPERSCRIPT),
    )
