"""What is left of a deleted document in the object store of ``publish:``: generations that replicas can still take."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from nornweave.config import Settings
from nornweave.core.deletion import Deleted, Place, Search
from nornweave.core.errors import MissingObjectError
from nornweave.core.signatures import signer_of
from nornweave.core.types import Domain
from nornweave.index.generation_file import TEXTS_OF, read_rows
from nornweave.index.object_store import ObjectStore
from nornweave.share.garbage import OBJECTS
from nornweave.share.manifest import Pointer, PublishedManifest, pointer_key, read_document, read_json, to_json

_MAGIC = b"DUCK"  # of a DuckDB file, after its checksum


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
        return bool(read_rows(file, TEXTS_OF, [deleted.source_id, deleted.path]))


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
    needed = set(_needed(store, deleted.domain, pointer))
    for listed in list(store.list(f"domains/{deleted.domain.value}/manifests")):
        if listed.key != pointer.manifest:
            for file in read_document(store, PublishedManifest, listed.key).files:
                if file.key not in needed:
                    store.remove(file.key)
            store.remove(listed.key)
    for listed in list(store.list(OBJECTS)):  # that no manifest names: of uploads that were killed
        if listed.key not in needed and _holds(store, listed.key, deleted):
            store.remove(listed.key)


def _needed(store: ObjectStore, domain: Domain, pointer: Pointer) -> Iterator[str]:
    """Yield the objects of the published generation, and of all generations of other domains."""
    others = [
        listed.key
        for other in Domain
        if other is not domain
        for listed in store.list(f"domains/{other.value}/manifests")
    ]
    for key in (pointer.manifest, *others):
        yield from (file.key for file in read_document(store, PublishedManifest, key).files)
