"""Parse a document in a separate process with limits of time and memory."""

from __future__ import annotations

from typing import Any, cast

from nornweave.core.sandbox import run_apart
from nornweave.core.types import Document, Entry, SourceId
from nornweave.read.formats.reader import CONVERTED
from nornweave.read.time_limits import CONVERTED_SECONDS, pdf_seconds, seconds_for
from nornweave.read.transfer import document_from


def parse_apart(parser: str, source_id: SourceId, entry: Entry, raw: bytes, **options: object) -> Document:
    """Parse a document in a process with limits of time and memory.

    Args:
        parser: a key of ``document_tasks.PARSERS``.
        options: what that parser takes beside.

    Raises:
        DocumentError: what the parser raised; ``ReaderLostError`` when it went beyond its limits.
    """
    cpu_s = _seconds(entry.path.lower(), len(raw))
    values = {"parser": parser, "source_id": source_id, "entry": entry, "options": options}
    return document_from(cast(dict[str, Any], run_apart("parse", values, raw, cpu_s=cpu_s)))


def _seconds(path: str, size: int) -> float:
    if path.endswith(tuple(CONVERTED)):
        return CONVERTED_SECONDS
    return pdf_seconds(size) if path.endswith(".pdf") else seconds_for(size)
