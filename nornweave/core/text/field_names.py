"""How the fields of front matter are called."""

from __future__ import annotations

import re

_BETWEEN_WORDS = re.compile(r"[\s.-]+")


def field_key(name: str) -> str:
    """Return how a field is called, whatever its case and whatever stands between its words: ``last_modified``."""
    return _BETWEEN_WORDS.sub("_", name.strip().lower())
