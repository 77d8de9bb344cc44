"""Look for what keeps NornWeave from working, and say what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One thing that was looked at.

    Attributes:
        check: what kind of thing: ``configuration``, ``disk``, ``source``, …
        level: ``error`` for what does not work, ``warning`` for what may stop working or is left undone.
        remedy: what to do about it; empty where nothing is to be done.
    """

    check: str
    subject: str
    level: Level
    text: str
    remedy: str = ""
