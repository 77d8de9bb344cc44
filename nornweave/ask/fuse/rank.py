"""Stage 5: rank the items by weighted signals, of which one is the domain's authority for the kind of the question."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from nornweave.ask.fuse.records import ConflictRecord, FusedItem
from nornweave.config.workspace import RankWeights
from nornweave.core.text.dates import aware
from nornweave.core.types import Domain

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
    items: Sequence[FusedItem],
    conflicts: Sequence[ConflictRecord] = (),
    *,
    weights: RankWeights,
    domain_signals: Mapping[str, float],
    now: datetime,
) -> tuple[FusedItem, ...]:
    """Order items by ``Σ weight · signal``.

    Signals, each in [0, 1]: the relevance; 1 for an item that another domain corroborates; recency
    ``exp(−days / 90)`` of the source, 0 for an unknown time; the router's signal for the domain; ``length_signal``.

    Returns:
        Every item once, best first. Scores within 1e-6 of each other are ties: agents with calibrated scores come
        first, then the agent's own score, the more recent source, the domain's name and the chunk id decide.
    """
    places = {chunk: place for place, record in reversed([*enumerate(conflicts)]) for chunk in record.items}
    scored = [_score_item(fused, weights, domain_signals, now, places.get(fused.chunk_id)) for fused in items]
    return tuple(_by_score(scored))


def length_signal(content: str) -> float:
    """Return ``words / 10`` below ten words, at least 0.2; 0.7 above 500 words; else 1.

    A flat 0.2 below ten words would put short exact answers last (docs/decisions/0009-ranking-signals.md).
    """
    if len(content) <= SAMPLE:
        return max(SHORTEST, min(1.0, len(content.split(None, SHORT_WORDS)) / SHORT_WORDS))
    # A text of n words has 2n - 1 characters or more.
    if len(content) < 2 * LONG_WORDS:
        return 1.0
    return 0.7 if len(content.split(None, LONG_WORDS)) > LONG_WORDS else 1.0


def recency_signal(timestamp: datetime | None, now: datetime) -> float:
    """Return ``exp(−days / 90)``; 0 for an unknown time, 1 for a time in the future."""
    if timestamp is None:
        return 0.0
    days = (aware(now) - aware(timestamp)).total_seconds() / _SECONDS_PER_DAY
    return math.exp(-max(days, 0.0) / RECENCY_DAYS)


def _score_item(
    fused: FusedItem, weights: RankWeights, domain_signals: Mapping[str, float], now: datetime, conflict: int | None
) -> FusedItem:
    signals = {
        "score": weights.score * fused.relevance,
        "corroboration": weights.corroboration * float(bool(fused.corroborated_by) and fused.is_corroborated),
        "recency": weights.recency * recency_signal(fused.citation.timestamp, now),
        "domain": weights.domain * domain_signals.get(fused.domain, NEUTRAL_DOMAIN),
        "length": weights.length * length_signal(fused.item.content),
    }
    # Built directly: ``dataclasses.replace`` costs several times as much, and every item of every answer comes here.
    return FusedItem(
        item=fused.item,
        agent=fused.agent,
        domain=fused.domain,
        relevance=fused.relevance,
        calibrated=fused.calibrated,
        encoder=fused.encoder,
        facts=fused.facts,
        corroborated_by=fused.corroborated_by,
        demoted=fused.demoted,
        lost=fused.lost,
        score=math.fsum(signals.values()),
        signals=MappingProxyType(signals),
        penalty=weights.score * fused.lost,
        conflict=conflict,
        shown=fused.shown,
    )


def _by_score(items: Sequence[FusedItem]) -> list[FusedItem]:
    """Sort by score.

    Scores within 1e-6 are ties. A run of ties starts at its best score and ends 1e-6 below it, so that the order is
    defined.
    """
    ordered = sorted(items, key=lambda fused: -fused.score)
    result: list[FusedItem] = []
    start = 0
    for place in range(1, len(ordered) + 1):
        if place == len(ordered) or ordered[start].score - ordered[place].score > TIE:
            tied = ordered[start:place]
            result.extend(tied if len(tied) == 1 else sorted(tied, key=_tie_key))
            start = place
    return result


def _tie_key(fused: FusedItem) -> tuple[bool, float, float, str, str]:
    moment = fused.citation.timestamp
    recent = -aware(moment).timestamp() if moment else math.inf
    return not fused.calibrated, -fused.item.score, recent, fused.domain, fused.chunk_id


class QueryType(StrEnum):
    """The kind of a query. The strategy ``SOURCE_AUTHORITY`` ranks the domains by it."""

    CURRENT_BEHAVIOUR = "current_behaviour"
    INTENDED_DESIGN = "intended_design"
    HISTORICAL_DECISION = "historical_decision"
    AMBIGUOUS = "ambiguous"


_TYPE_SIGNALS: tuple[tuple[QueryType, re.Pattern[str]], ...] = (
    (
        QueryType.HISTORICAL_DECISION,
        re.compile(
            r"\b(?:decided?|decisions?|agreed|agreements?|discuss(?:ed|ions?)?|chose|chosen|approved|rejected"
            r"|did (?:we|the team|they|you all)|who (?:said|suggested|proposed|wanted))\b"
        ),
    ),
    (
        QueryType.INTENDED_DESIGN,
        re.compile(r"\b(?:why|design(?:s|ed)?|intend(?:s|ed)?|intention|rationale|supposed to|meant to)\b"),
    ),
    (
        QueryType.CURRENT_BEHAVIOUR,
        re.compile(
            r"\bhow (?:do|does|is|are)\b.{1,120}\b(?:works?|handled?|done|implemented|computed|behaves?|validated?)\b"
            r"|\bwhat (?:do|does)\b.{1,120}\b(?:do|return|raise|happens?|send|accept|output)s?\b"
            r"|\bwhat happens\b|\bcurrent(?:ly)?\b|\bactual(?:ly)?\b|\bright now\b"
        ),
    ),
)
_DEFAULT_ORDER = (Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS, Domain.RESEARCH)
_AUTHORITY: Mapping[QueryType, tuple[Domain, ...]] = MappingProxyType(
    {
        QueryType.CURRENT_BEHAVIOUR: _DEFAULT_ORDER,
        QueryType.INTENDED_DESIGN: (Domain.DOCUMENTATION, Domain.CODE, Domain.CONVERSATIONS, Domain.RESEARCH),
        QueryType.HISTORICAL_DECISION: (Domain.CONVERSATIONS, Domain.DOCUMENTATION, Domain.CODE, Domain.RESEARCH),
        QueryType.AMBIGUOUS: _DEFAULT_ORDER,
    }
)


def query_type(text: str) -> QueryType:
    """Return the kind of a query by its words.

    If several kinds match, a decision comes before a design, and a design before behaviour. For example, ``why did we
    decide …`` asks for a decision.
    """
    lowered = text.lower()
    return next((kind for kind, pattern in _TYPE_SIGNALS if pattern.search(lowered)), QueryType.AMBIGUOUS)


def authority_order(kind: QueryType) -> tuple[Domain, ...]:
    """Return the domains in order of authority for a kind of query, highest first."""
    return _AUTHORITY[kind]
