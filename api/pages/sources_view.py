"""The sources as their table shows them, and the form that adds one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.pages.addresses import original
from api.pages.catalogue import DomainChoice
from api.pages.citations import age_of
from api.pages.conflict_view import sentence
from nornweave.ask.views.sources import ConfiguredSource
from nornweave.ask.views.status import StatusDocument
from nornweave.core.text.legible import counted
from nornweave.core.types import JsonValue, Listing

KINDS = ("files", "git", "web", "feed", "slack", "github", "transcripts", "messages", "stackexchange")
"""What the form offers; sources that need a secret are written into the file by hand."""

PREVIEWED = 20
"""Paths of a source that may be added, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A source, how much of it answers, and how fresh it is.

    Attributes:
        passages: that are published; 0 for none.
        listed: how long ago it last named all of its documents; empty for never.
        verified: how long ago it last confirmed what is published.
        bound: when a change there counts.
        failed: documents that could not be read.
        held: removals that wait for a person.
        href: its address, if one may go there.
    """

    source_id: str
    domain: str
    kind: str
    location: str
    href: str
    state: str
    reason: str
    passages: int
    listed: str
    verified: str
    bound: str
    failed: int
    held: int


def sources_view(
    sources: Sequence[ConfiguredSource],
    status: Mapping[str, StatusDocument],
    catalogue: Sequence[DomainChoice],
    now: datetime,
) -> tuple[SourceView, ...]:
    """Return the rows of the table, in the order of the file; sources of domains that are not served are left out."""
    passages = {
        (choice.domain, value): count
        for choice in catalogue
        for each in choice.filters
        if each.key == "source"
        for value, count in each.values
    }
    return tuple(
        _row(source, status[source["domain"]], passages, now) for source in sources if source["domain"] in status
    )


def _row(
    source: ConfiguredSource, status: StatusDocument, passages: Mapping[tuple[str, str], int], now: datetime
) -> SourceView:
    fresh = status["sources"].get(source["id"])
    return SourceView(
        source_id=source["id"],
        domain=source["domain"],
        kind=source["type"],
        location=source["location"],
        href=original(source["location"]) or "",
        state={"empty": "not synced yet"}.get(source["state"], source["state"]),
        reason=source["reason"] or "",
        passages=passages.get((source["domain"], source["id"]), 0),
        listed=age_of(fresh["listed_at"], now) if fresh else "",
        verified=age_of(fresh["verified_at"], now) if fresh else "",
        bound=fresh["bound"] if fresh else "",
        failed=sum(failure.get("source_id") == source["id"] for failure in status["failed"]),
        held=source["held"],
    )


def preview_words(listing: Listing | None) -> tuple[str, tuple[str, ...]]:
    """Say what a source names that may be added: a sentence, and the first paths."""
    if listing is None:
        return "It answers. What it holds is known once it is synced.", ()
    count, left_out = len(listing.entries), len(listing.skipped)
    if listing.problem:
        return f"{sentence(listing.problem)}.", ()
    said = f"A sync would read {counted(count, 'document')}" if count else "It names no document that this kind reads"
    rest = f"; {left_out:,} are left out" if left_out else ""
    return f"{said}{rest}.", tuple(entry.path for entry in listing.entries[:PREVIEWED])


def source_keys(fields: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the keys of the source that a form describes: a place with ``://`` is an address, another one a path."""
    place = fields.get("place", "").strip()
    keys = {name: fields.get(name, "").strip() for name in ("id", "domain", "type")}
    return {**keys, "url" if "://" in place else "path": place}
