"""The sources of a workspace and how each of them is, as JSON."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.ask.views.status import status_document
from nornweave.config import Settings
from nornweave.config.sources import SourceSettings
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain
from nornweave.index.wiring import store_of


class ConfiguredSource(TypedDict):
    """A source of ``nornweave.yaml``, and what its domain's last sync said of it."""

    id: str
    domain: str
    type: str
    location: Annotated[
        str, Field(description="path (relative to the file where it is below its folder), address, repository or site")
    ]
    access: Annotated[list[str], Field(description="groups of which a reader needs one; empty for everybody")]
    state: Annotated[
        str, Field(description="`ok`, `held` removals, `unavailable`, or `empty`: nothing of it is indexed")
    ]
    reason: Annotated[str | None, Field(description="why it is unavailable, or its domain cannot be read")]
    held: Annotated[int, Field(description="removals that wait for a person")]


class RemovedSource(TypedDict):
    """A source that was taken out of the file."""

    id: str
    status: Literal["REMOVED"]


class SourcesDocument(TypedDict):
    """All sources, in the order of the file."""

    sources: list[ConfiguredSource]


def sources_document(settings: Settings) -> SourcesDocument:
    """Return all sources with how they are."""
    look = _Look(settings)
    return {"sources": [look.document(source) for source in settings.sources]}


def source_document(settings: Settings, source: SourceSettings) -> ConfiguredSource:
    """Return one source with how it is."""
    return _Look(settings).document(source)


class _Look:
    """One look at the sources: what belongs to a domain is read once, and only if a source of it needs it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._status = cache(partial(status_document, settings))
        self._indexed = cache(partial(_indexed_sources, settings))

    def document(self, source: SourceSettings) -> ConfiguredSource:
        """Return one source with how it is."""
        held: list[str] = []
        try:
            status = self._status(source.domain)
            held = [path for each in status["held"] if each["source_id"] == source.id for path in each["paths"]]
            reason = status["unavailable"].get(source.id)
            if reason or held:
                state = "unavailable" if reason else "held"
            else:
                state = "ok" if source.id in self._indexed(source.domain) else "empty"
        except StoreError as error:
            state, reason = "unavailable", str(error)
        places = (getattr(source, key) for key in source.place_keys)
        return {
            "id": source.id,
            "domain": source.domain.value,
            "type": source.type,
            "location": _shown(next((place for place in places if place), ""), self._settings.file.parent),
            "access": sorted(source.access),
            "state": state,
            "reason": reason,
            "held": len(held),
        }


def _shown(place: object, folder: Path) -> str:
    """Return a place for people; a path below the folder of the configuration relative to that."""
    is_below = isinstance(place, Path) and place.is_relative_to(folder)
    return str(place.relative_to(folder) if isinstance(place, Path) and is_below else place)


def _indexed_sources(settings: Settings, domain: Domain) -> frozenset[str]:
    """Return the ids of the sources of which a document is published."""
    store = store_of(settings, domain)
    generation = store.current()
    if generation is None:
        return frozenset()
    with store.files.open(generation) as index:
        first = (index.served_documents((source.id, ""), 1) for source in settings.sources_of(domain))
        return frozenset(document.source_id for documents in first for document in documents)
