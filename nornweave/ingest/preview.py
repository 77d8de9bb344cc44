"""Say what a sync would read and remove, without storing anything in the index."""

from __future__ import annotations

from typing import Any

from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.index.port import Stored
from nornweave.ingest.diff import Changes, Look
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import Progress, SyncOptions
from nornweave.ingest.wiring import domain_parts


def preview(settings: Settings, domain: Domain, options: SyncOptions, progress: Progress) -> Changes:
    """List a domain's sources and compare them with what is stored.

    What a remote source has changed is read into its mirror, as by a sync; nothing is indexed, removed or published.

    Raises:
        DomainBusyError: another process is writing the domain.
        EncoderError: the model cannot be used; documents depend on its tokenizer.
    """
    parts = domain_parts(settings, domain)
    with DomainSync(parts, options, progress, confirm=lambda *_: False) as sync:
        return sync.list_changes()


def preview_as_json(changes: Changes) -> dict[str, Any]:
    """Return what would be done, as JSON; documents by source, then path."""
    return {
        "read": [{"source_id": look.source_id, "path": look.entry.path, "why": why(look)} for look in changes.looks],
        "removed": [_place(stored) for stored in changes.removed],
        "held": [{"source_id": held.source_id, "reason": held.reason, "paths": held.paths} for held in changes.held],
        "unavailable": dict(changes.unavailable),
        "unchanged": changes.unchanged,
    }


def why(look: Look) -> str:
    """Say why a document would be read."""
    if look.stored is None:
        return "new"
    if look.stored.outcome == "transient":
        return "could not be read before"
    return "changed" if look.stored.gate != look.entry.gate else "read by another version"


def _place(stored: Stored) -> dict[str, str]:
    return {"source_id": stored.source_id, "path": stored.path}
