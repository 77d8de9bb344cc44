"""What a parser reads from bytes, before the source adds where they came from; the time it has, by the size."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from nornweave.core.types import NO_METADATA, Metadata, Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The part of a ``Document`` that depends only on its bytes. The fields have the same meaning as in ``Document``.

    The ``sections`` tile the ``text``. For formats without pages ``page_starts`` is empty.
    """

    text: str
    sections: tuple[Section, ...] = ()
    page_starts: tuple[int, ...] = ()
    title: str | None = None
    updated_at: datetime | None = None
    url: str | None = None
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)


SECONDS_AT_LEAST = 5.0
SECONDS_PER_MEGABYTE = 10.0
"""Parsing takes next to nothing, cutting and indexing 1 to 4 s a megabyte."""
PDF_SECONDS_AT_LEAST = 5.0
PDF_SECONDS_PER_MEGABYTE = 40.0
"""Dense pages take 0.06 s each; a book without pictures has 300 of them in a megabyte."""
PDF_SECONDS_AT_MOST = 60.0

OCR_SECONDS = 150.0
"""For the scanned pages of a PDF, beside what it may take without them."""
CONVERTED_SECONDS = 60.0
"""Of office documents, whatever their size: a workbook of 1 MB unpacks to 20 MB, and those take 15 s."""


def seconds_for(size: int) -> float:
    """Return the time limit of one step for a document of this size, in seconds. The size is in bytes."""
    return SECONDS_AT_LEAST + SECONDS_PER_MEGABYTE * size / 1e6


def pdf_seconds(size: int) -> float:
    """Return the time limit for a PDF of this size, in seconds. The size is in bytes."""
    return min(PDF_SECONDS_AT_MOST, PDF_SECONDS_AT_LEAST + PDF_SECONDS_PER_MEGABYTE * size / 1e6)
