"""An answer as text in pages, each within a size: what agents read that have little room and can ask for more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nornweave.ask.answer.context_budget import shown_conflicts
from nornweave.ask.answer.snippet import shorten
from nornweave.ask.answer.text_renderer import render_text
from nornweave.ask.fuse.records import Answer, FusedItem
from nornweave.core.text.analyzer import query_terms
from nornweave.core.types import Domain

# Of one item, at first: whole chunks, but nobody's book.
ITEM_CHARACTERS = 6000
# Less of an item says nothing.
LEAST_CHARACTERS = 60
# A conflict with both sides and the reason takes the room of an item; the ledger lists all of them.
CONFLICTS_SHOWN = (4, 2, 1, 0)
# A page is cut by leaving out items, not by cutting sections.
UNCUT_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage:
    """A part of an answer's ranking as text.

    Attributes:
        text: the items with their conflicts and what was not searched, as ``text_renderer`` writes them.
        items: that the text shows, in their order; contents as they are shown.
        start: the place of the first of them in the ranking, from 0.
        left: items of the ranking that come after them.
        conflicts: in which the items take part.
        conflicts_shown: of those, how many the text shows.
    """

    text: str
    items: tuple[FusedItem, ...]
    start: int
    left: int
    conflicts: int
    conflicts_shown: int


def answer_page(answer: Answer, start: int, fits: Callable[[AnswerPage], bool]) -> AnswerPage:
    """Return the page of an answer that begins at an item.

    Args:
        answer: the whole of it; long enough for several pages.
        start: the place of the first item, from 0.
        fits: tells whether a page is small enough; a page with fewer items of the same answer is smaller.

    Returns:
        The page with the most items that fits. Where not one whole item fits, that item is shortened, and conflicts are
        left out; the last resort is a page that does not fit, with one item of ``LEAST_CHARACTERS``.
    """
    characters = ITEM_CHARACTERS
    while True:
        items = _shortened(answer, start, characters)
        for conflicts in CONFLICTS_SHOWN:
            page = _most(answer, start, items, conflicts, fits)
            if page.items or not items:
                return page
        if characters == LEAST_CHARACTERS:
            return _page(answer, start, items[:1], 0)
        characters = max(LEAST_CHARACTERS, characters // 2)


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to ``most`` that fits, 0 if none does; whatever is below one that fits, fits."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def snippet(item: FusedItem, query: str, max_characters: int) -> str:
    """Return the part of an item's text that is most relevant to a query."""
    is_code = item.domain == Domain.CODE
    return shorten(item.content, query_terms(query), max_characters, is_code=is_code)


def _shortened(answer: Answer, start: int, characters: int) -> tuple[FusedItem, ...]:
    parts = ((item, snippet(item, answer.question.text, characters)) for item in answer.items[start:])
    return tuple(item if part == item.content else replace(item, shown=part) for item, part in parts)


def _most(
    answer: Answer, start: int, items: tuple[FusedItem, ...], conflicts: int, fits: Callable[[AnswerPage], bool]
) -> AnswerPage:
    count = largest(len(items), lambda number: fits(_page(answer, start, items[:number], conflicts)))
    return _page(answer, start, items[:count], conflicts)


def _page(answer: Answer, start: int, items: tuple[FusedItem, ...], most_conflicts: int) -> AnswerPage:
    shown, conflicts = shown_conflicts(items, answer.conflicts)
    kept = conflicts[:most_conflicts]
    text = render_text(
        shown,
        conflicts=kept,
        coverage_gaps=answer.recalled.coverage_gaps,
        doubt="" if start else answer.answerable.words,
        max_chars_per_source=UNCUT_CHARACTERS,
    )
    return AnswerPage(
        text=text,
        items=items,
        start=start,
        left=max(0, len(answer.items) - start - len(items)),
        conflicts=len(conflicts),
        conflicts_shown=len(kept),
    )
