"""Put documents into an inbox and take them out; an accepted document is on disk when the call returns.

This module does not parse documents, so that the API can write to the inbox without loading the parsers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from nornweave.errors import DocumentError, SourceUnavailableError
from nornweave.files.paths import unsafe_path
from nornweave.inbox.file import file_name, header_of, holds, locked, spell, sync_folder, write
from nornweave.text.decode import check_size, decode
from nornweave.types import NO_METADATA, Metadata


class Status(StrEnum):
    """The outcome for a document that was handed in."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxDocument:
    """A document as it is handed in; ``source_path`` is its place and identity."""

    source_path: str
    content: str
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
            sync_folder(root)
    except OSError as error:
        raise _unwritable(root, error) from error
    return receipts


def withdraw(root: Path, source_path: str) -> bool:
    """Remove a document from an inbox; return whether it was there.

    Raises:
        SourceUnavailableError: the folder cannot be written.
    """
    if not root.is_dir():
        return False
    try:
        with locked(root):
            (root / file_name(source_path)).unlink()
            sync_folder(root)
    except FileNotFoundError:
        return False
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
    return Receipt(document.source_path, Status.ACCEPTED)


def _reason_to_reject(document: InboxDocument) -> str | None:
    if reason := unsafe_path(document.source_path):
        return reason
    try:
        raw = document.content.encode("utf-8")
    except UnicodeEncodeError as error:
        return f"content: not valid Unicode text at character {error.start}; expected text that UTF-8 can hold"
    check_size(len(raw))
    decode(raw)  # binary and blank contents are refused now, while somebody listens
    return None


def _unwritable(root: Path, error: OSError) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"the inbox {str(root)!r} cannot be written: {error.strerror}; free space or permit it"
    )
