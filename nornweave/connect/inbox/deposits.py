"""Put documents into an inbox and take them out; an accepted document is on disk when the call returns.

This module does not parse documents, so that the API can write to the inbox without loading the parsers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath

from nornweave.connect.inbox.file import file_name, header_of, holds, locked, spell, withdrawn_name, write
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.files.atomic_write import sync_path
from nornweave.core.files.paths import unsafe_path
from nornweave.core.text.decode import check_size, decode
from nornweave.core.types import NO_METADATA, Metadata

BINARY_SUFFIXES = frozenset({".pdf", ".docx", ".pptx", ".xlsx", ".epub"})


class Status(StrEnum):
    """The outcome for a document that was handed in."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxDocument:
    """A document as it is handed in; ``source_path`` is its place and identity.

    ``content`` is text, whatever the suffix says, or the bytes of a file of the format that the suffix names.
    """

    source_path: str
    content: str | bytes
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
    source_updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome for one document; ``reason`` says why it was rejected."""

    source_path: str
    status: Status
    reason: str | None = None


def deposit(root: Path, documents: Sequence[InboxDocument]) -> tuple[Receipt, ...]:
    """Put documents into an inbox; accepted documents are on disk when this returns.

    Args:
        root: the inbox's folder; made when missing.
        documents: in order; the last one of a path stays.

    Returns:
        One receipt per document, in order. What its place holds already, content and metadata, is rejected as
        ``duplicate``.

    Raises:
        SourceUnavailableError: the folder cannot be written; documents of this call may be in it or not.
    """
    try:
        with locked(root):
            receipts = tuple(_deposit(root, document) for document in documents)
            sync_path(root)
    except OSError as error:
        raise _unwritable(root, error) from error
    return receipts


def withdraw(root: Path, source_path: str) -> bool:
    """Take a document out of an inbox; return whether it was there.

    It is noted that somebody wanted this, so that the next sync removes the document without asking.

    Raises:
        SourceUnavailableError: the folder cannot be written.
    """
    if not root.is_dir():
        return False
    try:
        with locked(root):
            if not (root / file_name(source_path)).exists():
                return False
            note = json.dumps({"source_path": source_path}, ensure_ascii=False)
            write(root, withdrawn_name(source_path), note.encode("utf-8", "surrogatepass"))
            (root / file_name(source_path)).unlink()
            sync_path(root)
    except OSError as error:
        raise _unwritable(root, error) from error
    return True


def _deposit(root: Path, document: InboxDocument) -> Receipt:
    try:
        reason = _reason_to_reject(document)
        header = (
            {}
            if reason
            else header_of(document.source_path, document.content, document.metadata, document.source_updated_at)
        )
    except DocumentError as error:
        reason, header = str(error), {}
    if not reason and holds(root / file_name(document.source_path), header):
        reason = "duplicate"
    if reason:
        return Receipt(document.source_path, Status.REJECTED, reason)
    write(root, file_name(document.source_path), spell(header, document.content))
    (root / withdrawn_name(document.source_path)).unlink(missing_ok=True)
    return Receipt(document.source_path, Status.ACCEPTED)


def _reason_to_reject(document: InboxDocument) -> str | None:
    if reason := unsafe_path(document.source_path):
        return reason
    raw = document.content
    if isinstance(raw, str):
        try:
            raw = raw.encode("utf-8")
        except UnicodeEncodeError as error:
            return f"content: not valid Unicode text at character {error.start}; expected text that UTF-8 can hold"
    check_size(len(raw))
    # What can be said without a parser is said now, while somebody listens.
    if isinstance(document.content, bytes) and has_binary_format(document.source_path):
        return None if raw else "empty: 0 bytes; send the file's content"
    decode(raw)
    return None


def has_binary_format(source_path: str) -> bool:
    """Tell whether files of this suffix are not text, so that only a parser can say what is in them."""
    return PurePosixPath(source_path.lower()).suffix in BINARY_SUFFIXES


def _unwritable(root: Path, error: OSError) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"the inbox {str(root)!r} cannot be written: {error.strerror}; free space or permit it"
    )
