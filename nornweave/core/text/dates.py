"""Bring dates and times into UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal


def utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is taken to be UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def aware(moment: datetime) -> datetime:
    """Return a moment with its offset: UTC unless it has one."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def iso_moment(stated: object) -> datetime | None:
    """Read a date or time of ISO 8601, in UTC; ``None`` for what is none."""
    try:
        return utc(datetime.fromisoformat(stated.strip())) if isinstance(stated, str) else None
    except (ValueError, OverflowError):
        return None


def since_1970(count: str | bytes | float, per_second: int = 1) -> datetime | None:
    """Return a moment that is counted in seconds, or in parts of them, from 1970 on; ``None`` for what is none.

    Commits, file systems and documents can claim any number.
    """
    try:
        return datetime.fromtimestamp(float(count) / per_second, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def utc_text(moment: datetime, precision: Literal["auto", "seconds", "microseconds"] = "auto") -> str:
    """Return a moment as ISO 8601 in UTC, ending in ``Z``; with one precision the texts sort as time does."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
