"""Settings, read once at start. Anything that a merchant can notice is documented in docs/limits.md."""

from __future__ import annotations

import os
from dataclasses import dataclass

DEFAULT_CURRENCY = "EUR"
SUPPORTED_CURRENCIES = frozenset({"EUR", "USD", "GBP", "JPY", "SEK"})
NETWORK_CONNECT_TIMEOUT_SECONDS = 3
NETWORK_READ_TIMEOUT_SECONDS = 30
LEDGER_URL = "http://ledger.internal:7070"


@dataclass(frozen=True)
class Settings:
    """What differs between the environments."""

    environment: str
    redis_url: str
    ledger_url: str
    api_key_pepper: bytes
    three_d_secure: bool


def load() -> Settings:
    """Read the environment; a missing secret stops the start, a missing switch takes its default."""
    return Settings(
        environment=os.environ.get("HERON_ENV", "development"),
        redis_url=os.environ["HERON_REDIS_URL"],
        ledger_url=os.environ.get("HERON_LEDGER_URL", LEDGER_URL),
        api_key_pepper=bytes.fromhex(os.environ["HERON_KEY_PEPPER"]),
        three_d_secure=os.environ.get("HERON_3DS", "off") == "on",
    )
