"""Bring dates and times into UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal


def utc(moment: datetime) -> datetime:
    """Convert a moment to UTC. Without a time zone it counts as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def aware(moment: datetime) -> datetime:
    """Return a moment with its time zone, UTC if it has none."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def iso_moment(stated: object) -> datetime | None:
    """Parse an ISO 8601 date or time, in UTC; ``None`` if it is not one."""
    try:
        return utc(datetime.fromisoformat(stated.strip())) if isinstance(stated, str) else None
    except (ValueError, OverflowError):
        return None


def since_1970(count: str | bytes | float, per_second: int = 1) -> datetime | None:
    """Convert a count of seconds (or parts of them) since 1970 to a moment; ``None`` if it is not a valid time.

    Commits, file systems and documents can contain any number.
    """
    try:
        return datetime.fromtimestamp(float(count) / per_second, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def utc_text(moment: datetime, precision: Literal["auto", "seconds", "microseconds"] = "auto") -> str:
    """Return a moment as ISO 8601 in UTC, ending in ``Z``. With equal precision, texts sort as times do."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
