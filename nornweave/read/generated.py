"""Recognise source code that a program generated."""

from __future__ import annotations

import re

# A comment near the top that says so: Go's convention, protoc's, Meta's @generated and their many cousins.
_GENERATED_MARK = re.compile(
    r"^[ \t]*(?:#|//|/\*|\*|--|;|<!--|%)(?=[^\n]*(?:@generated\b|generated\b[^\n]*\bdo not (?:edit|modify)\b))",
    re.IGNORECASE | re.MULTILINE,
)
_MARK_LINES = 10
_MARK_CHARACTERS = 4_000


def is_generated(text: str) -> bool:
    """Say whether a comment in the first lines declares source code to be generated."""
    head = "\n".join(text[:_MARK_CHARACTERS].split("\n")[:_MARK_LINES])
    return _GENERATED_MARK.search(head) is not None
