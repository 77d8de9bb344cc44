"""The base class of all settings."""

from __future__ import annotations

import re

from pydantic import AfterValidator, BaseModel, ConfigDict


def formed(pattern: str, expected: str) -> AfterValidator:
    """Return a check of the form of a text; ``expected`` says to people what it should be."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(f"{text!r}; expected {expected}")
        return text

    return AfterValidator(check)


class FrozenSettings(BaseModel):
    """Frozen settings that refuse unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
