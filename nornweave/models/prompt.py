"""What a language model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NO_MODEL = "no model is named; set fusion.synthesis_model in the configuration, or SYNTHESIS_MODEL"
"""Why no model was asked."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked.

    Attributes:
        messages: ``role`` and ``content`` of each, the system's first.
        allowed: citation as the model is to write it, without brackets → the domain and the chunk that it names.
        mark: what the fences around quoted data consist of.
    """

    messages: tuple[Mapping[str, str], ...]
    allowed: Mapping[str, tuple[str, str]]
    mark: str
