"""What all settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenSettings(BaseModel):
    """Cannot be changed, and knows every key that may stand there."""

    model_config = ConfigDict(frozen=True, extra="forbid")
