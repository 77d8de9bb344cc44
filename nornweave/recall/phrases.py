"""Phrases of a vocabulary in a text: found by whole words, replaced by other words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nornweave.recall.vocabulary import WORD, Entry, PhraseIndex


@dataclass(frozen=True, slots=True)
class Match:
    """A phrase of the vocabulary in a text, by characters."""

    start: int
    end: int
    entry: Entry


# What is between quotation marks or back-quotes; an apostrophe inside a word opens nothing.
_QUOTED = re.compile(r"\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]+'(?!\w)")


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Return what stands between quotation marks or back-quotes, which is meant as written."""
    return [match.span() for match in _QUOTED.finditer(text)]


def find_phrases(text: str, index: PhraseIndex, *, quoted: bool = False) -> Iterator[Match]:
    """Find the phrases of an index, the longest at each place, left to right, none over another.

    Args:
        text: of a query.
        index: of the phrases.
        quoted: look between quotation marks too.
    """
    words = list(WORD.finditer(text))
    folded = [word[0].casefold() for word in words]
    protected = [] if quoted else quoted_spans(text)
    position = 0
    while position < len(words):
        length, entry = _longest_at(text, words, folded, position, index)
        if entry and not within(words[position].start(), protected):
            yield Match(words[position].start(), words[position + length - 1].end(), entry)
            position += length
        else:
            position += 1


def _longest_at(
    text: str, words: Sequence[re.Match[str]], folded: Sequence[str], position: int, index: PhraseIndex
) -> tuple[int, Entry | None]:
    first = folded[position]
    longest = max(index.longest.get(first, 0), index.longest.get(_singular(first), 0))
    for length in range(min(longest, len(words) - position), 0, -1):
        last = folded[position + length - 1]
        for ending in (last, _singular(last)):
            entry = index.entries.get((*folded[position : position + length - 1], ending))
            if entry and _adjacent(text, words[position : position + length]) and _spelled(words[position][0], entry):
                return length, entry
    return 1, None


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _adjacent(text: str, words: Sequence[re.Match[str]]) -> bool:
    """Whether only spaces or one hyphen stand between the words."""
    gaps = [text[first.end() : second.start()] for first, second in zip(words, words[1:], strict=False)]
    return all(not gap.strip() or gap in "-‐‑" for gap in gaps)


def _spelled(word: str, entry: Entry) -> bool:
    return entry.capitals is None or word in {entry.capitals, f"{entry.capitals}s"}


def within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a place is in one of the spans."""
    return any(start <= place < end for start, end in spans)


def replace(text: str, replacements: Sequence[tuple[Match, str]]) -> str:
    """Return the text with other words in these places, which come from left to right."""
    pieces: list[str] = []
    done = 0
    for match, replacement in replacements:
        pieces += [text[done : match.start], replacement]
        done = match.end
    return "".join([*pieces, text[done:]])


def arrow(text: str, match: Match, replacement: str) -> str:
    """Say what was replaced by what, for people."""
    return f"{text[match.start : match.end]} → {replacement}"
