"""Bring the files of a generation from the store to this disk: missing parts only, each compared with its SHA-256."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nornweave.core.errors import PublicationError
from nornweave.core.files.atomic_write import sync_path
from nornweave.index.generations.checksums import SUFFIX as CHECKSUM_SUFFIX
from nornweave.index.object_store import PARTS_AT_ONCE, ObjectStore
from nornweave.index.searching.arrays import SUFFIX as ARRAYS_SUFFIX
from nornweave.share.manifest import FileEntry, PublishedManifest, is_segment

log = logging.getLogger(__name__)

DAMAGED_READS = 3
_PARTIAL = ".download-"


def download(
    store: ObjectStore, manifest: PublishedManifest, folder: Path, arrived: Callable[[int], None] = lambda _: None
) -> None:
    """Make a generation complete in ``folder``; the pointer to it is not moved.

    ``arrived`` is told how many bytes came, by several threads; what it raises ends the download.

    The files take their names when all of them are there and compared: segments before what names them, and what
    belongs to a file before the file. Segments that an older generation brought are not downloaded again.

    Raises:
        MissingObjectError: the store has one of its objects no more.
        PublicationError: the store cannot be reached, or what it has is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"{_PARTIAL}{entry.sha256}" for entry in manifest.files}
    clear_downloads(folder, keep=wanted)
    checksums = {entry.suffix: entry.sha256 for entry in manifest.files if entry.suffix.endswith(CHECKSUM_SUFFIX)}
    arriving = [entry for entry in manifest.files if not _is_here(entry, folder, checksums)]
    ready = [(entry, _brought(store, entry, folder, arrived)) for entry in arriving]
    for entry, partial in sorted(ready, key=lambda pair: _order(pair[0])):
        partial.replace(folder / entry.name_in(manifest.generation))
    sync_path(folder)


def _order(entry: FileEntry) -> tuple[bool, bool]:
    return not is_segment(entry.suffix), not entry.suffix.endswith((CHECKSUM_SUFFIX, ARRAYS_SUFFIX))


def _is_here(entry: FileEntry, folder: Path, checksums: Mapping[str, str]) -> bool:
    """Tell whether a file of a segment was brought with an older generation; its own checksum says which one it is.

    Raises:
        PublicationError: another file has its name.
    """
    place = folder / entry.suffix
    if not is_segment(entry.suffix) or not place.is_file():
        return False
    segment = entry.suffix.removesuffix(CHECKSUM_SUFFIX).removesuffix(ARRAYS_SUFFIX)
    stored = folder / f"{segment}{CHECKSUM_SUFFIX}"
    if stored.is_file() and _digest(stored.read_bytes()) == checksums.get(stored.name):
        return True
    raise PublicationError(
        f"{place}: is another file than the one that was published under this name, as after the loss of the "
        "publisher's disk; run `nornweave sync --full` there"
    )


def clear_downloads(folder: Path, keep: Iterable[str] = ()) -> None:
    """Remove what was being downloaded and is not wanted any more."""
    kept = set(keep)
    for left in folder.glob(f"{_PARTIAL}*"):
        if left.name not in kept:
            left.unlink(missing_ok=True)


def _brought(store: ObjectStore, entry: FileEntry, folder: Path, arrived: Callable[[int], None]) -> Path:
    """Return a file with an entry's content; parts that an earlier try has brought are not read again."""
    if not entry.has_all_parts():
        raise PublicationError(f"{store.url}: the manifest names {len(entry.parts)} parts of {entry.size} bytes")
    partial = folder / f"{_PARTIAL}{entry.sha256}"
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fresh = os.fstat(descriptor).st_size == 0
        os.ftruncate(descriptor, entry.size)

        def bring(number: int) -> None:
            start = number * entry.part_size
            length = min(entry.part_size, entry.size - start)
            if fresh or _digest(os.pread(descriptor, length, start)) != entry.parts[number]:
                os.pwrite(descriptor, _read_part(store, entry, number, start, length, arrived), start)
            else:
                arrived(length)

        with ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="download") as pool:
            running = [pool.submit(bring, number) for number in range(len(entry.parts))]
            try:
                for one in running:
                    one.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        os.fsync(descriptor)
    except OSError as error:
        raise PublicationError(f"{partial}: cannot be written: {error}") from error
    finally:
        os.close(descriptor)
    return partial


def _read_part(
    store: ObjectStore, entry: FileEntry, number: int, start: int, length: int, arrived: Callable[[int], None]
) -> bytes:
    """Return a part as it was published; one that arrives damaged is read again."""
    for _ in range(DAMAGED_READS):
        part = store.read_range(entry.key, start, length, arrived)
        if len(part) == length and _digest(part) == entry.parts[number]:
            return part
        log.warning("%s/%s: part %d arrived damaged", store.url, entry.key, number)
    raise PublicationError(
        f"{store.url}/{entry.key}: bytes {start} to {start + length} are damaged in the store; "
        "run `nornweave publish --full` where it is published"
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
