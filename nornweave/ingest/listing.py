"""List the sources of a domain, and find out when they last confirmed their documents.

A source that cannot be listed leaves its documents as they are.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial

from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.connect.protocol import Source
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.text.dates import utc_text
from nornweave.core.types import GenerationId, Listing, Skip
from nornweave.index.outcomes import Verified, VerifiedSource
from nornweave.index.port import Failure
from nornweave.ingest.diff import Unavailable
from nornweave.ingest.records import Progress, SyncOptions

SOURCES_AT_ONCE = 8

logger = logging.getLogger(__name__)


def list_sources(
    sources: Sequence[Source], options: SyncOptions, progress: Progress
) -> dict[str, Listing | Unavailable]:
    """Return source id → its listing; ``Unavailable(None)`` for a source that the options do not name."""
    if options.listed:
        return {source.id: options.listed.get(source.id, Unavailable(None)) for source in sources}
    wanted = [source for source in sources if not options.sources or source.id in options.sources]
    list_one = partial(_listing, progress=progress, again=options.full)
    with ThreadPoolExecutor(SOURCES_AT_ONCE, thread_name_prefix="listing") as pool:
        # A slow site does not delay the other sources.
        listings = dict(zip((source.id for source in wanted), pool.map(list_one, wanted), strict=True))
    return {source.id: listings.get(source.id, Unavailable(None)) for source in sources}


def skipped_by(listings: Iterable[Listing | Unavailable], unread: Iterable[Failure]) -> tuple[Skip, ...]:
    """Return every path that was skipped during listing or reading, sorted by path."""
    listed = [skip for listing in listings if isinstance(listing, Listing) for skip in listing.skipped]
    read = [Skip(failure.path, failure.reason) for failure in unread]
    return tuple(sorted([*listed, *read], key=lambda skip: skip.path))


def _listing(source: Source, *, progress: Progress, again: bool) -> Listing | Unavailable:
    if isinstance(source, MirroredSource):
        if again:
            source.list_everything_again()
        source.watched_by(partial(_show_reading, progress, source.id))
    try:
        listing = source.list()
    except SourceUnavailableError as error:
        logger.info("source %s cannot be listed, its documents stay as they are: %s", source.id, error)
        return Unavailable(str(error))
    if listing.skipped and not listing.entries:
        left_out = f"{listing.skipped[0].path} ({listing.skipped[0].reason})"
        logger.warning("source %s: everything is left out, such as %s", source.id, left_out)
    return listing


def _show_reading(progress: Progress, source_id: str, documents: int, size: int, expected: int | None) -> None:
    progress(f"read {source_id}", size // 1024, 0)
    progress(f"list {source_id}", documents, expected or 0)


def verified_by(
    listings: Mapping[str, Listing | Unavailable],
    before: Verified,
    generation: GenerationId | None,
    listed_from: datetime,
    *,
    unconfirmed: Collection[tuple[str, str]],
) -> Verified:
    """Return when the sources confirmed the documents of a generation.

    Args:
        listings: source id → its listing. A source that could not be listed keeps its earlier confirmations.
        before: the result of the last sync.
        generation: the published generation; ``None`` if nothing is published.
        listed_from: when the sync began to list the sources.
        unconfirmed: source id and path of each document that its source no longer lists, or whose new version could not
            be read. These documents keep their earlier confirmation.
    """
    sources = {}
    for source_id, listing in listings.items():
        known = before.sources.get(source_id, VerifiedSource())
        if isinstance(listing, Unavailable):
            sources[source_id] = known
            continue
        now = utc_text(listed_from, "seconds")
        moments: dict[str, str | None] = {
            entry.path: utc_text(entry.verified_at, "seconds") if entry.verified_at else now
            for entry in listing.entries
        }
        moments |= {path: known.of(path) for source, path in unconfirmed if source == source_id}
        if listing.within:  # it says nothing of other documents
            documents = {**known.documents, **moments}
            sources[source_id] = replace(known, documents=documents, commit=listing.commit or known.commit)
            continue
        counted = Counter(moments.values()).most_common(1)
        usual = counted[0][0] if counted else now
        listed_at = utc_text(listing.listed_at, "seconds") if listing.listed_at else now
        sources[source_id] = VerifiedSource(
            listed_at=known.listed_at if listing.problem and not listing.listed_at else listed_at,
            verified_at=usual,
            documents={path: moment for path, moment in moments.items() if moment != usual},
            commit=listing.commit,
        )
    return Verified(generation, sources)
