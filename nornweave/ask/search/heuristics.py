"""Bonuses for a candidate beside its relevance, as one table: matching symbols, recency, engagement, citations.

Symbols, file paths and heading words of the query are looked for in the candidates. Pure: every number comes from the
domain's settings, the clock is a parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from nornweave.ask.search.records import RecallItem
from nornweave.config import HeuristicSettings
from nornweave.core.text import analyzer
from nornweave.core.types import Domain, Metadata, aware

SECONDS_PER_DAY = 86_400.0
# Where a domain's chunks say when they were said or published. When a file of theirs changed says nothing about that.
DATED_BY: Mapping[str, str] = MappingProxyType(
    {Domain.CONVERSATIONS: "message_timestamp", Domain.RESEARCH: "publication_date"}
)
# Of qualified names: ``Outer.Inner``, ``ledger::Entry``, ``Wallet#pay``.
_NAME_SEPARATORS = re.compile(r"[.:#]+")
# ``CamelCase`` and ``snake_case`` words. The lookbehind changes no match, it keeps the search linear.
_IDENTIFIER = re.compile(r"[A-Z][a-zA-Z0-9]+|(?<![a-z])[a-z]+_[a-z_]+")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[^\s\"'`´‘’“”()<>\[\]{},;|]+")
# A name with an extension, which begins with a letter: "3.5" and "wait..." are none.
_FILE = re.compile(r"[^/]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}")
# The place inside a file that compilers and tracebacks add: ``:42``, ``:42:7``, ``#L42-L51``.
_PLACE = re.compile(r"(?:(?::\d{1,9}){1,2}|#L\d{1,9}(?:-L?\d{1,9})?)$")
_STARTS, _ENDS = ",:!?*=&", ".,:!?*=&"
LONGEST_SYMBOL = 128
"""Characters of a word that may name something; what is longer is a blob."""
# Words that stand in any question and any heading; stems, as the analyzer makes them, are added below.
_FUNCTION_WORDS = (
    "a about above after all also am an and any are as at be because been before being below between both but by can "
    "could did do does doing done for from had has have having he her here him his how i if in into is it its just me "
    "more most my no nor not now of off on once one only or other our out over own same she should so some such than "
    "that the their them then there these they this those through to too under until up us very was we were what when "
    "where which while who whom why will with would you your s t d re ve ll"
)
CACHED_HEADINGS = 1 << 14


@dataclass(frozen=True, slots=True)
class Cues:
    """The features of a query that heuristics look for in candidates.

    Attributes:
        identifiers: as written, each also as the whole word around it (``handlePayment`` has ``Payment``).
        paths: components of each file path, in lower case.
        terms: the analyzer's, without words that any heading may have.
    """

    identifiers: frozenset[str]
    paths: frozenset[tuple[str, ...]]
    terms: frozenset[str]


class _Features(NamedTuple):
    cues: Cues
    numbers: HeuristicSettings
    now: datetime


class Heuristic(NamedTuple):
    """One bonus: its name in explanations, its weight in ``RerankingWeights``, its highest in ``HeuristicSettings``.

    ``share`` says how much of the highest a candidate gets, in [0, 1]; a heuristic with a highest of 0 is off.
    """

    name: str
    weight: str
    setting: str
    share: Callable[[_Features, RecallItem], float]


Bonuses: TypeAlias = Mapping[str, float]
NO_BONUSES: Bonuses = MappingProxyType({})


def dated(domain: str, metadata: Metadata, updated_at: datetime | None) -> datetime | None:
    """Return the date for a chunk's recency: when it was said or published, else when its source changed.

    Conversations and research have no other date than their own: without it there is none.
    """
    if domain not in DATED_BY:
        return updated_at
    value = metadata.get(DATED_BY[domain])
    try:
        return aware(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def all_bonuses(items: Sequence[RecallItem], query: str, numbers: HeuristicSettings, now: datetime) -> list[Bonuses]:
    """Return the bonuses of each item by heuristic, before weights; what gives nothing is left out."""
    highest = {each: value for each in HEURISTICS if (value := getattr(numbers, each.setting)) > 0}
    if not highest:
        return [NO_BONUSES] * len(items)
    features = _Features(cues_of(query), numbers, now)
    given = ({each.name: value * each.share(features, item) for each, value in highest.items()} for item in items)
    return [MappingProxyType({name: bonus for name, bonus in each.items() if bonus > 0}) for each in given]


def cues_of(query: str) -> Cues:
    """Return the features of a query."""
    return Cues(
        identifiers=frozenset(_identifiers(query)),
        paths=frozenset(_paths(query)),
        terms=frozenset(analyzer.query_terms(query)) - _function_terms(),
    )


def path_parts(path: str) -> tuple[str, ...]:
    """Return the components of a path in lower case, without those that say nothing (``.``, ``..``, a root)."""
    return tuple(part for part in path.replace("\\", "/").lower().split("/") if part not in {"", ".", "..", "~"})


@lru_cache(maxsize=CACHED_HEADINGS)
def heading_terms(heading: str) -> frozenset[str]:
    """Return the terms of a heading; headings come back with every query."""
    return frozenset(analyzer.query_terms(heading))


@lru_cache(maxsize=1)
def _function_terms() -> frozenset[str]:
    return frozenset((*_FUNCTION_WORDS.split(), *analyzer.query_terms(_FUNCTION_WORDS)))


def _identifiers(query: str) -> Iterator[str]:
    for word in _WORD.findall(query):
        if len(word) <= LONGEST_SYMBOL and (found := _IDENTIFIER.findall(word)):
            yield word
            yield from found


def _paths(query: str) -> Iterator[tuple[str, ...]]:
    for token in _TOKEN.findall(query):
        if "://" in token:
            continue
        path = _PLACE.sub("", token.lstrip(_STARTS).rstrip(_ENDS))
        parts = path_parts(path)
        if len(parts) > 1 or (parts and _FILE.fullmatch(parts[-1])):
            yield parts


def _symbol(features: _Features, item: RecallItem) -> bool:
    """Tell whether the query names the defined symbol, exactly as it is written."""
    names = (item.metadata.get(key) for key in ("function_name", "class_name"))
    written = (part for name in names if isinstance(name, str) for part in _NAME_SEPARATORS.split(name))
    return not features.cues.identifiers.isdisjoint(written)


def _path(features: _Features, item: RecallItem) -> bool:
    """Tell whether the query names the file: whole components in one run or, rooted elsewhere, all of it at the end."""
    own = path_parts(item.citation.source_path) if features.cues.paths else ()
    return any(
        (1 < len(own) < len(path) and path[-len(own) :] == own)
        or any(own[start : start + len(path)] == path for start in range(len(own) - len(path) + 1))
        for path in features.cues.paths
    )


def _heading(features: _Features, item: RecallItem) -> bool:
    heading = item.citation.section or item.citation.title
    return heading is not None and not features.cues.terms.isdisjoint(heading_terms(heading))


def _recency(features: _Features, item: RecallItem) -> float:
    """Return ``1 - days / D``, or ``exp(-days / D)``; what is dated in the future counts as of today."""
    written = dated(item.citation.domain_id, item.metadata, item.citation.timestamp)
    if written is None:
        return 0.0
    days = max(0.0, (aware(features.now) - aware(written)).total_seconds() / SECONDS_PER_DAY)
    share = days / features.numbers.recency_days
    return math.exp(-share) if features.numbers.recency_decay == "exponential" else max(0.0, 1.0 - share)


def _engagement(features: _Features, item: RecallItem) -> float:
    """Return ``min(1, ln(1 + n) / ln(1 + full))``: diminishing returns."""
    return min(1.0, math.log(1 + _count(item, "reaction_count")) / math.log(1 + features.numbers.engagement_full_at))


def _accepted(_features: _Features, item: RecallItem) -> bool:
    return item.metadata.get("is_accepted") is True


def _citations(features: _Features, item: RecallItem) -> float:
    """Return ``min(1, step · log10(n + 1) / max)``."""
    bonus = features.numbers.citation_bonus_step * math.log10(_count(item, "citation_count") + 1)
    return min(1.0, bonus / features.numbers.citation_bonus_max)


def _count(item: RecallItem, key: str) -> int | float:
    """Return a count as metadata has it; 0 for what is none (missing, text, negative, not finite)."""
    value = item.metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        return 0
    return value


HEURISTICS = (
    Heuristic("symbol_match", "symbol", "symbol_match_bonus", _symbol),
    Heuristic("path_match", "path", "path_match_bonus", _path),
    Heuristic("heading_match", "heading", "heading_match_bonus", _heading),
    Heuristic("recency", "recency", "recency_bonus_max", _recency),
    Heuristic("engagement", "engagement", "engagement_bonus_max", _engagement),
    Heuristic("accepted_answer", "authority", "accepted_answer_bonus", _accepted),
    Heuristic("citations", "authority", "citation_bonus_max", _citations),
)
