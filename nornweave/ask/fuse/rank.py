"""Stage 5: rank the items by weighted signals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from nornweave.ask.fuse.records import ConflictRecord, RankedItem, RankedItems, ResolvedItems, TaggedItem
from nornweave.config.fusion import RankWeights
from nornweave.core.types import aware

# Days after which a source's recency has fallen to 1/e.
RECENCY_DAYS = 90.0
# What a domain of which the router says nothing counts.
NEUTRAL_DOMAIN = 0.5
# Scores this close are ties.
TIE = 1e-6
SHORT_WORDS, LONG_WORDS = 10, 500
SHORTEST = 0.2
# Ten words have no more characters than this, unless they are no words.
SAMPLE = 400
_SECONDS_PER_DAY = 86_400.0


def rank(
    resolved: ResolvedItems, *, weights: RankWeights, domain_signals: Mapping[str, float], now: datetime
) -> RankedItems:
    """Order items by ``Σ weight · signal``.

    Signals, each in [0, 1]: the normalised score; 1 for an item that another domain corroborates; recency
    ``exp(−days / 90)`` of the source, 0 for an unknown time; the router's signal for the domain; ``length_signal``.

    Args:
        resolved: of stage 4.
        weights: of the signals.
        domain_signals: domain → relevance in [0, 1]; 0.5 for one that is missing.
        now: what recency is counted from; a source of the future counts as new.

    Returns:
        Every item once, best first. Scores within 1e-6 of each other are ties, which go by the agent's own score, then
        by the more recent source, the domain's name, the chunk id.
    """
    scored = [_ranked(tagged, weights, domain_signals, now) for tagged in resolved.items]
    places = _places(resolved.conflicts)
    ordered = _by_score(scored)
    return RankedItems(tuple(_placed(one, places) for one in ordered))


def length_signal(content: str) -> float:
    """Prefer substance: ``words / 10``, 0.2 at least, below ten words; 0.7 above 500; else 1.

    A flat 0.2 below ten words would put short exact answers last (docs/decisions/0009-ranking-signals.md).
    """
    if len(content) <= SAMPLE:
        return max(SHORTEST, min(1.0, len(content.split(None, SHORT_WORDS)) / SHORT_WORDS))
    # A text of n words has 2n - 1 characters or more.
    if len(content) < 2 * LONG_WORDS:
        return 1.0
    return 0.7 if len(content.split(None, LONG_WORDS)) > LONG_WORDS else 1.0


def recency_signal(timestamp: datetime | None, now: datetime) -> float:
    """Return ``exp(−days / 90)``; 0 for an unknown time, 1 for one that is yet to come."""
    if timestamp is None:
        return 0.0
    days = (aware(now) - aware(timestamp)).total_seconds() / _SECONDS_PER_DAY
    return math.exp(-max(days, 0.0) / RECENCY_DAYS)


def _ranked(tagged: TaggedItem, weights: RankWeights, domain_signals: Mapping[str, float], now: datetime) -> RankedItem:
    signals = {
        "score": weights.score * tagged.score,
        "corroboration": weights.corroboration * float(tagged.is_corroborated),
        "recency": weights.recency * recency_signal(tagged.item.citation.timestamp, now),
        "domain": weights.domain * domain_signals.get(tagged.source_domain, NEUTRAL_DOMAIN),
        "length": weights.length * length_signal(tagged.item.content),
    }
    return RankedItem(
        tagged=tagged,
        score=math.fsum(signals.values()),
        signals=MappingProxyType(signals),
        penalty=weights.score * tagged.penalty,
        content=tagged.item.content,
    )


def _by_score(items: Sequence[RankedItem]) -> list[RankedItem]:
    """Sort; "within 1e-6" is no order by itself, so a run of ties starts at its best score and ends 1e-6 below it."""
    ordered = sorted(items, key=lambda one: -one.score)
    result: list[RankedItem] = []
    start = 0
    for place in range(1, len(ordered) + 1):
        if place == len(ordered) or ordered[start].score - ordered[place].score > TIE:
            tied = ordered[start:place]
            result.extend(tied if len(tied) == 1 else sorted(tied, key=_tie_key))
            start = place
    return result


def _tie_key(ranked: RankedItem) -> tuple[float, float, str, str]:
    item = ranked.tagged.item
    moment = item.citation.timestamp
    return (
        -item.score,
        -aware(moment).timestamp() if moment else math.inf,
        ranked.tagged.source_domain,
        item.chunk_id,
    )


def _places(conflicts: Sequence[ConflictRecord]) -> dict[str, int]:
    """Return which conflict each chunk takes part in, the first of several."""
    places: dict[str, int] = {}
    for place, conflict in enumerate(conflicts):
        for chunk_id in conflict.items:
            places.setdefault(chunk_id, place)
    return places


def _placed(ranked: RankedItem, places: Mapping[str, int]) -> RankedItem:
    place = places.get(ranked.tagged.item.chunk_id)
    if place is None:
        return ranked
    return replace(ranked, conflict=place)
