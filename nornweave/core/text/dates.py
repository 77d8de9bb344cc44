"""Bring dates and times into UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

# Where the chunks of a domain say when they were said or published. When their file changed says nothing about that.
DATED_BY = MappingProxyType({"conversations": "message_timestamp", "research": "publication_date"})


def utc(moment: datetime) -> datetime:
    """Convert a moment to UTC. A moment without a time zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def aware(moment: datetime) -> datetime:
    """Return a moment with a time zone: its own, or UTC if it has none."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def iso_moment(stated: object) -> datetime | None:
    """Return the moment in UTC of an ISO 8601 date or time; ``None`` if the value is neither."""
    try:
        return utc(datetime.fromisoformat(stated.strip())) if isinstance(stated, str) else None
    except (ValueError, OverflowError):
        return None


def dated(domain: str, metadata: Mapping[str, object], updated_at: datetime | None) -> datetime | None:
    """Return when a message or paper was published; in other domains when the source changed; ``None`` if unknown."""
    return iso_moment(metadata.get(DATED_BY[domain])) if domain in DATED_BY else updated_at


def since_1970(count: str | bytes | float, per_second: int = 1) -> datetime | None:
    """Convert a number of seconds since 1970 to a moment; ``None`` if it is not a valid time.

    Commits, file systems and documents can contain any number, also an invalid one.

    Args:
        per_second: how many units of ``count`` are a second: 1,000 for milliseconds.
    """
    try:
        return datetime.fromtimestamp(float(count) / per_second, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def utc_text(moment: datetime, precision: Literal["auto", "seconds", "microseconds"] = "auto") -> str:
    """Return a moment as ISO 8601 in UTC with a final ``Z``. Texts of equal precision sort as their times do."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
