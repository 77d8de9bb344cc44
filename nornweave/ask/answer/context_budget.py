"""The context budget: the part of a ranking that an answer shows.

``min_score → diversity → top_k → max_tokens``. Items come in the order of their selection, which is the order
of the ranking unless diversity moves another domain's item up. Tokens are those of the items' contents; citations and
headers around them come on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from nornweave.ask.answer.snippet import MARK, fair_share, shorten
from nornweave.ask.fuse.records import ConflictRecord, ExtractedSentence, FusedItem
from nornweave.ask.search.question import Question
from nornweave.core.text.analyzer import query_terms
from nornweave.core.types import Domain

# A common estimate for English text.
CHARACTERS_PER_TOKEN = 4
# A shorter part of an item is of no use to a reader.
USEFUL_TOKENS = 40
# A paragraph: rather fewer items than shares below this, as long as two items fit.
SHARE_AT_LEAST = 160


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def fit(items: Sequence[FusedItem], question: Question) -> tuple[FusedItem, ...]:
    """Cut a ranking to ``top_k``, ``min_score`` and ``max_tokens``. ``shortened`` marks items that are not shown whole.

    ``top_k``: the largest number of items, ≥ 1. An item that would be cut only because it lost a conflict is kept.
    ``max_tokens``: never exceeded. Long items are shortened to fair shares, by relevance; an item that does not fit
    even then is skipped, and later items may still fit. ``min_score``: items below it are dropped. ``diversity``: how
    much other domains are preferred (``diversified``). If it is more than 0, two domains are among the items whenever
    two are among the candidates, ``top_k`` is at least 2 and both fit ``max_tokens``.

    Returns:
        The items in reading order.
    """
    top_k, diversity, least = question.top_k, question.diversity, question.min_score
    good = [item for item in items if least is None or item.score >= least]
    chosen = _with_demoted(diversified(good, top_k, diversity) if diversity else good[:top_k], good)
    order = _two_domains_first(chosen) if diversity else list(range(len(chosen)))
    contents = _within(chosen, order, question.text, question.max_tokens)
    return tuple(
        item if contents[place] == item.item.content else replace(item, shown=contents[place])
        for place, item in enumerate(chosen)
        if place in contents
    )


def diversified(items: Sequence[FusedItem], top_k: int, diversity: float) -> list[FusedItem]:
    """Select items one by one so that more than one domain appears.

    The next is the item with the largest ``(1 − d) · score / best score + d / (1 + items of its domain so far)``, the
    earlier one on a tie. So the first is always the first of the ranking, and the order within a domain stays. If all
    selected items are of one domain, the last is replaced by the best item of another.

    Args:
        items: ranked, best first.
        diversity: ``d`` in [0, 1]: 0 uses only scores, 1 takes the domains in turn; 0.2 is usual.

    Source: maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998) with the domain as similarity.
    """
    best = max((item.score for item in items), default=0.0)
    queues: dict[str, list[int]] = {}
    for place in range(len(items) - 1, -1, -1):  # backwards: the next of a domain is the last of its queue
        queues.setdefault(items[place].domain, []).append(place)

    def offer(domain: str, taken: int) -> tuple[float, int, str, int]:
        place = queues[domain].pop()
        relative = items[place].score / best if best > 0 else 0.0
        return -((1 - diversity) * relative + diversity / (1 + taken)), place, domain, taken

    offers = [offer(domain, 0) for domain in queues]
    heapify(offers)
    selected: list[int] = []
    while offers and len(selected) < top_k:
        _, place, domain, taken = heappop(offers)
        selected.append(place)
        if queues[domain]:
            heappush(offers, offer(domain, taken + 1))
    domains = {items[place].domain for place in selected}
    others = [place for _, place, domain, _ in offers if domain not in domains]
    if len(selected) > 1 and len(domains) == 1 and others:
        selected[-1] = min(others)
    return [items[place] for place in selected]


def shown_conflicts(
    items: Sequence[FusedItem], conflicts: Sequence[ConflictRecord]
) -> tuple[tuple[FusedItem, ...], tuple[ConflictRecord, ...]]:
    """Return the items, and the conflicts with at least one shown side; the items get the new numbers of conflicts."""
    chunks = {ranked.chunk_id for ranked in items}
    shown = [place for place, conflict in enumerate(conflicts) if chunks.intersection(conflict.items)]
    places = {before: after for after, before in enumerate(shown)}
    placed = (
        ranked if ranked.conflict is None else replace(ranked, conflict=places[ranked.conflict]) for ranked in items
    )
    return tuple(placed), tuple(conflicts[place] for place in shown)


def with_quoted(items: Sequence[FusedItem], quoted: Sequence[ExtractedSentence], query: str) -> tuple[FusedItem, ...]:
    """Return the items. One that was shortened shows the first sentence that is quoted of it, in as many characters."""
    spans = {each.chunk_id: each.span for each in reversed(quoted)}
    texts = {each.chunk_id: each.text for each in reversed(quoted)}

    def shown(item: FusedItem) -> str | None:
        part, around = item.shown, spans.get(item.chunk_id)
        if part is None or around is None or texts[item.chunk_id] in part:
            return part
        is_code = item.domain == Domain.CODE
        return shorten(item.item.content, query_terms(query), len(part), is_code=is_code, around=around)

    return tuple(item if (part := shown(item)) == item.shown else replace(item, shown=part) for item in items)


def _with_demoted(chosen: Sequence[FusedItem], items: Sequence[FusedItem]) -> Sequence[FusedItem]:
    """Return ``chosen`` with the items that were cut only because they lost a conflict.

    They replace the last items without a conflict. A lost conflict must not hide an item, because the reader should see
    the conflict.
    """
    here = {item.chunk_id for item in chosen}
    undemoted = sorted(items, key=lambda item: -(item.score + item.penalty))[: len(chosen)]
    missing = [item for item in undemoted if item.penalty and item.chunk_id not in here]
    leaving = [place for place, item in enumerate(chosen) if item.conflict is None][-len(missing) :] if missing else []
    staying = [item for place, item in enumerate(chosen) if place not in leaving]
    return [*staying, *sorted(missing[: len(leaving)], key=lambda item: -item.score)]


def _two_domains_first(items: Sequence[FusedItem]) -> list[int]:
    """Return item indexes in the order in which items get tokens: the first, the best of a second domain, the rest."""
    second = next((place for place, item in enumerate(items) if item.domain != items[0].domain), 0)
    return sorted(range(len(items)), key=lambda place: (place not in {0, second}, place))


def _within(items: Sequence[FusedItem], order: Sequence[int], query: str, max_tokens: int | None) -> dict[int, str]:
    """Return index → content, possibly shortened, of the items that fit into ``max_tokens``."""
    contents = {place: items[place].item.content for place in order}
    sizes = {place: estimate_tokens(content) for place, content in contents.items()}
    if max_tokens is None or sum(sizes.values()) <= max_tokens:
        return contents
    terms = query_terms(query)
    fitting = _shared_out(items, order, sizes, terms, max_tokens)
    left = max_tokens - sum(estimate_tokens(content) for content in fitting.values())
    if fitting and len(fitting) < len(order) and left >= USEFUL_TOKENS:
        # Some items could not use their shares: share out once more without those.
        fitting = _shared_out(items, [place for place in order if place in fitting], sizes, terms, max_tokens)
    return fitting


def _shared_out(
    items: Sequence[FusedItem], order: Sequence[int], sizes: Mapping[int, int], terms: Sequence[str], max_tokens: int
) -> dict[int, str]:
    fitting: dict[int, str] = {}
    left = max_tokens
    for number, place in enumerate(order):
        share = _share([sizes[waiting] for waiting in order[number:]], left)
        content = _part(items[place], terms, share, useful=USEFUL_TOKENS if fitting else 1)
        if content is None and sizes[place] <= left:  # all or nothing: better the better one than those who wait
            content = items[place].item.content
        if content is not None:
            fitting[place] = content
            left -= estimate_tokens(content)
    return fitting


def _share(waiting: Sequence[int], left: int) -> int:
    """Return how many tokens the first waiting item may have.

    This is the share by max-min fairness, but at least a paragraph. So that a second item still fits, the paragraph is
    not more than half of ``left``, unless that half would be too short to be useful.
    """
    if len(waiting) == 1:
        return left
    paragraph = min(SHARE_AT_LEAST, max(left // 2, USEFUL_TOKENS))
    return min(left, max(fair_share(waiting, left), paragraph))


def _part(item: FusedItem, terms: Sequence[str], tokens: int, *, useful: int) -> str | None:
    """Return the part of an item that fits into ``tokens``; ``None`` if the part would be too short to be useful."""
    content = item.item.content
    if estimate_tokens(content) <= tokens:
        return content
    if tokens < useful:
        return None
    is_code = item.domain == Domain.CODE
    part = shorten(content, terms, tokens * CHARACTERS_PER_TOKEN, is_code=is_code)
    # Of encoded data or a table of figures hardly a word fits: that is no part worth a place.
    return part if estimate_tokens(part.replace(MARK, "").strip()) > min(useful, tokens) // 2 else None
