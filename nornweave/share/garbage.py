"""Remove from the object store what no kept generation needs, once it is older than the grace period.

What is needed is found by following manifests back from the pointers, never by a listing: a listing may be old. A
listing only says what there is to remove. Everything young stays, so that an upload that has not set its pointer yet
loses nothing; ages go by the store's clock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from nornweave.config.publish import PublishSettings
from nornweave.core.errors import MissingObjectError, PublicationError
from nornweave.core.types import Domain
from nornweave.index.object_store import ObjectStore
from nornweave.share.manifest import D, Pointer, PublishedManifest, pointer_key, read_document

log = logging.getLogger(__name__)

OBJECTS = "objects/sha256"


def collect_garbage(store: ObjectStore, settings: PublishSettings, domain: Domain) -> int:
    """Remove old manifests of a domain, and objects that no domain needs; return how many went.

    Nothing is removed when anything that counts cannot be read. A failure is logged: the next publication tries again.
    """
    try:
        return _collect(store, settings, domain)
    except PublicationError as error:
        log.warning("%s: what is not needed any more stays in the store: %s", domain.value, error)
        return 0


def _collect(store: ObjectStore, settings: PublishSettings, domain: Domain) -> int:
    pointer = store.look(pointer_key(domain))
    if pointer is None:
        return 0
    before = pointer.modified - timedelta(hours=settings.grace_hours)  # written a moment ago: the store's present
    needed = {key for one in Domain for key in _needed(store, one, settings.keep_generations, before)}
    removed = 0
    for prefix in (f"domains/{domain.value}/manifests", OBJECTS):
        for listed in list(store.list(prefix)):
            if listed.key not in needed and listed.modified < before and _is_still_old(store, listed.key, before):
                store.remove(listed.key)
                removed += 1
    if removed:
        log.info("%s: %d objects that nothing needs were removed from the store", domain.value, removed)
    return removed


def _needed(store: ObjectStore, domain: Domain, keep: int, before: datetime) -> Iterator[str]:
    """Yield the keys of a domain's last manifests, of those replaced within the grace period, and of their objects."""
    pointer = _read(store, Pointer, pointer_key(domain))
    key = pointer.manifest if pointer else None
    kept, replaced_at = 0, before
    while key:
        manifest = _read(store, PublishedManifest, key)
        if manifest is None:  # older ones were removed already
            if not kept:
                raise PublicationError(f"{store.url}/{key}: is gone, and the pointer names it; publish again")
            return
        if kept >= keep and replaced_at < before:
            return
        kept, replaced_at = kept + 1, datetime.fromisoformat(manifest.published_at)
        yield key
        yield from (file.key for file in manifest.files)
        key = manifest.previous


def _read(store: ObjectStore, kind: type[D], key: str) -> D | None:
    try:
        return read_document(store, kind, key)
    except MissingObjectError:
        return None


def _is_still_old(store: ObjectStore, key: str, before: datetime) -> bool:
    there = store.look(key)
    return there is not None and there.modified < before
