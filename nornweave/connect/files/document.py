"""Parse a file by its domain and suffix, formats of products included."""

from __future__ import annotations

from nornweave.connect.stackexchange.document import VERSION as STACKEXCHANGE_VERSION
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.core.types import Document, Domain, Entry, SourceId
from nornweave.read.file import LFS_POINTER, parse_version, read_document


def file_version() -> str:
    """Return what changes when the same bytes may come out as another document."""
    return f"{parse_version()},{STACKEXCHANGE_VERSION}"


def file_document(
    source_id: SourceId,
    entry: Entry,
    raw: bytes,
    *,
    domain: Domain,
    is_dated: bool = False,
    is_handed_in: bool = False,
) -> Document:
    """Parse a file; JSON of research is questions and answers. See ``read_document``.

    Raises:
        DocumentSkipped: code that is empty or generated; a Git LFS pointer in place of the file.
        DocumentError: too large, binary, empty or broken.
    """
    is_json = entry.path.lower().endswith(".json") and not raw.startswith(LFS_POINTER)
    if domain is Domain.RESEARCH and is_json:
        return stackexchange_document(source_id, entry, raw, domain=domain, is_dated=is_dated)
    return read_document(source_id, entry, raw, domain=domain, is_dated=is_dated, is_handed_in=is_handed_in)
