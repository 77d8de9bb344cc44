"""The sources of a workspace and how each of them is, as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.ask.views.status import status_document
from nornweave.config import Settings
from nornweave.config.sources import SourceSettings
from nornweave.core.errors import StoreError
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
    return {"sources": [source_document(settings, source) for source in settings.sources]}


def source_document(settings: Settings, source: SourceSettings) -> ConfiguredSource:
    """Return one source with how it is."""
    held: list[str] = []
    try:
        status = status_document(settings, source.domain)
        held = [path for each in status["held"] if each["source_id"] == source.id for path in each["paths"]]
        reason = status["unavailable"].get(source.id)
        state = "unavailable" if reason else "held" if held else "ok" if _is_indexed(settings, source) else "empty"
    except StoreError as error:
        state, reason = "unavailable", str(error)
    places = (getattr(source, key) for key in source.place_keys)
    return {
        "id": source.id,
        "domain": source.domain.value,
        "type": source.type,
        "location": _shown(next((place for place in places if place), ""), settings.file.parent),
        "access": sorted(source.access),
        "state": state,
        "reason": reason,
        "held": len(held),
    }


def _shown(place: object, folder: Path) -> str:
    """Return a place for people; a path below the folder of the configuration relative to that."""
    is_below = isinstance(place, Path) and place.is_relative_to(folder)
    return str(place.relative_to(folder) if isinstance(place, Path) and is_below else place)


def _is_indexed(settings: Settings, source: SourceSettings) -> bool:
    """Tell whether a document of a source is published."""
    store = store_of(settings, source.domain)
    generation = store.current()
    if generation is None:
        return False
    with store.files.open(generation) as index:
        return any(each.source_id == source.id for each in index.served_documents((source.id, ""), 1))
