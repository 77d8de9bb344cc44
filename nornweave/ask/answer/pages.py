"""An answer as text in pages of limited size, for agents that have little room and can ask for more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nornweave.ask.answer.context_budget import shown_conflicts
from nornweave.ask.answer.snippet import shorten
from nornweave.ask.answer.text_renderer import SEPARATOR, render_lead, render_numbered
from nornweave.ask.fuse.records import Answer, FusedItem
from nornweave.core.text.analyzer import query_terms
from nornweave.core.types import Domain, Span

# Of one item: whole chunks, but nobody's book; less where that lets so many items on a page.
ITEM_CHARACTERS = (6000, 3000, 1500, 750)
ITEMS_WANTED = 3
USUAL_TOKENS = 1500
"""Of a page, where nobody asked for another size: what a reader needs of an answer stands in its first lines."""
LEAST_FURTHER = 150
"""Of an item after the first one, in characters; where that does not fit, there are fewer."""
# Less of an item says nothing.
LEAST_CHARACTERS = 60
# A conflict with both sides and the reason takes the room of an item; the ledger lists all of them.
CONFLICTS_SHOWN = (4, 2, 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage:
    """A part of an answer's ranking as text.

    Attributes:
        lead: the beginning of the first page: doubts, and the sentences that answer or come nearest.
        body: the conflicts, the items, and the gaps, as ``text_renderer`` writes them.
        items: the shown items in order, with their shown contents.
        cited: number in the text → item, for shown and only quoted items; numbers are places in the ranking, from 1.
        start: the place of the page's first item in the ranking, from 0.
        left: the number of items in the ranking after those of the page.
        conflicts: the number of conflicts of the shown items.
        conflicts_shown: the number of conflicts that the text shows; they are about what the question asks.
    """

    lead: str
    body: str
    items: tuple[FusedItem, ...]
    cited: Mapping[int, FusedItem]
    start: int
    left: int
    conflicts: int
    conflicts_shown: int

    @property
    def text(self) -> str:
        """The whole page as text."""
        return SEPARATOR.join(filter(None, (self.lead, self.body)))


def answer_page(answer: Answer, start: int, fits: Callable[[AnswerPage], bool]) -> AnswerPage:
    """Return the page that begins at an item of the answer.

    Args:
        answer: the whole answer, long enough for several pages.
        start: the place of the first item, from 0.
        fits: tells whether a page is small enough; a page with fewer items of the same answer is smaller.

    Returns:
        The page with the most items that fits. If fewer than ``ITEMS_WANTED`` fit, items are shortened, the first one
        least, and then conflicts are left out. If still fewer fit, the first item gets all the room that it needs. Each
        further item gets the room that is left, if that is at least ``LEAST_FURTHER`` characters. The best sentence is
        quoted first, and of the others only what no item shows. If not even this fits, the page has one item of
        ``LEAST_CHARACTERS`` and is too large.
    """
    answer = replace(answer, extract=answer.extract or answer.nearest)
    wanted = min(ITEMS_WANTED, len(answer.items) - start)
    shortened = [_shorten_items(answer, start, characters) for characters in ITEM_CHARACTERS]
    for conflicts in CONFLICTS_SHOWN:
        for items in shortened:
            page = _most(answer, start, items, conflicts, fits)
            if len(page.items) >= wanted:
                return page

    def of_few(sizes: Sequence[int], *, names_more: bool = False) -> AnswerPage:
        items = tuple(
            _shorten(item, answer, characters) for item, characters in zip(answer.items[start:], sizes, strict=False)
        )
        # The best sentence is read first, also if a passage shows it below. Of the others nothing is said twice.
        shown = {item.chunk_id: item.content for item in items}
        best, others = answer.extract[:1], answer.extract[1:]
        said = [each for each in others if each.chunk_id in shown and each.text not in shown[each.chunk_id]]
        if not said and all(each.chunk_id in shown for each in best):
            said = [each for each in others if each.chunk_id not in shown][:1]
        return _page(replace(answer, extract=(*best, *said)), start, items, 0, names_more=names_more)

    sizes: list[int] = []
    for item in answer.items[start : start + wanted]:
        characters = largest(len(item.content), lambda most: fits(of_few([*sizes, most])))
        if sizes and characters < min(LEAST_FURTHER, len(item.content)):
            break
        sizes.append(max(characters, LEAST_CHARACTERS))
    page = of_few(sizes, names_more=True)
    return page if fits(page) else of_few(sizes)


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to ``most`` that fits, 0 if none does. All numbers below one that fits must fit."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def snippet(item: FusedItem, query: str, max_characters: int, around: Span | None = None) -> str:
    """Return the part of an item's text that is most relevant to a query. It includes ``around``, if that is given."""
    is_code = item.domain == Domain.CODE
    return shorten(item.content, query_terms(query), max_characters, is_code=is_code, around=around)


def _shorten_items(answer: Answer, start: int, characters: int) -> tuple[FusedItem, ...]:
    """Shorten the items from ``start`` on to ``characters`` each. The first one keeps twice as many characters."""
    items = enumerate(answer.items[start:])
    return tuple(_shorten(item, answer, characters * (2 if place == 0 else 1)) for place, item in items)


def _shorten(item: FusedItem, answer: Answer, characters: int) -> FusedItem:
    said = next((sentence.span for sentence in answer.extract if sentence.chunk_id == item.chunk_id), None)
    part = snippet(item, answer.question.text, characters, said)
    return item if part == item.content else replace(item, shown=part)


def _most(
    answer: Answer, start: int, items: tuple[FusedItem, ...], conflicts: int, fits: Callable[[AnswerPage], bool]
) -> AnswerPage:
    count = largest(len(items), lambda number: fits(_page(answer, start, items[:number], conflicts)))
    return _page(answer, start, items[:count], conflicts)


def _page(
    answer: Answer, start: int, items: tuple[FusedItem, ...], most_conflicts: int, *, names_more: bool = True
) -> AnswerPage:
    shown, conflicts = shown_conflicts(items, answer.conflicts)
    kept = conflicts[:most_conflicts]
    numbers = {item.chunk_id: number for number, item in reversed([*enumerate(answer.items, 1)])}
    quoted = () if start else answer.extract
    cited = {item.chunk_id for item in items} | {sentence.chunk_id for sentence in quoted}
    return AnswerPage(
        lead="" if start else render_lead(answer, numbers),
        body=render_numbered(
            shown,
            numbers,
            conflicts=kept,
            coverage_gaps=answer.recalled.coverage_gaps,
            also=answer.items[start + len(items) : start + ITEMS_WANTED] if names_more else (),
        ),
        items=items,
        cited={number: item for number, item in enumerate(answer.items, 1) if item.chunk_id in cited},
        start=start,
        left=max(0, len(answer.items) - start - len(items)),
        conflicts=len(conflicts),
        conflicts_shown=len(kept),
    )
