"""Align two texts and return the words that only one of them has.

A word is *covered* if it belongs to a run of three words that the other text contains as well. A unit *matches* if most
of its words are covered; the stretches of uncovered words in it are its gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from nornweave.ask.fuse.deduplication.normalized_text import TextReading, Unit
from nornweave.core.text.words import FUNCTION, TURN

# "In substance": so much of what a sentence says may be missing.
MISSING_IN_SENTENCE = 0.2
# A unit of which this share stands in the other text is the same unit, perhaps with other words in some places.
MATCHED_SHARE = 0.5
# So many words in a row are a place in a sentence where other words may stand; more are a statement of their own.
SLOT_WORDS = 3
# A word more inside a sentence of fewer words makes it another sentence ("lists buckets", "lists public buckets").
SHORT_UNIT = 12


@dataclass(slots=True)
class Leftovers:
    """The content words of one text that the other does not have.

    Attributes:
        sentences, words: the number of sentences and words of the text.
        sentences_there: the number of sentences that the other text holds in substance.
        words_there: the number of words in these sentences.
        slots: the words in short gaps (runs of missing words) of matching prose and of first lines of functions.
        turns: the words in any gap of a matching unit that reverse its sense, such as ``not``.
        inner: the words in gaps inside short units, not at either end of the unit.
        alone: the missing words of sentences that do not match, and of long gaps in sentences that match.
        code_differs: whether some line of code matches although words of it are missing.
        code_matches: for each line of code, in order, whether it matches.
        lines: matching line of code → its operators.
    """

    sorts: Mapping[str, int]
    sentences: int = 0
    words: int = 0
    sentences_there: int = 0
    words_there: int = 0
    slots: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    inner: set[str] = field(default_factory=set)
    alone: list[str] = field(default_factory=list)
    code_differs: bool = False
    code_matches: list[bool] = field(default_factory=list)
    lines: dict[tuple[str, ...], str] = field(default_factory=dict)


def leave(text: TextReading, covered: bytes) -> Leftovers:
    """Return the words of a text that the other text does not have, given the result of ``cover``."""
    rest = Leftovers(text.sorts, sentences=len(text.units), words=len(text))
    for unit in text.units:
        there = covered.count(1, unit.start, unit.end)
        matched = there >= MATCHED_SHARE * len(unit)
        if unit.is_code:
            rest.code_matches.append(matched)
            if matched:
                rest.lines[text.forms[unit.start : unit.end]] = unit.operators
        if there == len(unit):
            rest.sentences_there += 1
            rest.words_there += len(unit)
        elif matched:
            _add_gaps(rest, text, unit, covered)
        elif not unit.is_code:
            rest.alone += saying(text, (place for place in range(unit.start, unit.end) if not covered[place]))
    return rest


def cover(text: TextReading, other: TextReading) -> bytes:
    """Return for each word 1 if it belongs to a shingle of ``other``, else 0."""
    found = bytes(map(other.distinct.__contains__, text.shingles))
    words = len(text.forms)
    if words <= 3:
        return found * words
    # A shingle at a place covers that word and the next two: the same bytes, moved on by one and by two places.
    number = int.from_bytes(found + b"\0\0", "big")
    return (number | number >> 8 | number >> 16).to_bytes(words, "big")


def saying(text: TextReading, places: Iterable[int]) -> list[str]:
    """Return the content words among the words at these places."""
    return [form for place in places if text.sorts[form := text.forms[place]] > FUNCTION]


def _add_gaps(rest: Leftovers, text: TextReading, unit: Unit, covered: bytes) -> None:
    code = unit.is_code
    missing: list[str] = []
    for is_covered, places in groupby(range(unit.start, unit.end), covered.__getitem__):
        if is_covered:
            continue
        gap = list(places)
        said = saying(text, gap)
        missing += said
        if code and text.forms[unit.start] != "def":
            rest.code_differs = True
        elif code or len(gap) <= SLOT_WORDS:
            rest.slots += said
        else:
            rest.alone += said
    rest.turns += [form for form in missing if text.sorts[form] == TURN]
    if not code and len(unit) < SHORT_UNIT:
        rest.inner |= {*missing} & {*unit.said[1:-1]}
    if len(missing) <= MISSING_IN_SENTENCE * len(unit.said):
        rest.sentences_there += 1
        rest.words_there += len(unit)
