"""What a sentence says, before who says it and how it is meant is known (``prose.py``)."""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.types import ClaimKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a sentence says.

    Attributes:
        start, end: of the value or the phrase that holds it, in the sentence.
        about: phrases that may name the entity, the best first.
        attribute: its name; empty when the phrases of ``about`` have to say.
        event: whether it says when something happened.
    """

    kind: ClaimKind
    attribute: str
    value: str
    start: int
    end: int
    about: tuple[str, ...] = ()
    unit: str | None = None
    event: bool = False
    planned: bool = False
