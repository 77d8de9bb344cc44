"""Match names in capitals with their initials: "Web Content Accessibility Guidelines", ``WCAG``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.analyzer import FUNCTION_WORDS

# Three words at least: two letters are said of too many things.
_FEWEST_WORDS = 3

_SMALL = r"(?:(?:a|and|at|by|for|in|of|on|or|the|to|with) ){0,2}"
_CAPITALISED = r"[A-Z][a-z][\w-]{0,40}(?![\w-])"
_NAME = re.compile(rf"(?<![\w-]){_CAPITALISED}(?: {_SMALL}{_CAPITALISED}){{2,9}}")
# The first letter of each word, and of each half of "Multi-Factor".
_INITIAL = re.compile(r"(?<![^\W_])[^\W_]")


@dataclass(frozen=True, slots=True)
class CapitalisedName:
    """A name in a text, by characters; ``initials``: what it may be called, the likeliest first, upper case."""

    start: int
    end: int
    initials: tuple[str, ...]


def capitalised_names(text: str) -> Iterator[CapitalisedName]:
    """Find names of three to ten words that begin with capitals, small words between them not counted.

    A word that only begins the sentence ("The", "How") is no part of the name; one such word further on makes the whole
    a headline and no name. Linear in the length of the text.

    Yields:
        The names from left to right, none over another.
    """
    for match in _NAME.finditer(text):
        words = list(re.finditer(r"\S+", match[0]))
        while words and words[0][0].lower() in FUNCTION_WORDS:
            words.pop(0)
        capitalised = [word[0] for word in words if word[0][0].isupper()]
        if len(capitalised) < _FEWEST_WORDS or any(word.lower() in FUNCTION_WORDS for word in capitalised):
            continue
        start = match.start() + words[0].start()
        letters = _INITIAL.findall(text[start : match.end()])
        forms = ("".join(filter(str.isupper, letters)), "".join(letters).upper())
        yield CapitalisedName(start, match.end(), tuple(dict.fromkeys(forms)))
