"""Stages 1 and 2: gather the items of all answers with their facts, and put their scores on one scale."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from nornweave.ask.fuse.records import FusedItem, Scale
from nornweave.ask.search.combine import RRF_K
from nornweave.ask.search.records import RecallItem, RecallResponse
from nornweave.core.types import Fact
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage

# Reading the facts of a function takes a millisecond: most of what an agent elsewhere costs. Good passages come again
# with other questions.
_extract = lru_cache(2_048)(extract_facts)
MAX_COMPARED = 4_000
"""Characters of an item of an agent elsewhere that are compared with others: more than a passage of ours has."""
_MAX_COMPARED_IN_ALL, _LEAST = 200_000, 100
"""Characters of the items of one answer whose facts are read, a second's work; a short item counts as some."""

# The relevance of an agent's items when all its scores are equal: min-max is undefined there.
NEUTRAL = 0.5


def collect(responses: Sequence[RecallResponse]) -> tuple[FusedItem, ...]:
    """Return the items of all answers, in the order of the answers, and within each answer the best first.

    If an agent sends no facts, they are read from the text of its items. Of a long text only the beginning is read, and
    of very many items only the best of each answer.
    """
    unread = sorted(
        (rank, place, min(max(len(item.content), _LEAST), MAX_COMPARED))
        for place, response in enumerate(responses)
        for rank, item in enumerate(response.items)
        if item.facts is None
    )
    sizes = accumulate(size for *_, size in unread)
    read = {(place, rank) for (rank, place, _), size in zip(unread, sizes, strict=True) if size <= _MAX_COMPARED_IN_ALL}
    return tuple(
        _to_fused_item(item, response, reads=(place, rank) in read)
        for place, response in enumerate(responses)
        for rank, item in enumerate(response.items)
    )


def scale_of(items: Iterable[FusedItem], normalization: Literal["auto"] | Scale = "auto") -> Scale:
    """Return ``normalization``, or for ``auto`` the scale that fits these items.

    It is ``calibrated`` if all items have calibrated scores, ``minmax`` if no item has, and otherwise ``mixed``.
    """
    if normalization != "auto":
        return normalization
    calibrated = {fused.calibrated for fused in items}
    return "mixed" if len(calibrated) > 1 else "minmax" if False in calibrated else "calibrated"


def normalize(items: Sequence[FusedItem], scale: Scale) -> tuple[FusedItem, ...]:
    """Return the items with their relevance brought to [0, 1].

    ``minmax``: per agent ``(score − min) / (max − min)``, 0.5 if all scores are the same. It is for agents whose scores
    do not compare. It gives every agent's best item 1, relevant or not. ``calibrated`` therefore keeps scores that
    agents declare as comparable, cut to [0, 1]. ``mixed``: comparable scores stay, and items of the other agents are
    placed by their ranks (``_by_rank``).
    """
    if scale == "calibrated":
        return tuple(map(_cut, items))
    if scale == "mixed":
        return _by_rank(items)
    bounds = _bounds(items)
    return tuple(
        replace(fused, relevance=_stretch_score(fused.relevance, *bounds[fused.agent, fused.domain])) for fused in items
    )


def _to_fused_item(item: RecallItem, response: RecallResponse, *, reads: bool) -> FusedItem:
    return FusedItem(
        item=item,
        agent=response.agent_id,
        domain=response.domain_id,
        relevance=item.score if math.isfinite(item.score) else 0.0,
        calibrated=response.calibrated,
        encoder=response.encoder,
        facts=_facts(item, response.domain_id) if reads else item.facts or (),
    )


def _facts(item: RecallItem, domain: str) -> tuple[Fact, ...]:
    citation, language = item.citation, item.metadata.get("language")
    return _extract(
        Passage(
            text=item.content[:MAX_COMPARED],
            start=citation.char_range[0],
            domain=domain,
            language=language if isinstance(language, str) else None,
            path=citation.source_path,
            title=citation.title,
            section=citation.section,
            timestamp=citation.timestamp,
        )
    )


def _cut(fused: FusedItem) -> FusedItem:
    if 0.0 <= fused.relevance <= 1.0:
        return fused
    return replace(fused, relevance=min(max(fused.relevance, 0.0), 1.0))


def _by_rank(items: Sequence[FusedItem]) -> tuple[FusedItem, ...]:
    """Return the items. Calibrated scores stay, and the items of each other agent are placed by reciprocal rank.

    An agent's item of rank ``r`` gets the mean relevance of the calibrated items of ranks ``r`` and ``r + 1``. It comes
    just after the calibrated item of its own rank, because reciprocal rank fusion counts the two as equal and the
    relevance of the calibrated one is known. Below the last calibrated item, relevance falls as ``1 / (60 + rank)``.
    """
    known = sorted((_cut(fused).relevance for fused in items if fused.calibrated), reverse=True)

    def at(rank: int) -> float:
        return known[rank - 1] if rank <= len(known) else known[-1] * (RRF_K + len(known)) / (RRF_K + rank)

    ranks: Counter[tuple[str, str]] = Counter()
    joined = [_cut(fused) for fused in items]
    for place in sorted(range(len(items)), key=lambda place: -items[place].relevance):
        fused = items[place]
        if not fused.calibrated:
            ranks[fused.agent, fused.domain] += 1
            rank = ranks[fused.agent, fused.domain]
            joined[place] = replace(fused, relevance=(at(rank) + at(rank + 1)) / 2)
    return tuple(joined)


def _bounds(items: Iterable[FusedItem]) -> dict[tuple[str, str], tuple[float, float]]:
    bounds: dict[tuple[str, str], tuple[float, float]] = {}
    for fused in items:
        agent, score = (fused.agent, fused.domain), fused.relevance
        low, high = bounds.get(agent, (score, score))
        bounds[agent] = min(low, score), max(high, score)
    return bounds


def _stretch_score(score: float, low: float, high: float) -> float:
    # Halved, so that a range of the largest floats does not overflow.
    span = high / 2 - low / 2
    return min(1.0, (score / 2 - low / 2) / span) if span > 0 else NEUTRAL
