"""The files of an inbox: one JSON file per document, written atomically.

A file is named after the digest of its ``source_path``. Its first line holds everything but the content, so that
listing reads no further.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from nornweave.errors import DocumentError
from nornweave.text.dates import utc
from nornweave.text.decode import MAX_BYTES
from nornweave.types import JsonValue, Metadata, digest

MAX_METADATA_BYTES = 256 * 1024
# JSON spells a control character with six bytes and everything else that matters with at most two.
MAX_FILE_BYTES = 6 * (MAX_BYTES + MAX_METADATA_BYTES) + 64 * 1024
_MAX_HEADER_BYTES = 6 * MAX_METADATA_BYTES + 64 * 1024
_NAME = re.compile(r"[0-9a-f]{32}\.json")
_ASIDE = ".incoming"
_LOCK = ".lock"
_END = b"}\n"


def is_document_file(name: str) -> bool:
    """Say whether a file of the folder is a document."""
    return _NAME.fullmatch(name) is not None


def file_name(source_path: str) -> str:
    """Return the name of the one file that can hold a document."""
    return f"{digest(source_path)}.json"


def read_header(file: Path) -> Mapping[str, JsonValue]:
    """Read the first line; empty when it is broken."""
    with file.open("rb") as opened:
        line = opened.readline(_MAX_HEADER_BYTES)
    return loads(line.rstrip().removesuffix(b",") + b"}")


def loads(raw: bytes) -> Mapping[str, JsonValue]:
    """Read a JSON object; empty if the text is not one."""
    try:
        loaded: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def header_of(
    source_path: str, content: str, metadata: Metadata, source_updated_at: datetime | None
) -> dict[str, JsonValue]:
    """Return everything but the content.

    Raises:
        DocumentError: the metadata is no JSON or too much of it, or the date is out of range.
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
    raw = content.encode("utf-8")
    return {
        "source_path": source_path,
        "source_updated_at": moment,
        "size": len(raw),
        "digest": digest(raw),
        "metadata": loaded,
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")


def holds(file: Path, header: Mapping[str, JsonValue]) -> bool:
    """Tell whether a file is complete and has the same content and metadata; the date is not compared."""
    try:
        stored = read_header(file)
        is_whole = _ends_well(file)
    except FileNotFoundError:
        return False
    return is_whole and all(stored.get(key) == header[key] for key in ("source_path", "digest", "metadata"))


def _ends_well(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(0, os.SEEK_END)
        opened.seek(max(0, opened.tell() - len(_END)))
        return opened.read() == _END


def spell(header: Mapping[str, JsonValue], content: str) -> bytes:
    """Return the bytes of a document's file."""
    first_line = json.dumps(header, ensure_ascii=False).removesuffix("}")
    return f'{first_line},\n"content": {json.dumps(content, ensure_ascii=False)}'.encode() + _END


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Lock an inbox against other threads and processes, and remove temporary files of killed ones."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / _LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        aside = root / _ASIDE
        aside.mkdir(exist_ok=True)
        for left in aside.iterdir():
            left.unlink()
        yield


def write(root: Path, name: str, raw: bytes) -> None:
    """Write a file beside the documents, sync it and move it to its place; the caller holds the lock."""
    aside = root / _ASIDE / name
    with aside.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(root / name)


def sync_folder(folder: Path) -> None:
    """Flush renames in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
