"""The inbox: documents handed in over HTTP, one JSON file each, as a source for any domain.

Handing a document in again replaces it; how it lies on disk is ``inbox_file``'s.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath

from nornweave.errors import DocumentError, SourceUnavailableError, TransientDocumentError
from nornweave.ingest.decode import check_size, decode
from nornweave.ingest.documents import PARSE_VERSION, read_document, utc
from nornweave.ingest.inbox_file import (
    MAX_FILE_BYTES,
    file_name,
    header_of,
    holds,
    is_document_file,
    loads,
    locked,
    read_header,
    spell,
    sync_folder,
    write,
)
from nornweave.ingest.messages import MessagesSource, parse_messages
from nornweave.ingest.paths import unsafe_path
from nornweave.ingest.transcripts import TranscriptSource, parse_transcript
from nornweave.types import (
    NO_METADATA,
    ContentHash,
    Document,
    Domain,
    Entry,
    JsonValue,
    Listing,
    Metadata,
    SourceId,
    digest,
    freeze,
)

_BROKEN = "the inbox file is broken"
_BROKEN_GATE = "broken-"


class Status(StrEnum):
    """What became of a document that was handed in."""

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
    """What became of one document; ``reason`` says why it was rejected."""

    source_path: str
    status: Status
    reason: str | None = None


def deposit(root: Path, documents: Sequence[InboxDocument]) -> tuple[Receipt, ...]:
    """Put documents into an inbox; what is accepted is on disk when this returns.

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
    """Take a document out of an inbox; say whether it was there.

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


@dataclass(frozen=True, slots=True)
class InboxSource:
    """The documents of one inbox."""

    id: SourceId
    domain: Domain
    root: Path

    @property
    def version(self) -> str:
        """Changes when the same bytes may be parsed into another document."""
        return ",".join(("inbox-1", PARSE_VERSION, MessagesSource.version, TranscriptSource.version))

    def list(self) -> Listing:
        """List the documents, by path; an inbox that nobody wrote to yet is empty.

        A file that is broken is listed under its own name, so that it fails alone and with its reason.

        Raises:
            SourceUnavailableError: the folder cannot be read.
        """
        try:
            with os.scandir(self.root) as files:
                entries = [
                    entry for file in files if is_document_file(file.name) and (entry := _entry(file)) is not None
                ]
        except FileNotFoundError:
            return Listing(())
        except OSError as error:
            raise SourceUnavailableError(
                f"source {self.id!r}: the inbox {str(self.root)!r} cannot be read: {error.strerror}; repair it or its "
                "permissions. Its documents are kept until then."
            ) from error
        return Listing(tuple(sorted(entries, key=lambda entry: entry.path)))

    def fetch(self, entry: Entry) -> bytes:
        """Read the JSON file of a document.

        Raises:
            TransientDocumentError: it was withdrawn meanwhile or cannot be read.
        """
        if entry.gate.startswith(_BROKEN_GATE):
            raise DocumentError(f"{_BROKEN}: its first line does not say which document it holds; hand it in again")
        try:
            with (self.root / file_name(entry.path)).open("rb") as file:
                return file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError as error:
            raise TransientDocumentError("it was withdrawn after it was listed; the next sync settles it") from error
        except OSError as error:
            raise TransientDocumentError(
                f"it cannot be read: {error.strerror}; repair the inbox, the next sync tries again"
            ) from error

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Turn a document's JSON file into a document, by the suffix of its path.

        Raises:
            DocumentError: the file is broken, or the content is to its format.
        """
        stored = loads(raw) if len(raw) <= MAX_FILE_BYTES else {}
        content = stored.get("content")
        if stored.get("source_path") != entry.path or not isinstance(content, str):
            raise DocumentError(f"{_BROKEN}: it does not hold this document; hand it in again")
        is_dated = stored.get("source_updated_at") is not None
        document = self._parse_content(entry, content.encode("utf-8", "replace"), is_dated=is_dated)
        return replace(document, content_hash=ContentHash(digest(raw)))

    def _parse_content(self, entry: Entry, content: bytes, *, is_dated: bool) -> Document:
        if self.domain is Domain.CONVERSATIONS:
            is_transcript = PurePosixPath(entry.path.lower()).suffix in {".vtt", ".srt"}
            return (parse_transcript if is_transcript else parse_messages)(self.id, entry, content)
        return read_document(self.id, self.domain, entry, content, is_dated=is_dated, is_handed_in=True)


def _entry(file: os.DirEntry[str]) -> Entry | None:
    try:
        if not file.is_file(follow_symlinks=False):
            return None
        status = file.stat(follow_symlinks=False)
        header = read_header(Path(file.path))
    except FileNotFoundError:
        return None  # withdrawn meanwhile
    gate = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"
    path, stated = header.get("source_path"), header.get("source_updated_at")
    metadata, size = header.get("metadata"), header.get("size")
    if not isinstance(path, str) or file_name(path) != file.name or unsafe_path(path):
        return Entry(path=file.name, gate=_BROKEN_GATE + gate, size=status.st_size)
    known = freeze(metadata) if isinstance(metadata, Mapping) else NO_METADATA
    revision = known.get("revision")
    return Entry(
        path=path,
        gate=gate,
        size=size if isinstance(size, int) else status.st_size,
        updated_at=_moment(stated) or datetime.fromtimestamp(status.st_mtime, UTC),
        revision=revision if isinstance(revision, str) else None,
        metadata=known,
    )


def _moment(stated: JsonValue) -> datetime | None:
    try:
        return utc(datetime.fromisoformat(stated)) if isinstance(stated, str) else None
    except (ValueError, OverflowError):
        return None


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
