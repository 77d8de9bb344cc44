"""A token bucket per API key. The bucket lives in Redis; this is the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace

RATE_LIMIT_PER_MINUTE = 60
SANDBOX_RATE_LIMIT_PER_MINUTE = 20
BURST = 15


@dataclass(frozen=True)
class Bucket:
    """Tokens left and when they were counted."""

    tokens: float
    updated_at: float


def limit_for(api_key: str) -> int:
    """Return the requests per minute of a key; test keys work against the sandbox and get less."""
    return SANDBOX_RATE_LIMIT_PER_MINUTE if api_key.startswith("sk_test_") else RATE_LIMIT_PER_MINUTE


def take(bucket: Bucket, now: float, per_minute: int) -> tuple[Bucket, float]:
    """Take one token.

    Returns:
        The bucket afterwards, and the seconds to wait: 0 when the request may pass, else what goes into ``Retry-After``.
    """
    rate = per_minute / 60.0
    refilled = min(float(BURST), bucket.tokens + (now - bucket.updated_at) * rate)
    if refilled >= 1.0:
        return Bucket(refilled - 1.0, now), 0.0
    return replace(bucket, tokens=refilled, updated_at=now), (1.0 - refilled) / rate
