"""A source of the documents in an inbox, one JSON file each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from nornweave.connect.files.source import file_document, file_version
from nornweave.connect.inbox.deposits import (
    MAX_FILE_BYTES,
    content_of,
    file_name,
    gate_of,
    is_binary,
    is_document_file,
    loads,
    read_header,
    withdraw,
    withdrawn_paths,
)
from nornweave.connect.messages import MessagesSource, parse_messages
from nornweave.connect.transcripts import TranscriptSource, parse_transcript
from nornweave.core.errors import DocumentError, SourceUnavailableError, TransientDocumentError
from nornweave.core.files.paths import unsafe_path
from nornweave.core.text.dates import iso_moment
from nornweave.core.types import (
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
from nornweave.read.access_statements import access_metadata, names_access
from nornweave.read.isolated import parse_apart

_BROKEN = "the inbox file is broken"
_BROKEN_GATE = "broken-"


@dataclass(frozen=True, slots=True)
class InboxSource:
    """The documents of one inbox."""

    id: SourceId
    domain: Domain
    root: Path

    @property
    def version(self) -> str:
        return ",".join(("inbox-1", file_version(), MessagesSource.version, TranscriptSource.version))

    def list(self) -> Listing:
        """List the documents by path. The list is empty if nothing was deposited.

        A broken file is listed under its own name, so that only this file fails and its error is reported.

        Raises:
            SourceUnavailableError: the folder cannot be read.
        """
        try:
            with os.scandir(self.root) as files:
                entries = [
                    entry for file in files if is_document_file(file.name) and (entry := _entry(file)) is not None
                ]
            withdrawn = withdrawn_paths(self.root)
        except FileNotFoundError:
            return Listing(())
        except OSError as error:
            raise SourceUnavailableError(
                f"source {self.id!r}: the inbox {str(self.root)!r} cannot be read: {error.strerror}; repair it or its "
                "permissions. Its documents are kept until then."
            ) from error
        listed = {entry.path for entry in entries}
        return Listing(tuple(sorted(entries, key=lambda entry: entry.path)), withdrawn=withdrawn - listed)

    def fetch(self, entry: Entry) -> bytes:
        """Read the JSON file of a document.

        Raises:
            TransientDocumentError: the document was withdrawn meanwhile, or it cannot be read.
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
        """Build a document from its JSON file. The suffix of its path decides the format."""
        return parse_apart(inbox_document, self.id, entry, raw, domain=self.domain)

    def copies_of(self, path: str) -> int:
        """Count the files of a document: one or zero."""
        return int((self.root / file_name(path)).exists())

    def forget(self, path: str) -> None:
        withdraw(self.root, path)


def inbox_document(source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain) -> Document:
    """Build a document from its JSON file. The suffix of its path decides the format.

    Raises:
        DocumentError: the file is broken, or its content is invalid in its format.
    """
    stored = loads(raw) if len(raw) <= MAX_FILE_BYTES else {}
    content = content_of(stored)
    if stored.get("source_path") != entry.path or content is None:
        raise DocumentError(f"{_BROKEN}: it does not hold this document; hand it in again")
    if domain is Domain.CONVERSATIONS:
        is_transcript = PurePosixPath(entry.path.lower()).suffix in {".vtt", ".srt"}
        document = (parse_transcript if is_transcript else parse_messages)(source_id, entry, content)
    else:
        is_dated = stored.get("source_updated_at") is not None
        # Bytes are read like a file with their suffix, but never skipped: somebody sent them on purpose.
        is_handed_in = domain is Domain.CODE or not is_binary(stored)
        how = {"is_dated": is_dated, "is_handed_in": is_handed_in, "is_asked_for": True}
        document = file_document(source_id, entry, content, domain=domain, **how)
    return replace(document, content_hash=ContentHash(digest(raw)))


def _entry(file: os.DirEntry[str]) -> Entry | None:
    try:
        if not file.is_file(follow_symlinks=False):
            return None
        status = file.stat(follow_symlinks=False)
        header = read_header(Path(file.path))
    except FileNotFoundError:
        return None  # withdrawn meanwhile
    gate = gate_of(status)
    path, stated = header.get("source_path"), header.get("source_updated_at")
    metadata, size = header.get("metadata"), header.get("size")
    if not isinstance(path, str) or file_name(path) != file.name or unsafe_path(path):
        return Entry(path=file.name, gate=_BROKEN_GATE + gate, size=status.st_size)
    known = _metadata(metadata) if isinstance(metadata, Mapping) else NO_METADATA
    revision = known.get("revision")
    return Entry(
        path=path,
        gate=gate,
        size=size if isinstance(size, int) else status.st_size,
        updated_at=iso_moment(stated) or datetime.fromtimestamp(status.st_mtime, UTC),
        revision=revision if isinstance(revision, str) else None,
        metadata=known,
    )


def _metadata(stated: Mapping[str, JsonValue]) -> Metadata:
    """Return the metadata with all access statements joined into one, however their keys are spelt."""
    others = {key: value for key, value in stated.items() if not names_access(key)}
    return freeze({**others, **access_metadata(fields=stated.items())})
