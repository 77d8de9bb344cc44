"""Bonuses for a candidate beside its relevance, as one table.

A question names symbols, files and words of headings; a chunk has a date, reactions, citations. Pure: every number
comes from the domain's settings, the clock is a parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from nornweave.ask.search.items import dated
from nornweave.ask.search.records import RecallItem
from nornweave.config import HeuristicSettings
from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms
from nornweave.core.text.dates import aware
from nornweave.core.text.index_fields import paths_in

# Of qualified names: ``Outer.Inner``, ``ledger::Entry``, ``Wallet#pay``.
_NAME_SEPARATORS = re.compile(r"[.:#]+")
# Words with ``CamelCase`` or ``snake_case`` in them; what is longer is a blob.
_IDENTIFIER = re.compile(r"(?<!\w)(?=\w*?(?:[A-Z][a-zA-Z0-9]|[a-z]_[a-z_]))\w{1,128}(?!\w)")

Bonuses: TypeAlias = Mapping[str, float]
NO_BONUSES: Bonuses = MappingProxyType({})


class Cues(NamedTuple):
    """What candidates are compared with: what a query names, the domain's numbers, the time.

    Attributes:
        identifiers: as written.
        paths: of files and folders, ``/src/payments/``, in lower case.
        terms: the analyzer's, without those of function words.
    """

    identifiers: frozenset[str]
    paths: frozenset[str]
    terms: frozenset[str]
    numbers: HeuristicSettings
    now: datetime


class Heuristic(NamedTuple):
    """One bonus: its name in explanations, its weight in ``RerankingWeights``, its highest in ``HeuristicSettings``.

    ``share`` says how much of the highest a candidate gets, in [0, 1]; a heuristic with a highest of 0 is off.
    """

    name: str
    weight: str
    setting: str
    share: Callable[[Cues, RecallItem], float]


def all_bonuses(items: Sequence[RecallItem], query: str, numbers: HeuristicSettings, now: datetime) -> list[Bonuses]:
    """Return the bonuses of each item by heuristic, before weights; what gives nothing is left out."""
    highest = {each: value for each in HEURISTICS if (value := getattr(numbers, each.setting)) > 0}
    cues = cues_of(query, numbers, now)
    given = ({each.name: value * each.share(cues, item) for each, value in highest.items()} for item in items)
    return [MappingProxyType({name: bonus for name, bonus in each.items() if bonus > 0}) for each in given]


def cues_of(query: str, numbers: HeuristicSettings, now: datetime) -> Cues:
    """Return what heuristics look for."""
    named = (path.lstrip("/").rstrip("/.") for path in paths_in(query.lower()))
    paths = frozenset(f"/{path}/" for path in named if "/" in path or "." in path)
    terms = frozenset(query_terms(query)) - FUNCTION_TERMS
    return Cues(frozenset(_IDENTIFIER.findall(query)), paths, terms, numbers, now)


def _symbol(cues: Cues, item: RecallItem) -> bool:
    """Tell whether the query names the defined symbol, exactly as it is written."""
    names = (item.metadata.get(key) for key in ("function_name", "class_name"))
    written = (part for name in names if isinstance(name, str) for part in _NAME_SEPARATORS.split(name))
    return not cues.identifiers.isdisjoint(written)


def _path(cues: Cues, item: RecallItem) -> bool:
    """Tell whether the query names the file or a folder of it, by whole names in one run."""
    own = f"/{item.citation.source_path.lower()}/"
    return any(path in own for path in cues.paths)


def _heading(cues: Cues, item: RecallItem) -> bool:
    heading = item.citation.section or item.citation.title
    return heading is not None and not cues.terms.isdisjoint(query_terms(heading))


def _recency(cues: Cues, item: RecallItem) -> float:
    """Return ``1 - days / D``, or ``exp(-days / D)``; what is dated in the future counts as of today."""
    written = dated(item.citation.domain_id, item.metadata, item.citation.timestamp)
    if written is None:
        return 0.0
    share = max(0.0, (aware(cues.now) - aware(written)).total_seconds() / 86_400 / cues.numbers.recency_days)
    return math.exp(-share) if cues.numbers.recency_decay == "exponential" else max(0.0, 1.0 - share)


def _engagement(cues: Cues, item: RecallItem) -> float:
    """Return ``min(1, ln(1 + n) / ln(1 + full))``: diminishing returns."""
    return min(1.0, _logarithm(item, "reaction_count") / math.log(1 + cues.numbers.engagement_full_at))


def _citations(cues: Cues, item: RecallItem) -> float:
    """Return ``min(1, step · log10(1 + n) / max)``."""
    share = cues.numbers.citation_bonus_step / cues.numbers.citation_bonus_max
    return min(1.0, share * _logarithm(item, "citation_count") / math.log(10))


def _logarithm(item: RecallItem, key: str) -> float:
    """Return ``ln(1 + n)`` of a count; 0 for what is none (missing, text, negative, not finite)."""
    count = item.metadata.get(key)
    if isinstance(count, bool) or not isinstance(count, (int, float)) or not 0 <= count < math.inf:
        return 0.0
    return math.log(1 + count)


HEURISTICS = (
    Heuristic("symbol_match", "symbol", "symbol_match_bonus", _symbol),
    Heuristic("path_match", "path", "path_match_bonus", _path),
    Heuristic("heading_match", "heading", "heading_match_bonus", _heading),
    Heuristic("recency", "recency", "recency_bonus_max", _recency),
    Heuristic("engagement", "engagement", "engagement_bonus_max", _engagement),
    Heuristic(
        "accepted_answer",
        "authority",
        "accepted_answer_bonus",
        lambda _, item: item.metadata.get("is_accepted") is True,
    ),
    Heuristic("citations", "authority", "citation_bonus_max", _citations),
)
