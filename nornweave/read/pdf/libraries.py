"""Choose the library that reads PDF files: PyMuPDF where it is installed, else PDFium.

``NORNWEAVE_PDF_LIBRARY=pdfium`` or ``=pymupdf`` overrides that; ``docs/licences.md`` says why one may want to.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import cast

from nornweave.core.errors import DocumentError
from nornweave.read.pdf.port import PdfLibrary

VARIABLE = "NORNWEAVE_PDF_LIBRARY"
_PACKAGES = {"pymupdf": "pymupdf", "pdfium": "pypdfium2"}
_MODULES = {"pymupdf": "nornweave.read.pdf.mupdf", "pdfium": "nornweave.read.pdf.pdfium"}
_NONE = (
    "PDF files need a library that is not installed: pip install pypdfium2 (Apache-2.0 or BSD-3-Clause) or pymupdf "
    "(AGPL or commercial licence, see NOTICE), or leave PDF files out with exclude: ['*.pdf']"
)


def load_library() -> PdfLibrary:
    """Import the library that is chosen or installed.

    Raises:
        DocumentError: there is none, or ``NORNWEAVE_PDF_LIBRARY`` names one that is unknown or not installed.
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
                    f"{VARIABLE} is {stated!r}, but {_PACKAGES[name]} is not installed. {_NONE}"
                ) from None
    raise DocumentError(_NONE)


def library_version() -> str:
    """Return what tells apart by which library PDF files are read, without importing it."""
    stated = os.environ.get(VARIABLE)
    candidates = [stated] if stated in _PACKAGES else _PACKAGES
    return next((found for name in candidates if (found := _version(_PACKAGES[name]))), "no-pdf-library")


@cache
def _version(package: str) -> str | None:
    try:
        return f"{package}-{version_of(package)}"
    except PackageNotFoundError:
        return None
