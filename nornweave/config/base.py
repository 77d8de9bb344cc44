"""The base class of all settings, and common types of text."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]


def formed(pattern: str, expected: str) -> AfterValidator:
    """Return a validator that matches a text against ``pattern``; its error quotes ``expected``."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(f"{text!r}; expected {expected}")
        return text

    return AfterValidator(check)


class FrozenSettings(BaseModel):
    """Frozen settings that refuse unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
