"""Put documents into an inbox and take them out.

This module does not parse documents, so that the API can write to the inbox without loading the parsers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from nornweave.connect.inbox.file import file_name, header_of, holds, locked, spell, withdrawn_name, write
from nornweave.core.errors import DocumentError, QueryError, SourceUnavailableError
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.paths import unsafe_path
from nornweave.core.files.writing import sync_path, write_whole
from nornweave.core.text.decode import check_size, decode
from nornweave.core.types import NO_METADATA, Metadata, canonical_json, digest

# Files of these are not text: only a parser can say what is in them.
BINARY_SUFFIXES = frozenset({".pdf", ".docx", ".pptx", ".xlsx", ".epub"})


class Status(StrEnum):
    """The outcome of depositing a document."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxDocument:
    """A document to deposit. Its ``source_path`` is both its place and its identity.

    The ``content`` may be text, with any suffix in the path. It may also be the bytes of a file in the format that the
    suffix names.
    """

    source_path: str
    content: str | bytes
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
    source_updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome for one document. If the document was rejected, ``reason`` says why."""

    source_path: str
    status: Status
    reason: str | None = None


def deposit(root: Path, documents: Sequence[InboxDocument]) -> tuple[Receipt, ...]:
    """Put documents into an inbox. Accepted documents are on disk when this function returns.

    Args:
        root: the folder of the inbox. It is made if it is missing.
        documents: the documents in order. If several have the same path, the last one is stored.

    Returns:
        One receipt per document, in order. A document with the same content and metadata as the stored one is rejected
        as ``duplicate``.

    Raises:
        SourceUnavailableError: the folder cannot be written. Some of the documents may have been stored.
    """
    try:
        with locked(root):
            receipts = tuple(_deposit(root, document) for document in documents)
            sync_path(root)
    except OSError as error:
        raise _unwritable(root, error) from error
    return receipts


def withdraw(root: Path, source_path: str) -> bool:
    """Remove a document from an inbox. Return whether the inbox had the document.

    The removal is recorded as intended, so the next sync does not ask for confirmation.

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
    # Report problems that need no parser now, while the sender waits.
    if isinstance(document.content, bytes) and PurePosixPath(document.source_path.lower()).suffix in BINARY_SUFFIXES:
        return None if raw else "empty: 0 bytes; send the file's content"
    decode(raw)
    return None


def _unwritable(root: Path, error: OSError) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"the inbox {str(root)!r} cannot be written: {error.strerror}; free space or permit it"
    )


KEEP_S = 24 * 3600.0
MAX_KEYS = 10_000
MAX_KEY_CHARACTERS = 255
FIELD = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class ReceiptBook:
    """The idempotency keys of one inbox, each with its first answer."""

    folder: Path

    def once(
        self, key: str, documents: Sequence[InboxDocument], put: Callable[[], Sequence[Receipt]]
    ) -> tuple[Receipt, ...]:
        """Deposit documents once for each key. If the key was used before, return the first answer again.

        Args:
            key: 1 to 255 printable ASCII characters.

        Raises:
            QueryError: the key is invalid, or it was used with other documents before.
            SourceUnavailableError: the folder cannot be written.
        """
        check_key(key)
        body = _digest(documents)
        try:
            with hold_lock(self.folder / ".lock"):
                self._sweep()
                return self._once(self.folder / f"{digest(key)}.json", body, put)
        except OSError as error:
            raise SourceUnavailableError(
                f"{str(self.folder)!r} cannot be written: {error.strerror}; free space or permit it"
            ) from error

    def _once(self, file: Path, body: str, put: Callable[[], Sequence[Receipt]]) -> tuple[Receipt, ...]:
        known = _read(file)
        if known and known["body"] != body:
            raise QueryError(FIELD, "came with other documents before; a key is for one request and its repetitions")
        if known and known["receipts"] is not None:
            return tuple(Receipt(path, Status(status), reason) for path, status, reason in known["receipts"])
        write_whole(file, json.dumps({"body": body, "receipts": None}))
        # The document of a repeated request whose answer was lost is reported as accepted.
        receipts = tuple(
            Receipt(each.source_path, Status.ACCEPTED) if known and each.reason == "duplicate" else each
            for each in put()
        )
        said = [(each.source_path, each.status.value, each.reason) for each in receipts]
        write_whole(file, json.dumps({"body": body, "receipts": said}, ensure_ascii=True))
        return receipts

    def _sweep(self) -> None:
        """Remove keys that are older than a day. If there are still too many keys, remove the oldest ones."""
        ages = sorted((file.stat().st_mtime, file) for file in self.folder.glob("*.json"))
        before = time.time() - KEEP_S
        for number, (moment, file) in enumerate(ages):
            if moment < before or number < len(ages) - MAX_KEYS:
                file.unlink(missing_ok=True)


def check_key(key: str) -> None:
    """Refuse an invalid idempotency key.

    Raises:
        QueryError: the key is empty, too long or not printable ASCII.
    """
    if not (1 <= len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()):
        raise QueryError(FIELD, f"expected 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")


def _digest(documents: Sequence[InboxDocument]) -> str:
    parts: list[str | bytes] = []
    for each in documents:
        moment = each.source_updated_at.isoformat() if each.source_updated_at else ""
        parts += [each.source_path, each.content, canonical_json(each.metadata), moment, type(each.content).__name__]
    return digest(*parts)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return known if isinstance(known, dict) and {"body", "receipts"} <= known.keys() else None
