"""Settings of where published generations are copied to, so that other machines serve them."""

from __future__ import annotations

from pydantic import Field

from nornweave.config.object_store import ObjectStoreSettings


class PublishSettings(ObjectStoreSettings):
    """Where published generations are copied to."""

    keep_generations: int = Field(3, ge=1, le=100)
    """How many generations of a domain stay in the store."""
    grace_hours: float = Field(24.0, ge=0, le=8_760)
    """What no kept generation needs is removed once it is so old; a reader that is slower starts over."""
