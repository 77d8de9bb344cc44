"""Bonuses for a candidate beside its relevance: matching symbols, recency, engagement, citations.

Pure: every number comes from the domain's settings, the clock is a parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TypeAlias

from nornweave.ask.search.query_features import Cues, cues_of, heading_terms, path_parts
from nornweave.config import HeuristicSettings
from nornweave.core.types import NO_METADATA, ChunkId, Domain, JsonValue, Metadata, aware

SECONDS_PER_DAY = 86_400.0
# Where a domain's chunks say when they were said or published. When a file of theirs changed says nothing about that.
DATED_BY: Mapping[Domain, str] = MappingProxyType(
    {Domain.CONVERSATIONS: "message_timestamp", Domain.RESEARCH: "publication_date"}
)
# Of qualified names: ``Outer.Inner``, ``ledger::Entry``, ``Wallet#pay``.
_NAME_SEPARATORS = re.compile(r"[.:#]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeuristicCandidate:
    """A chunk with everything that reranking needs of it.

    Attributes:
        score: combined and calibrated, in [0, 1].
        source_path: of its document, POSIX separators.
        section: the heading path as one line.
        timestamp: what recency counts from, see ``dated``; ``None`` where it is unknown.
        metadata: of the chunk; its keys depend on the domain.
    """

    chunk_id: ChunkId
    score: float
    content: str
    source_path: str
    title: str | None = None
    section: str | None = None
    timestamp: datetime | None = None
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)


def dated(domain: Domain, metadata: Metadata, updated_at: datetime | None) -> datetime | None:
    """Return the date for a chunk's recency: when it was said or published, else when its source changed.

    Conversations and research have no other date than their own: without it there is none.
    """
    if domain not in DATED_BY:
        return updated_at
    value = metadata.get(DATED_BY[domain])
    if not isinstance(value, str):
        return None
    try:
        return aware(datetime.fromisoformat(value))
    except ValueError:
        return None


def symbol_match(cues: Cues, candidate: HeuristicCandidate, numbers: HeuristicSettings, _now: datetime) -> float:
    """Reward the definition of a symbol that the query names, exactly as it is written."""
    for key in ("function_name", "class_name") if cues.identifiers else ():
        name = candidate.metadata.get(key)
        if isinstance(name, str) and not cues.identifiers.isdisjoint(_NAME_SEPARATORS.split(name)):
            return numbers.symbol_match_bonus
    return 0.0


def path_match(cues: Cues, candidate: HeuristicCandidate, numbers: HeuristicSettings, _now: datetime) -> float:
    """Reward a file that the query names, by whole path components: ``src/pay`` is not in ``src/payments``."""
    if not cues.paths:
        return 0.0
    own = path_parts(candidate.source_path)
    return numbers.path_match_bonus if any(_names(asked, own) for asked in cues.paths) else 0.0


def heading_match(cues: Cues, candidate: HeuristicCandidate, numbers: HeuristicSettings, _now: datetime) -> float:
    """Reward a section under a heading that has a word of the query."""
    heading = candidate.section or candidate.title
    return numbers.heading_match_bonus if heading and not cues.terms.isdisjoint(heading_terms(heading)) else 0.0


def recency(_cues: Cues, candidate: HeuristicCandidate, numbers: HeuristicSettings, now: datetime) -> float:
    """Reward recent chunks: linear, ``max · (1 - days / D)``, or exponential, ``max · exp(-days / D)``.

    What is dated in the future counts as of today.
    """
    if candidate.timestamp is None:
        return 0.0
    age = (aware(now) - aware(candidate.timestamp)).total_seconds() / SECONDS_PER_DAY
    share = max(0.0, age) / numbers.recency_days
    left = math.exp(-share) if numbers.recency_decay == "exponential" else max(0.0, 1.0 - share)
    return numbers.recency_bonus_max * left


def engagement(_cues: Cues, candidate: HeuristicCandidate, numbers: HeuristicSettings, _now: datetime) -> float:
    """Reward reactions with diminishing returns: ``max · min(1, ln(1 + n) / ln(1 + full))``.

    The logarithm is chosen as for ``citations``.
    """
    count = _count(candidate.metadata.get("reaction_count"))
    return numbers.engagement_bonus_max * min(1.0, math.log(1 + count) / math.log(1 + numbers.engagement_full_at))


def accepted_answer(_cues: Cues, candidate: HeuristicCandidate, numbers: HeuristicSettings, _now: datetime) -> float:
    """Reward the answer that the asker accepted."""
    return numbers.accepted_answer_bonus if candidate.metadata.get("is_accepted") is True else 0.0


def citations(_cues: Cues, candidate: HeuristicCandidate, numbers: HeuristicSettings, _now: datetime) -> float:
    """Reward citations: ``min(max, step · log10(n + 1))``."""
    count = _count(candidate.metadata.get("citation_count"))
    return min(numbers.citation_bonus_max, numbers.citation_bonus_step * math.log10(count + 1))


@dataclass(frozen=True, slots=True)
class Heuristic:
    """One bonus.

    Attributes:
        name: as explanations call it.
        weight: the name of its weight in ``RerankingWeights``.
        setting: the number that turns it off when it is 0.
    """

    name: str
    weight: str
    setting: str
    bonus: Callable[[Cues, HeuristicCandidate, HeuristicSettings, datetime], float]


HEURISTICS = (
    Heuristic("symbol_match", "symbol", "symbol_match_bonus", symbol_match),
    Heuristic("path_match", "path", "path_match_bonus", path_match),
    Heuristic("heading_match", "heading", "heading_match_bonus", heading_match),
    Heuristic("recency", "recency", "recency_bonus_max", recency),
    Heuristic("engagement", "engagement", "engagement_bonus_max", engagement),
    Heuristic("accepted_answer", "authority", "accepted_answer_bonus", accepted_answer),
    Heuristic("citations", "authority", "citation_bonus_max", citations),
)
Bonuses: TypeAlias = Mapping[str, float]
NO_BONUSES: Bonuses = MappingProxyType({})


def all_bonuses(
    candidates: Sequence[HeuristicCandidate], query: str, numbers: HeuristicSettings, now: datetime
) -> list[Bonuses]:
    """Return the bonuses of each candidate by heuristic, before weights.

    What gives nothing is left out. Each bonus is in [0, 1] and at most what ``numbers`` says.
    """
    on = [(each.name, each.bonus) for each in HEURISTICS if getattr(numbers, each.setting) > 0]
    if not on:
        return [NO_BONUSES] * len(candidates)
    cues = cues_of(query)
    return [
        MappingProxyType({name: given for name, bonus in on if (given := bonus(cues, candidate, numbers, now)) > 0})
        for candidate in candidates
    ]


def _names(asked: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """Say whether the asked components stand in the path, in one run; or, rooted elsewhere, end with all of it."""
    size = len(asked)
    if size > len(own):
        return len(own) > 1 and asked[-len(own) :] == own
    return any(own[start : start + size] == asked for start in range(len(own) - size + 1))


def _count(value: JsonValue) -> int | float:
    """Return a count as metadata has it; 0 for what is none (missing, text, negative, not finite)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        return 0
    return value
