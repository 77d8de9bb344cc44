"""Who is calling: API keys, and nothing else."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

# OAuth removed in v3
# The v3 gateway checks API keys only. The token endpoint answers 410 Gone; see docs/changelog.md for the dates.

KEY_PREFIXES = {"sk_live_": "live", "sk_test_": "sandbox"}


@dataclass(frozen=True)
class Caller:
    """A merchant, as far as a request proves it."""

    merchant_id: str
    mode: str
    may_refund: bool


class UnauthorizedError(Exception):
    """The key is missing, malformed, revoked or unknown; the answer is 401 in every case, to give nothing away."""


def key_digest(api_key: str, pepper: bytes) -> str:
    """Return what is stored instead of the key."""
    return hmac.new(pepper, api_key.encode(), hashlib.sha256).hexdigest()


def authenticate(authorization: str | None, keys: dict[str, Caller], pepper: bytes) -> Caller:
    """Return who sent the header ``Authorization: Bearer sk_live_...``.

    Raises:
        UnauthorizedError: for anything else.
    """
    scheme, _, api_key = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not api_key.startswith(tuple(KEY_PREFIXES)):
        raise UnauthorizedError
    try:
        return keys[key_digest(api_key, pepper)]
    except KeyError:
        raise UnauthorizedError from None
