"""The printed page of a PDF that holds a passage, as a picture."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

from nornweave.ask.views.texts import ChunkDocument
from nornweave.core.errors import DocumentError
from nornweave.core.sandbox import run_apart

CPU_S = 10.0
"""Of processor time, for one page."""
log = logging.getLogger(__name__)


def printed_page(chunk: ChunkDocument, folder: Path) -> bytes | None:
    """Draw the page of a PDF file below a folder, the lines of a chunk marked, as PNG; ``None`` if that cannot be."""
    # A process that answers reads documents for nothing else.
    from nornweave.connect.files.source import read_inside
    from nornweave.read.pdf.picture import page_picture

    path = chunk["citation"]["source_path"]
    values = {"page": chunk["citation"]["page"], "text": chunk["content"]}
    try:
        drawn = run_apart(page_picture, values, read_inside(folder, path), cpu_s=CPU_S)
    except DocumentError as error:
        log.info("no picture of a page of %s: %s", path, error)
        return None
    return base64.b64decode(drawn) if isinstance(drawn, str) else None
