"""Text for people: invisible characters, lines, names of fields, numbers with their nouns."""

from __future__ import annotations

import re

LINE_ENDS = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters, marks that reverse the direction of text, and the tag characters that nobody sees but a model.
UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")

# Unicode's default ignorable code points, except those above, joiners and variation selectors.
JOINERS = "\u200c\u200d\ufe0e\ufe0f"
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


def legible(text: str) -> str:
    """Return foreign text without invisible characters or lone surrogates; its line ends are ``\\n``."""
    return UNSEEN.sub("", LINE_ENDS.sub("\n", text.encode("utf-8", "replace").decode()))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_BETWEEN_WORDS = re.compile(r"[\s.-]+")


def field_key(name: str) -> str:
    """Return the name of a front matter field in the form for comparison: lower case, ``_`` between words."""
    return _BETWEEN_WORDS.sub("_", name.strip().lower())


def lines_of(text: str) -> list[str]:
    """Split a text into lines, without their ends, as ``spans.line_starts`` counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
