"""Find and remove a deleted document's remains in the object store."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

from nornweave.carry.object_store import ObjectStore
from nornweave.carry.parts import StoredFile, fetch, parts_of, prefix_of, remove_unnamed
from nornweave.carry.publication import Publication, PublishedCommit, read_state
from nornweave.config import Settings
from nornweave.core.deletion import Deleted, Place, Search
from nornweave.core.signatures import signer_of
from nornweave.index.searching.generation_file import TEXTS_OF, DataFile, read_rows

_MAGIC = b"DUCK"  # of a DuckDB file, after its checksum


def store_places(settings: Settings) -> list[Place]:
    """Return the object store as a place to search for deleted documents; empty if this workspace has none."""
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
    """Search every file of the domain in the store for remains of a document. Return how many were found, and where.

    Objects that no commit names count as remains, too.
    """
    state = Publication(store, deleted.domain.value).state()
    commit = read_state(PublishedCommit, state, store.url) if state else None
    named = [commit.files, *(each.files for each in commit.replaced)] if commit else []
    distinct = {file.sha256: (name, file) for files in named for name, file in files.items()}
    holding = [name for name, file in distinct.values() if _holds(store, file, deleted)]
    parts = {each.key for each in store.list(prefix_of(deleted.domain.value)) if not each.key.endswith("CURRENT")}
    left = [*holding, *sorted(parts - parts_of(commit.kept_files if commit else ()))]
    return Search(len(left), f"{len(distinct)} files, fetched and opened", tuple(left[:10]))


def _holds(store: ObjectStore, stored: StoredFile, deleted: Deleted) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "object.duckdb"
        fetch(store, stored, file)
        with file.open("rb") as stream:
            is_database = stream.read(12)[8:] == _MAGIC
        if not is_database:
            return deleted.is_in_file(file)
        return bool(read_rows(DataFile(file), TEXTS_OF, [deleted.source_id, deleted.path]))


def _purge(store: ObjectStore, settings: Settings, deleted: Deleted) -> None:
    """Remove all generations of the domain except the published one, from the store and from replicas."""
    claim = Publication(store, deleted.domain.value, signer_of(settings.data_dir))
    if not (state := claim.take()):  # nothing of the domain was published there yet
        return
    commit = read_state(PublishedCommit, state, store.url)
    forbidding = {"commit": secrets.token_hex(8), "oldest": commit.number, "replaced": ()}
    commit = commit.model_copy(update=forbidding)
    claim.commit(commit.model_dump(mode="json"))
    remove_unnamed(store, prefix_of(deleted.domain.value), claim.fence, parts_of(commit.kept_files))
