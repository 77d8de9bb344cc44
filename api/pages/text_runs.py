"""Text as runs that a template prints: matching words are marked, invisible characters made visible.

A template escapes every run; nothing here makes markup.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from nornweave.core.text.analyzer import FUNCTION_TERMS, analyze, occurrences

HIT, UNSEEN = "hit", "unseen"
# A cut that leaves out less than this takes the room of what it leaves out.
MIN_CUT = 3
CITE = "cite"
"""The style of a link to a passage."""
# Control characters, marks that change the direction of text, zero-width characters, tag characters. The joiners
# U+200C and U+200D stay: Persian and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


class TextRun(NamedTuple):
    """A piece of text.

    Attributes:
        kind: ``hit``, ``unseen`` (an invisible character), or a kind of token of code; empty for other text.
        style: ``strong``, ``em``, ``del`` or ``code`` of markup; ``cite`` for a link to a passage; else empty.
        href: the address of a link that may be followed; empty if the text is no link.
    """

    text: str
    kind: str = ""
    style: str = ""
    href: str = ""


class Mark(NamedTuple):
    """A part of a text that is of one kind."""

    start: int
    end: int
    kind: str


def query_terms_of(text: str) -> frozenset[str]:
    """Return the terms of a question to mark in results. Function words count only if there are no others."""
    terms = frozenset(analyze(text))
    return (terms - FUNCTION_TERMS) or terms


def hits(text: str, terms: Collection[str]) -> list[Mark]:
    """Return where the terms occur in a text, in order and without overlaps. Words are compared by their stems."""
    found: list[Mark] = []
    for term, start, end in occurrences(text) if terms else ():
        if term in terms and (not found or start >= found[-1].end):
            found.append(Mark(start, end, HIT))
    return found


def runs_of(text: str, marks: Iterable[Mark] = ()) -> tuple[TextRun, ...]:
    """Return a text, split at marks that are in order and do not overlap. Invisible characters become ``U+202E``."""
    return tuple(_runs(text, marks))


def highlighted(text: str, terms: Collection[str]) -> tuple[TextRun, ...]:
    """Return a text as runs, with the words of a question marked."""
    return runs_of(text, hits(text, terms))


def marked_code(lines: Sequence[str], colours: Sequence[Mark], terms: Collection[str]) -> Iterator[tuple[TextRun, ...]]:
    """Yield the runs of each line of code, with colours and with matching words on top of them."""
    at = start = 0
    for line in lines:
        end = start + len(line)
        within: list[Mark] = []
        while at < len(colours) and colours[at].start <= end:
            colour = colours[at]
            if colour.end > start:
                within.append(Mark(max(0, colour.start - start), min(len(line), colour.end - start), colour.kind))
            if colour.end > end:
                break
            at += 1
        yield runs_of(line, _over(within, hits(line, terms)))
        start = end + 1


def _over(marks: Sequence[Mark], above: Sequence[Mark]) -> list[Mark]:
    """Return ``marks`` and ``above``, in order. Parts of ``marks`` that overlap ``above`` are cut away."""
    cut: list[Mark] = []
    for mark in marks:
        start = mark.start
        for other in above:
            if other.end > start and other.start < mark.end:
                cut.append(Mark(start, max(start, other.start), mark.kind))
                start = other.end
        cut.append(Mark(start, max(start, mark.end), mark.kind))
    return sorted([mark for mark in cut if mark.end > mark.start] + list(above))


def _runs(text: str, marks: Iterable[Mark]) -> Iterator[TextRun]:
    at = 0
    for mark in marks:
        yield from _visible(text[at : mark.start], "")
        yield from _visible(text[mark.start : mark.end], mark.kind)
        at = mark.end
    yield from _visible(text[at:], "")


def _visible(text: str, kind: str) -> Iterator[TextRun]:
    at = 0
    for found in _UNSEEN.finditer(text):
        if found.start() > at:
            yield TextRun(text[at : found.start()], kind)
        yield TextRun(f"U+{ord(found[0]):04X}", UNSEEN)
        at = found.end()
    if at < len(text):
        yield TextRun(text[at:], kind)


def window(pieces: Sequence[Sequence[TextRun]], limit: int) -> range:
    """Return the range of ``limit`` pieces with the most different matches; all if only a few more exist.

    The beginning counts a little more.
    """
    limit = len(pieces) if len(pieces) < limit + MIN_CUT else limit
    words = [{run.text.lower() for run in runs if run.kind == HIT} for runs in pieces]
    starts = range(max(1, len(pieces) - limit + 1))
    start = max(starts, key=lambda start: (len(set().union(*words[start : start + limit])) + (start == 0) / 2, -start))
    return range(start, min(start + limit, len(pieces)))
