"""Put documents into an inbox and take them out: one JSON file per document, written atomically.

A file is named after the digest of its ``source_path``. Its first line holds everything but the content, so that
listing reads no further. A text stands there as it is; what is not text is spelled in base64, and the first line says
so (``encoding``). Of a document that was taken out, a file with the same name and another suffix says that somebody
wanted that.

This module does not parse documents, so that the API can write to the inbox without loading the parsers.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from nornweave.core.errors import DocumentError, QueryError, SourceUnavailableError
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.paths import unsafe_path
from nornweave.core.files.writing import sync_path, write_whole
from nornweave.core.text.dates import utc
from nornweave.core.text.decode import MAX_BYTES, check_size, decode
from nornweave.core.types import NO_METADATA, JsonValue, Metadata, canonical_json, digest

# Files of these are not text: only a parser can say what is in them.
BINARY_SUFFIXES = frozenset({".pdf", ".docx", ".pptx", ".xlsx", ".epub"})

MAX_METADATA_BYTES = 256 * 1024
# JSON spells a control character with six bytes and everything else that matters with at most two.
MAX_FILE_BYTES = 6 * (MAX_BYTES + MAX_METADATA_BYTES) + 64 * 1024
_MAX_HEADER_BYTES = 6 * MAX_METADATA_BYTES + 64 * 1024
BASE64 = "base64"
# By then a sync has long seen the removal.
KEEP_WITHDRAWN_S = 30 * 24 * 3600.0
_NAME = re.compile(r"[0-9a-f]{32}\.json")
_WITHDRAWN = re.compile(r"[0-9a-f]{32}\.withdrawn")
_ASIDE = ".incoming"
_LOCK = ".lock"
_END = b"}\n"


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


def is_document_file(name: str) -> bool:
    """Tell whether a file in the inbox's folder is a document."""
    return _NAME.fullmatch(name) is not None


def file_name(source_path: str) -> str:
    """Return the name of a document's file."""
    return f"{digest(source_path)}.json"


def withdrawn_name(source_path: str) -> str:
    """Return the name of the file that marks a document as withdrawn."""
    return f"{digest(source_path)}.withdrawn"


def gate_of(status: os.stat_result) -> str:
    """Return a document file's gate, which changes with every deposit."""
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def withdrawn_paths(root: Path) -> frozenset[str]:
    """Return the paths of documents that were withdrawn and not deposited again.

    Raises:
        OSError: the folder cannot be read.
    """
    paths = set()
    for file in root.iterdir():
        if _WITHDRAWN.fullmatch(file.name):
            try:
                path = loads(file.read_bytes()[:_MAX_HEADER_BYTES]).get("source_path")
            except FileNotFoundError:
                continue  # handed in again meanwhile
            if isinstance(path, str) and withdrawn_name(path) == file.name:
                paths.add(path)
    return frozenset(paths)


def content_of(stored: Mapping[str, JsonValue]) -> bytes | None:
    """Return a document's content as bytes; ``None`` if the file is incomplete."""
    content = stored.get("content")
    if not isinstance(content, str):
        return None
    if not is_binary(stored):
        return content.encode("utf-8", "replace")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return None


def is_binary(header: Mapping[str, JsonValue]) -> bool:
    """Tell whether a document was deposited as bytes, not as text."""
    return header.get("encoding") == BASE64


def read_header(file: Path) -> Mapping[str, JsonValue]:
    """Read the header, which is the first line of a file. The header is empty if that line is broken."""
    with file.open("rb") as opened:
        line = opened.readline(_MAX_HEADER_BYTES)
    return loads(line.rstrip().removesuffix(b",") + b"}")


def loads(raw: bytes) -> Mapping[str, JsonValue]:
    """Read a JSON object. The result is empty if the text is not a JSON object."""
    try:
        loaded: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def header_of(
    source_path: str, content: str | bytes, metadata: Metadata, source_updated_at: datetime | None
) -> dict[str, JsonValue]:
    """Return all fields of a document except the content.

    Raises:
        DocumentError: the metadata is too large or not JSON, or the date is out of range.
    """
    try:
        spelt = json.dumps(metadata, default=_plain, allow_nan=False, ensure_ascii=False)
        size = len(spelt.encode("utf-8"))
        moment = utc(source_updated_at).isoformat() if source_updated_at else None
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise DocumentError(f"metadata or source_updated_at: {error}; expected JSON values and a date") from error
    if size > MAX_METADATA_BYTES:
        raise DocumentError(f"metadata: {size} bytes, at most {MAX_METADATA_BYTES} are allowed")
    loaded: JsonValue = json.loads(spelt)
    raw = content.encode("utf-8") if isinstance(content, str) else content
    return {
        "source_path": source_path,
        "source_updated_at": moment,
        "size": len(raw),
        "digest": digest(raw),
        "metadata": loaded,
        **({} if isinstance(content, str) else {"encoding": BASE64}),
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")


def holds(file: Path, header: Mapping[str, JsonValue]) -> bool:
    """Tell whether a file is complete and has the same content and metadata as ``header``. Dates are not compared."""
    try:
        stored = read_header(file)
        is_whole = _ends_well(file)
    except FileNotFoundError:
        return False
    same = all(stored.get(key) == header[key] for key in ("source_path", "digest", "metadata"))
    return is_whole and same and is_binary(stored) == is_binary(header)


def _ends_well(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(0, os.SEEK_END)
        opened.seek(max(0, opened.tell() - len(_END)))
        return opened.read() == _END


def spell(header: Mapping[str, JsonValue], content: str | bytes) -> bytes:
    """Return the bytes of a document's file."""
    if isinstance(content, bytes):
        content = base64.b64encode(content).decode("ascii")
    first_line = json.dumps(header, ensure_ascii=False).removesuffix("}")
    return f'{first_line},\n"content": {json.dumps(content, ensure_ascii=False)}'.encode() + _END


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Lock an inbox against other threads and processes. Delete temporary files that killed processes left."""
    with hold_lock(root / _LOCK):
        aside = root / _ASIDE
        aside.mkdir(exist_ok=True)
        for left in aside.iterdir():
            left.unlink()
        _forget_withdrawn(root)
        yield


def _forget_withdrawn(root: Path) -> None:
    before = time.time() - KEEP_WITHDRAWN_S
    for file in root.glob("*.withdrawn"):
        if file.stat().st_mtime < before:
            file.unlink()


def write(root: Path, name: str, raw: bytes) -> None:
    """Write a document's file atomically. The caller must hold the lock."""
    aside = root / _ASIDE / name
    with aside.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(root / name)
