"""The status of a domain as ``nornweave status`` and the page show it."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.index.outcomes import read_status
from nornweave.index.wiring import domain_folder, store_of
from nornweave.share.publishing import copied


class CopyDocument(TypedDict):
    """What the object store has of a domain, and why it does not have more."""

    url: str
    number: int | None
    generation: str | None
    at: str | None
    problem: str | None


class StatusDocument(TypedDict):
    """The generations of a domain, and what its last syncs reported."""

    generation: str | None
    generations: list[str]
    checked_at: str | None
    documents: int
    chunks: int
    failed: list[dict[str, Any]]
    held: list[dict[str, Any]]
    unavailable: dict[str, str]
    skipped: list[dict[str, Any]]
    skip_reasons: dict[str, int]
    runs: list[dict[str, Any]]
    copy: CopyDocument | None


def status_document(settings: Settings, domain: Domain) -> StatusDocument:
    """Return the status of one domain.

    Raises:
        StoreError: the pointer to the published generation cannot be read.
    """
    store = store_of(settings, domain)
    recorded = read_status(domain_folder(settings, domain))
    latest = recorded.get("latest", {})
    return {
        "generation": store.current(),
        "generations": list(store.generations()),
        "checked_at": recorded.get("checked_at"),
        "documents": latest.get("documents", 0),
        "chunks": latest.get("chunks", 0),
        "failed": latest.get("failed", []),
        "held": latest.get("held", []),
        "unavailable": latest.get("unavailable", {}),
        "skipped": latest.get("skipped", []),
        "skip_reasons": latest.get("skip_reasons", {}),
        "runs": recorded.get("runs", []),
        "copy": copy_document(settings, domain),
    }


def copy_document(settings: Settings, domain: Domain) -> CopyDocument | None:
    """Return what was copied to the object store; ``None`` where no store is configured."""
    if settings.publish is None:
        return None
    noted = copied(settings, domain)
    return {
        "url": settings.publish.url,
        "number": noted.number or None if noted else None,
        "generation": noted.built_as if noted else None,
        "at": noted.at if noted else None,
        "problem": noted.problem if noted else None,
    }
