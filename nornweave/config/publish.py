"""Settings of where published generations are copied to, so that other machines serve them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from nornweave.config.object_store import ObjectStoreSettings
from nornweave.core.signatures import public_key


def _checked_key(text: str) -> str:
    public_key(text)
    return text


PublicKey = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^ed25519:[A-Za-z0-9+/=]{44}$"), AfterValidator(_checked_key)
]


class PublishSettings(ObjectStoreSettings):
    """Where published generations are copied to."""

    keep_generations: int = Field(3, ge=1, le=100)
    """How many generations of a domain stay in the store."""
    public_keys: tuple[PublicKey, ...] = ()
    """Of a replica: what the store says counts only if one of these keys has signed it; any counts without."""
    grace_hours: float = Field(24.0, ge=0, le=8_760)
    """What no kept generation needs is removed once it is so old; a reader that is slower starts over."""
