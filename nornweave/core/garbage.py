"""How often Python looks for garbage that refers to itself."""

from __future__ import annotations

import gc

NEW_OBJECTS = 50_000


def collect_rarely() -> None:
    """Let this process look after 50,000 new objects instead of 700.

    What was imported and what is being answered stays, and looking through it takes an eighth of the time in which a
    process starts.
    """
    gc.set_threshold(NEW_OBJECTS, 50, 100)
