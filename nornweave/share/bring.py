"""Bring the generation that a pointer names, and point readers at it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Collection
from datetime import datetime
from functools import partial

from nornweave.config import Settings
from nornweave.core.errors import PublicationError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.types import GenerationId
from nornweave.index.generations.kept import number_of
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.object_store import ObjectStore
from nornweave.index.outcomes import STATUS
from nornweave.index.wiring import domain_folder, store_of
from nornweave.share.download import download
from nornweave.share.manifest import Pointer, PublishedManifest, digest_of, read_json

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
