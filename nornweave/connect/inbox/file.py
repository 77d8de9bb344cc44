"""The files of an inbox: one JSON file per document, written atomically.

A file is named after the digest of its ``source_path``. Its first line holds everything but the content, so that
listing reads no further. A text stands there as it is; what is not text is spelled in base64, and the first line says
so (``encoding``). Of a document that was taken out, a file with the same name and another suffix says that somebody
wanted that.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from nornweave.core.errors import DocumentError
from nornweave.core.files.lock import hold_lock
from nornweave.core.text.dates import utc
from nornweave.core.text.decode import MAX_BYTES
from nornweave.core.types import JsonValue, Metadata, digest

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
