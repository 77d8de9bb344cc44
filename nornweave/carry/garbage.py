"""What leaves the object store: what no kept generation needs, and what is left of a deleted document.

What is needed is found by following manifests back from the pointers, never by a listing: a listing may be old. A
listing only says what there is to remove. Everything young stays, so that an upload that has not set its pointer yet
loses nothing; ages go by the store's clock.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from nornweave.carry.manifest import D, Pointer, PublishedManifest, pointer_key, read_document, read_json, to_json
from nornweave.carry.object_store import ObjectStore
from nornweave.config import Settings
from nornweave.config.publish import PublishSettings
from nornweave.core.deletion import Deleted, Place, Search
from nornweave.core.errors import MissingObjectError, PublicationError
from nornweave.core.signatures import signer_of
from nornweave.core.types import Domain
from nornweave.index.searching.generation_file import TEXTS_OF, DataFile, read_rows

_MAGIC = b"DUCK"  # of a DuckDB file, after its checksum
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


def store_places(settings: Settings) -> list[Place]:
    """Return the object store, if this workspace publishes to one."""
    if settings.publish is None:
        return []
    store = ObjectStore(settings.publish)
    return [
        Place(
            name=f"generations in {store.url}",
            search=lambda deleted: _search(store, deleted),
            purge=lambda deleted: _purge(store, settings, deleted),
            remedy="`nornweave receipt --purge` removes it, after `nornweave publish` where that failed",
        )
    ]


def _search(store: ObjectStore, deleted: Deleted) -> Search:
    """Fetch every object and look into it."""
    objects = [each.key for each in store.list(OBJECTS)]
    holding = [key for key in objects if _holds(store, key, deleted)]
    return Search(len(holding), f"{len(objects)} objects, fetched and opened", tuple(holding[:10]))


def _holds(store: ObjectStore, key: str, deleted: Deleted) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "object.duckdb"
        store.fetch(key, file)
        with file.open("rb") as stream:
            is_database = stream.read(12)[8:] == _MAGIC
        if not is_database:
            return deleted.is_in_file(file)
        return bool(read_rows(DataFile(file), TEXTS_OF, [deleted.source_id, deleted.path]))


def _purge(store: ObjectStore, settings: Settings, deleted: Deleted) -> None:
    """Remove all generations of the domain but the published one, and let replicas remove theirs."""
    key = pointer_key(deleted.domain)
    try:
        stored = store.read(key)
    except MissingObjectError:  # nothing of the domain was published there yet
        return
    assert stored is not None
    pointer = read_json(Pointer, stored.content, f"{store.url}/{key}")
    if pointer.oldest < pointer.number:
        forbidding = pointer.model_copy(update={"oldest": pointer.number})
        store.replace(key, to_json(forbidding, signer_of(settings.data_dir)), stored.tag)
    needed = set(_still_needed(store, deleted.domain, pointer))
    for listed in list(store.list(f"domains/{deleted.domain.value}/manifests")):
        if listed.key != pointer.manifest:
            for file in read_document(store, PublishedManifest, listed.key).files:
                if file.key not in needed:
                    store.remove(file.key)
            store.remove(listed.key)
    for listed in list(store.list(OBJECTS)):  # that no manifest names: of uploads that were killed
        if listed.key not in needed and _holds(store, listed.key, deleted):
            store.remove(listed.key)


def _still_needed(store: ObjectStore, domain: Domain, pointer: Pointer) -> Iterator[str]:
    """Yield the objects of the published generation, and of all generations of other domains."""
    others = [
        listed.key
        for other in Domain
        if other is not domain
        for listed in store.list(f"domains/{other.value}/manifests")
    ]
    for key in (pointer.manifest, *others):
        yield from (file.key for file in read_document(store, PublishedManifest, key).files)
