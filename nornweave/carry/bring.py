"""Bring the generation that a pointer names, and point readers at it.

Its files come from the store to this disk: missing parts only, each compared with its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path

from nornweave.carry.manifest import FileEntry, Pointer, PublishedManifest, digest_of, is_segment, read_json
from nornweave.carry.object_store import PARTS_AT_ONCE, ObjectStore
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.config import Settings
from nornweave.core.errors import PublicationError
from nornweave.core.files.atomic_write import sync_file, sync_path, write_whole
from nornweave.core.types import GenerationId
from nornweave.index.generations.checksums import SUFFIX as CHECKSUM_SUFFIX
from nornweave.index.generations.kept import number_of
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.outcomes import STATUS
from nornweave.index.searching.arrays import SUFFIX as ARRAYS_SUFFIX

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
    arriving = [entry for entry in manifest.files if not _has_come(entry, folder, checksums)]
    ready = [(entry, _brought(store, entry, folder, arrived)) for entry in arriving]
    for entry, copied in sorted(ready, key=lambda pair: _order(pair[0])):
        copied.replace(folder / entry.name_in(manifest.generation))
    sync_path(folder)


def _order(entry: FileEntry) -> tuple[bool, bool]:
    return not is_segment(entry.suffix), not entry.suffix.endswith((CHECKSUM_SUFFIX, ARRAYS_SUFFIX))


def _has_come(entry: FileEntry, folder: Path, checksums: Mapping[str, str]) -> bool:
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
        sync_file(descriptor)
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


log = logging.getLogger(__name__)


class Stopped(PublicationError):  # noqa: N818 - not a failure
    """The replica is shutting down; a download goes on where it was with the next start."""


def bring(
    store: ObjectStore,
    settings: Settings,
    pointer: Pointer,
    stopping: threading.Event,
    keys: Collection[str] = (),
) -> None:
    """Make a domain answer from the generation that its pointer names; remove those that must not answer any more.

    Raises:
        MissingObjectError: the store has one of the objects no more.
        PublicationError: the store cannot be reached, or what it has is damaged, older or of another domain.
        Stopped: the replica is shutting down.
    """
    domain, files = pointer.domain, store_of(settings, pointer.domain).files
    if _is_here(store, pointer, files.current()):
        _remove_forbidden(files, pointer)
        return
    manifest = _manifest(store, pointer, keys)
    if manifest.generation not in files.all():
        download(store, manifest, files.folder, partial(_go_on, stopping))
    built_at = manifest.facts.get("built_at", manifest.published_at)
    files.point_at(manifest.generation, *map(datetime.fromisoformat, (manifest.published_at, built_at)))
    log.info("%s: %s was brought", domain.value, manifest.generation)
    # For the status; why documents failed is known where they were read.
    counts = {name: manifest.statistics.get(name, 0) for name in ("documents", "chunks")}
    status = {"checked_at": manifest.published_at, "latest": {"generation": manifest.generation, **counts}}
    write_whole(domain_folder(settings, domain) / STATUS, json.dumps(status))
    storage = settings.domains[domain].storage
    files.prune(storage.keep_generations, storage.keep)
    _remove_forbidden(files, pointer)


def _go_on(stopping: threading.Event, _: int) -> None:
    if stopping.is_set():
        raise Stopped("is shutting down")


def _remove_forbidden(files: GenerationFiles, pointer: Pointer) -> None:
    """Remove what the publisher has removed because of a document in it that is gone."""
    files.remove([generation for generation in files.all() if number_of(generation) < pointer.oldest])


def _is_here(store: ObjectStore, pointer: Pointer, current: GenerationId | None) -> bool:
    """Tell whether what a pointer names answers already.

    Raises:
        PublicationError: something newer does.
    """
    if current and number_of(current) > pointer.number:
        raise PublicationError(
            f"{store.url}: names gen-{pointer.number:06d} of {pointer.domain.value}, older than {current}, which "
            "answers: a stale answer of the store, or another store under the same address"
        )
    return current is not None and number_of(current) == pointer.number


def _manifest(store: ObjectStore, pointer: Pointer, keys: Collection[str]) -> PublishedManifest:
    """Return the manifest that a pointer names.

    Raises:
        PublicationError: it is not the one that the pointer means.
    """
    stored = store.read(pointer.manifest)
    assert stored is not None
    where = f"{store.url}/{pointer.manifest}"
    if digest_of(stored.content) != pointer.sha256:
        raise PublicationError(f"{where}: is damaged: its SHA-256 is not the one that the pointer names")
    manifest = read_json(PublishedManifest, stored.content, where, keys)
    if (manifest.domain, manifest.number) != (pointer.domain, pointer.number):
        raise PublicationError(f"{where}: is of {manifest.domain.value} {manifest.generation}, not what it should be")
    return manifest
