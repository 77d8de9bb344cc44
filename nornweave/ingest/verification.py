"""What a sync learns of when sources last confirmed their documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime

from nornweave.core.text.dates import utc_text
from nornweave.core.types import GenerationId, Listing
from nornweave.index.verified import Verified, VerifiedSource
from nornweave.ingest.diff import Unavailable


def verified_by(
    listings: Mapping[str, Listing | Unavailable],
    before: Verified,
    generation: GenerationId | None,
    listed_from: datetime,
    *,
    unconfirmed: Collection[tuple[str, str]],
) -> Verified:
    """Return what the sources confirm of a generation.

    Args:
        listings: by source id.
        before: what the last sync left.
        generation: the published one.
        listed_from: when the listing began.
        unconfirmed: source id and path of documents that answer as they were, because no source lists them, or their
            new version could not be read. What was known of them stays.
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
        counted = Counter(moments.values()).most_common(1)
        usual = counted[0][0] if counted else now
        listed_at = utc_text(listing.listed_at, "seconds") if listing.listed_at else now
        sources[source_id] = VerifiedSource(
            listed_at=known.listed_at if listing.problem and not listing.listed_at else listed_at,
            verified_at=usual,
            documents={path: moment for path, moment in moments.items() if moment != usual},
        )
    return Verified(generation, sources)
