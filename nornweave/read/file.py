"""Parse the bytes of one file into a ``Document``, by its domain and suffix."""

from __future__ import annotations

from pathlib import PurePosixPath

from nornweave.core.access.rules import KEY
from nornweave.core.errors import DocumentSkipped
from nornweave.core.text.decode import check_size, decode
from nornweave.core.types import ContentHash, Document, Domain, Entry, JsonValue, SourceId, digest, document_id, freeze
from nornweave.read.chunking.languages import is_generated, language_of
from nornweave.read.formats.reader import CONVERTED, read_converted
from nornweave.read.formats.reader import VERSION as CONVERTED_VERSION
from nornweave.read.front_matter import FORMATS, describe
from nornweave.read.parsed import Parsed
from nornweave.read.pdf.document import VERSION as PDF_VERSION
from nornweave.read.pdf.document import parse_pdf
from nornweave.read.pdf.ocr import version as ocr_version
from nornweave.read.pdf.port import library_version

# Raise it when the same bytes come out as another document.
_VERSION = "documents-6"

# What ``Entry.metadata`` says about fields that documents have of their own.
_FIELDS = frozenset({"title", "url", "updated_at", "revision"})
_PDF, _ZIP = b"%PDF-", b"PK\x03\x04"
_OF_TEXT = frozenset({".ipynb", ".eml"})
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def parse_version() -> str:
    """Return what changes when the same bytes may come out as another document."""
    return ",".join((_VERSION, CONVERTED_VERSION, PDF_VERSION, library_version(), ocr_version()))


def read_document(
    source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain, is_dated: bool = False, is_handed_in: bool = False
) -> Document:
    """Parse a file by its domain and the suffix of its path.

    Args:
        is_dated: ``entry.updated_at`` is a statement (a commit, a sidecar, a client) and goes before the document's own
            date; a file's modification time is none, it only stands in where the document has no date.
        is_handed_in: somebody sent it on purpose: code that says it is generated stays; where the bytes are not those
            of a PDF or an office document, the text of one was sent.

    Raises:
        DocumentSkipped: code that is empty or generated; a Git LFS pointer in place of the file.
        DocumentError: too large, binary, empty or broken.
    """
    check_size(len(raw))
    if raw.startswith(LFS_POINTER):
        raise DocumentSkipped("Git LFS pointer in place of the file; run 'git lfs pull' and use a source of type files")
    if domain is Domain.CODE:
        parsed, format_ = _code(raw, keep_generated=is_handed_in), language_of(entry.path) or "text"
    else:
        parsed, format_ = _prose(entry.path, raw, is_text=is_handed_in)
    return assemble(source_id, domain, entry, raw, parsed, format_, is_dated=is_dated)


def assemble(
    source_id: SourceId, domain: Domain, entry: Entry, raw: bytes, parsed: Parsed, format_: str, *, is_dated: bool
) -> Document:
    """Merge parsed values with those of the source; the source wins, except for dates of undated entries."""
    known = entry.metadata
    own = {key: value for key, value in known.items() if key not in _FIELDS}
    # What stands at the head of the document is for the document to say.
    own |= {key: value for key, value in parsed.metadata.items() if key == "front_matter"}
    dates = (entry.updated_at, parsed.updated_at) if is_dated else (parsed.updated_at, entry.updated_at)
    return Document(
        id=document_id(source_id, entry.path),
        domain=domain,
        source_id=source_id,
        path=entry.path,
        text=parsed.text,
        format=format_,
        content_hash=ContentHash(digest(raw)),
        title=_text(known.get("title")) or parsed.title,
        updated_at=dates[0] or dates[1],
        revision=entry.revision,
        url=_text(known.get("url")) or parsed.url,
        # The document's own statement of who may see it stays: what the source says of it counts as well.
        metadata=freeze({**parsed.metadata, **own, KEY: parsed.metadata.get(KEY, own.get(KEY))}),
        sections=parsed.sections,
        page_starts=parsed.page_starts,
    )


def _code(raw: bytes, *, keep_generated: bool) -> Parsed:
    if not raw.removeprefix(b"\xef\xbb\xbf").strip():
        raise DocumentSkipped("empty")
    text = decode(raw)
    if not keep_generated and is_generated(text):
        raise DocumentSkipped("generated: a comment in its first lines says so")
    return Parsed(text=text)


def _prose(path: str, raw: bytes, *, is_text: bool) -> tuple[Parsed, str]:
    suffix = PurePosixPath(path.lower()).suffix
    if suffix == ".pdf" and (not is_text or raw.startswith(_PDF)):
        return parse_pdf(raw), "pdf"
    if suffix in CONVERTED and (suffix in _OF_TEXT or not is_text or raw.startswith(_ZIP)):
        return read_converted(CONVERTED[suffix], raw), CONVERTED[suffix]
    text = decode(raw)
    format_ = FORMATS.get(suffix, "text")
    return describe(text, format_), format_


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
