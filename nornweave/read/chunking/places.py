"""Name the place of a chunk in a document whose text alone does not show it: its page, its cells."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from nornweave.core.types import Section, Span


def page_of(page_starts: Sequence[int], offset: int) -> int | None:
    """Return the page of a character, from 1; ``None`` for a document without pages."""
    return max(1, bisect_right(page_starts, offset)) if page_starts else None


def named_place(sections: Sequence[Section], span: Span) -> str | None:
    """Name the sections that a span touches: ``cell 12``, ``cells 12-15``; ``None`` for a document without any.

    Args:
        sections: tile the text; each heading is a word and a number.
    """
    if not sections:
        return None
    first = max(0, bisect_right(sections, span.start, key=lambda section: section.span.start) - 1)
    end = bisect_left(sections, span.end, key=lambda section: section.span.start)
    start, last = sections[first].heading, sections[max(first, end - 1)].heading
    word, _, number = start.rpartition(" ")
    return start if start == last else f"{word}s {number}-{last.rpartition(' ')[2]}"
