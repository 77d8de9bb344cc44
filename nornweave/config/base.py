"""The base class of all settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenSettings(BaseModel):
    """Frozen settings that refuse unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
