"""The inbox: documents handed in over HTTP, one JSON file each, as a source for any domain.

A file is named after the digest of its ``source_path``, so handing a document in again replaces it. Its first line
holds everything but the content; listing reads no further. Files come and go whole: written aside, synced, renamed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from nornweave.errors import DocumentError, SourceUnavailableError, TransientDocumentError
from nornweave.ingest.decode import MAX_BYTES, check_size, decode
from nornweave.ingest.documents import PARSE_VERSION, read_document, utc
from nornweave.ingest.paths import unsafe_path
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

MAX_METADATA_BYTES = 256 * 1024
# JSON spells a control character with six bytes and everything else that matters with at most two.
_MAX_FILE_BYTES = 6 * (MAX_BYTES + MAX_METADATA_BYTES) + 64 * 1024
_MAX_HEADER_BYTES = 6 * MAX_METADATA_BYTES + 64 * 1024
_NAME = re.compile(r"[0-9a-f]{32}\.json")
_ASIDE = ".incoming"
_LOCK = ".lock"
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
        with _locked(root):
            receipts = tuple(_deposit(root, document) for document in documents)
            _sync_folder(root)
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
        with _locked(root):
            (root / _file_name(source_path)).unlink()
            _sync_folder(root)
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
        return f"inbox-1,{PARSE_VERSION}"

    def list(self) -> Listing:
        """List the documents, by path; an inbox that nobody wrote to yet is empty.

        A file that is broken is listed under its own name, so that it fails alone and with its reason.

        Raises:
            SourceUnavailableError: the folder cannot be read.
        """
        try:
            with os.scandir(self.root) as files:
                entries = [
                    entry for file in files if _NAME.fullmatch(file.name) and (entry := _entry(file)) is not None
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
            with (self.root / _file_name(entry.path)).open("rb") as file:
                return file.read(_MAX_FILE_BYTES + 1)
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
        stored = _loads(raw) if len(raw) <= _MAX_FILE_BYTES else {}
        content = stored.get("content")
        if stored.get("source_path") != entry.path or not isinstance(content, str):
            raise DocumentError(f"{_BROKEN}: it does not hold this document; hand it in again")
        document = read_document(
            self.id,
            self.domain,
            entry,
            content.encode("utf-8", "replace"),
            is_dated=stored.get("source_updated_at") is not None,
            is_handed_in=True,
        )
        return replace(document, content_hash=ContentHash(digest(raw)))


def _entry(file: os.DirEntry[str]) -> Entry | None:
    try:
        if not file.is_file(follow_symlinks=False):
            return None
        status = file.stat(follow_symlinks=False)
        header = _header(Path(file.path))
    except FileNotFoundError:
        return None  # withdrawn meanwhile
    gate = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"
    path, stated = header.get("source_path"), header.get("source_updated_at")
    metadata, size = header.get("metadata"), header.get("size")
    if not isinstance(path, str) or _file_name(path) != file.name or unsafe_path(path):
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


def _header(file: Path) -> Mapping[str, JsonValue]:
    """Read the first line; empty when it is broken."""
    with file.open("rb") as opened:
        line = opened.readline(_MAX_HEADER_BYTES)
    return _loads(line.rstrip().removesuffix(b",") + b"}")


def _loads(raw: bytes) -> Mapping[str, JsonValue]:
    try:
        loaded: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _deposit(root: Path, document: InboxDocument) -> Receipt:
    try:
        reason = _reason_to_reject(document)
        header = {} if reason else _header_of(document)
    except DocumentError as error:
        reason, header = str(error), {}
    if not reason and _is_stored(root / _file_name(document.source_path), header):
        reason = "duplicate"
    if reason:
        return Receipt(document.source_path, Status.REJECTED, reason)
    _write(root, _file_name(document.source_path), _spell(header, document.content))
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


def _header_of(document: InboxDocument) -> dict[str, JsonValue]:
    stated = document.source_updated_at
    try:
        metadata = json.dumps(document.metadata, default=_plain, allow_nan=False, ensure_ascii=False)
        size = len(metadata.encode("utf-8"))
        moment = utc(stated).isoformat() if stated else None
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise DocumentError(f"metadata or source_updated_at: {error}; expected JSON values and a date") from error
    if size > MAX_METADATA_BYTES:
        raise DocumentError(f"metadata: {size} bytes, at most {MAX_METADATA_BYTES} are allowed")
    loaded: JsonValue = json.loads(metadata)
    content = document.content.encode("utf-8")
    return {
        "source_path": document.source_path,
        "source_updated_at": moment,
        "size": len(content),
        "digest": digest(content),
        "metadata": loaded,
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")


def _is_stored(file: Path, header: Mapping[str, JsonValue]) -> bool:
    """Say whether a file holds the same content and metadata; a new date alone is no news."""
    try:
        stored = _header(file)
    except FileNotFoundError:
        return False
    return all(stored.get(key) == header[key] for key in ("source_path", "digest", "metadata"))


def _spell(header: Mapping[str, JsonValue], content: str) -> bytes:
    first_line = json.dumps(header, ensure_ascii=False).removesuffix("}")
    return f'{first_line},\n"content": {json.dumps(content, ensure_ascii=False)}}}\n'.encode()


def _file_name(source_path: str) -> str:
    return f"{digest(source_path)}.json"


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Keep others from writing to an inbox, threads and processes alike; sweep up what a killed one left."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / _LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        aside = root / _ASIDE
        aside.mkdir(exist_ok=True)
        for left in aside.iterdir():
            left.unlink()
        yield


def _write(root: Path, name: str, raw: bytes) -> None:
    aside = root / _ASIDE / name
    with aside.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(root / name)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(root: Path, error: OSError) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"the inbox {str(root)!r} cannot be written: {error.strerror}; free space or permit it"
    )
