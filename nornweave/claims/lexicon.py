"""Word lists and alternatives, written so that people can read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


def words_in(text: str) -> frozenset[str]:
    """Return the words of a list that blank space separates."""
    return frozenset(text.split())


_BLANK = str.maketrans(dict.fromkeys("`\"'()[]{}.,;:!?*_/-–—=<>|", " "))


@lru_cache(maxsize=512)
def tokens_of(text: str) -> frozenset[str]:
    """Return the words of a text as they stand in lower case, parted at blanks and punctuation."""
    return frozenset(text.lower().translate(_BLANK).split())


def holds(text: str, words: Sequence[str]) -> bool:
    """Tell whether any of some strings is in a text: what it costs to ask a pattern is a hundred times that."""
    for word in words:  # noqa: SIM110 - a generator costs more than what it asks
        if word in text:
            return True
    return False


def any_of(*alternatives: str) -> re.Pattern[str]:
    """Compile a pattern that finds any of the alternatives, whatever their case."""
    return re.compile("|".join(alternatives), re.IGNORECASE)
