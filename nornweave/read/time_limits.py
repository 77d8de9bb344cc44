"""Time limits for reading a document, by its size, in seconds of processor time."""

from __future__ import annotations

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
