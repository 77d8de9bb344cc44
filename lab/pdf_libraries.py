"""Compare how PyMuPDF and PDFium read the same files: ``python -m lab.pdf_libraries FOLDER``.

There is no truth to compare with: the table says where the two agree. ``docs/licences.md`` has the figures.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path

from nornweave.core.errors import DocumentError
from nornweave.read.parsed import Parsed
from nornweave.read.pdf.document import parse_pdf
from nornweave.read.pdf.libraries import VARIABLE

_WORD = re.compile(r"\w+")


def main() -> None:
    """Print a row a file, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    total: Counter[str] = Counter()
    for path in sorted(parser.parse_args().folder.rglob("*.pdf")):
        (mupdf, mupdf_s), (pdfium, pdfium_s) = _read(path, "pymupdf"), _read(path, "pdfium")
        if isinstance(mupdf, str) or isinstance(pdfium, str):
            sys.stdout.write(f"{path.name}: pymupdf {_outcome(mupdf)}; pdfium {_outcome(pdfium)}\n")
            total["failed with pymupdf"] += isinstance(mupdf, str)
            total["failed with pdfium"] += isinstance(pdfium, str)
            continue
        row = {**agreement(mupdf, pdfium), "pymupdf ms": int(1000 * mupdf_s), "pdfium ms": int(1000 * pdfium_s)}
        sys.stdout.write(f"{path.name}: {row}\n")
        total.update({"files": 1, "pages": len(mupdf.page_starts), **row})
    sys.stdout.write(f"{dict(total)}\n")


def agreement(first: Parsed, second: Parsed) -> dict[str, int]:
    """Count words, words in common, those of them in the same order, headings, headings in common."""
    words, others = _WORD.findall(first.text), _WORD.findall(second.text)
    blocks = SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    headings, other_headings = _headings(first), _headings(second)
    return {
        "words of pymupdf": len(words),
        "words of pdfium": len(others),
        "words in common": (Counter(words) & Counter(others)).total(),
        "in the same order": sum(block.size for block in blocks),
        "headings of pymupdf": headings.total(),
        "headings of pdfium": other_headings.total(),
        "headings in common": (headings & other_headings).total(),
        "same title": int(first.title == second.title),
    }


def _headings(parsed: Parsed) -> Counter[str]:
    return Counter(part.heading for part in parsed.sections if part.heading)


def _read(path: Path, library: str) -> tuple[Parsed | str, float]:
    os.environ[VARIABLE] = library
    started = time.process_time()
    try:
        result: Parsed | str = parse_pdf(path.read_bytes())
    except DocumentError as error:
        result = str(error)
    return result, time.process_time() - started


def _outcome(result: Parsed | str) -> str:
    return result[:80] if isinstance(result, str) else f"reads {len(result.text)} characters"


if __name__ == "__main__":
    main()
