"""Text that people read: foreign text without the characters that nobody sees, numbers with their nouns."""

from __future__ import annotations

import re

_LINE_ENDS = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters, marks that reverse the direction of text, and the tag characters that nobody sees but a model.
UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def legible(text: str) -> str:
    """Return text that can be encoded, its line ends as ``\\n``, without what is not seen."""
    return UNSEEN.sub("", _LINE_ENDS.sub("\n", text.encode("utf-8", "replace").decode()))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
