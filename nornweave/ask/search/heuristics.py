"""Bonuses for a candidate in addition to its relevance, as one table.

A question names symbols, files and words of headings; a chunk has a date, reactions, citations. Pure: the clock is a
parameter.
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
from nornweave.config import BonusSetting, RerankingSettings
from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms
from nornweave.core.text.dates import aware
from nornweave.core.text.index_fields import paths_in
from nornweave.core.types import Domain

# Of qualified names: ``Outer.Inner``, ``ledger::Entry``, ``Wallet#pay``.
_NAME_SEPARATORS = re.compile(r"[.:#]+")
# Words with ``CamelCase`` or ``snake_case`` in them; what is longer is a blob.
_IDENTIFIER = re.compile(r"(?<!\w)(?=\w*?(?:[A-Z][a-zA-Z0-9]|[a-z]_[a-z_]))\w{1,128}(?!\w)")

Bonuses: TypeAlias = Mapping[str, float]
NO_BONUSES: Bonuses = MappingProxyType({})

# Of each domain: heuristic → the highest bonus, and what a bonus weighs beside the model's score.
TABLE: Mapping[Domain, Mapping[str, tuple[float, float]]] = {
    Domain.CODE: {"symbol_match": (0.15, 0.3), "path_match": (0.10, 0.3)},
    Domain.DOCUMENTATION: {"heading_match": (0.10, 0.2), "recency": (0.05, 0.1)},
    Domain.CONVERSATIONS: {"recency": (0.15, 0.25), "engagement": (0.05, 0.1)},
    Domain.RESEARCH: {"accepted_answer": (0.05, 0.2), "citations": (0.10, 0.2), "recency": (0.05, 0.1)},
}
# What a domain file may set the highest bonus of; one that the table lacks has the usual weight.
SETTINGS: Mapping[str, BonusSetting] = {
    "symbol_match": "symbol_match_bonus", "heading_match": "heading_match_bonus", "recency": "recency_bonus_max"
}  # fmt: skip
USUAL_WEIGHT = 0.3


class Cues(NamedTuple):
    """The properties of a query with which candidates are compared."""

    identifiers: frozenset[str]  # of the query, as written
    paths: frozenset[str]  # of files and folders that it names, ``/src/payments/``, in lower case
    terms: frozenset[str]  # the analyzer's, without those of function words
    now: datetime


def _symbol(cues: Cues, item: RecallItem) -> bool:
    """Return whether the query names the defined symbol exactly as written."""
    names = (item.metadata.get(key) for key in ("function_name", "class_name"))
    written = (part for name in names if isinstance(name, str) for part in _NAME_SEPARATORS.split(name))
    return not cues.identifiers.isdisjoint(written)


def _path(cues: Cues, item: RecallItem) -> bool:
    """Return whether the query names the file or one of its folders by consecutive whole components of the path."""
    return any(path in f"/{item.citation.source_path.lower()}/" for path in cues.paths)


def _heading(cues: Cues, item: RecallItem) -> bool:
    heading = item.citation.section or item.citation.title
    return heading is not None and not cues.terms.isdisjoint(query_terms(heading))


def _recency(cues: Cues, item: RecallItem) -> float:
    """Return ``exp(-days / 30)`` for messages, else ``1 - days / 90``. A date in the future counts as today."""
    written = dated(item.citation.domain_id, item.metadata, item.citation.timestamp)
    if written is None:
        return 0.0
    days = max(0.0, (aware(cues.now) - aware(written)).total_seconds() / 86_400)
    return math.exp(-days / 30) if item.citation.domain_id == Domain.CONVERSATIONS else max(0.0, 1 - days / 90)


def _powers_of_ten(item: RecallItem, key: str) -> float:
    """Return ``log10(1 + n)`` of a count; 0 for a value that is no count (missing, text, negative, not finite)."""
    count = item.metadata.get(key)
    if isinstance(count, bool) or not isinstance(count, (int, float)) or not 0 <= count < math.inf:
        return 0.0
    return math.log(1 + count) / math.log(10)


# The share of the highest bonus that a candidate gets, in [0, 1].
SHARES: Mapping[str, Callable[[Cues, RecallItem], float]] = {
    "symbol_match": _symbol,
    "path_match": _path,
    "heading_match": _heading,
    "recency": _recency,
    "engagement": lambda _, item: min(1.0, _powers_of_ten(item, "reaction_count") / math.log10(11)),  # 1 for ten
    "accepted_answer": lambda _, item: item.metadata.get("is_accepted") is True,
    "citations": lambda _, item: min(1.0, _powers_of_ten(item, "citation_count") / 5),  # .02 for a power of ten
}


def heuristics_of(domain: Domain, settings: RerankingSettings) -> dict[str, tuple[float, float]]:
    """Return heuristic → its highest bonus and its weight in a domain. The configuration replaces usual values."""
    known = dict(TABLE[domain])
    for name, setting in SETTINGS.items():
        if setting in settings.heuristics:
            known[name] = (settings.heuristics[setting], known.get(name, (0, USUAL_WEIGHT))[1])
    general = settings.weights.heuristic
    return {name: (highest, weight if general is None else general) for name, (highest, weight) in known.items()}


def all_bonuses(
    items: Sequence[RecallItem], query: str, heuristics: Mapping[str, tuple[float, float]], now: datetime
) -> list[Bonuses]:
    """Return each item's bonuses by heuristic, before weights; zero bonuses are left out."""
    cues = cues_of(query, now)
    given = ({name: highest * SHARES[name](cues, item) for name, (highest, _) in heuristics.items()} for item in items)
    return [MappingProxyType({name: bonus for name, bonus in each.items() if bonus > 0}) for each in given]


def cues_of(query: str, now: datetime) -> Cues:
    """Return the cues of a query."""
    named = (path.lstrip("/").rstrip("/.") for path in paths_in(query.lower()))
    paths = frozenset(f"/{path}/" for path in named if "/" in path or "." in path)
    return Cues(frozenset(_IDENTIFIER.findall(query)), paths, frozenset(query_terms(query)) - FUNCTION_TERMS, now)
