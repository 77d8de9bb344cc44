"""Rerank one domain's items by relevance blended with the domain's heuristics.

``final_score = clamp(model · w_model + Σ bonus · w_bonus, 0, 1)``, with the weights of the domain::

    code            model · 0.70 + (symbol + path) · 0.30
    documentation   model · 0.70 + heading · 0.20 + recency · 0.10
    conversations   model · 0.65 + recency · 0.25 + engagement · 0.10
    research        model · 0.70 + authority · 0.20 + recency · 0.10

Without a cross-encoder the combined score stands in for ``model``. The formula decides the *order* within the domain.
Its values do not compare between domains: a perfect chunk reaches 0.775 in code, 0.725 in documentation; a fresh
message gets a bonus that a fresh function cannot get; and a cross-encoder's 0.9 is not a combined 0.9. So each place in
the order keeps its calibrated score, and only the item at this place changes: what one domain knows about its own
chunks never moves it as a whole against the others.

Heuristics are bonuses in addition to relevance, as one table. A question names symbols, files and words of headings; a
chunk has a date, reactions, citations. Pure: the clock is a parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.ask.search.records import RecallItem
from nornweave.config import BonusSetting, RerankingSettings
from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms
from nornweave.core.text.dates import aware, dated
from nornweave.core.text.index_fields import paths_in
from nornweave.core.types import Domain

STEP = 1e-9
"""Tells apart, in their order, items that would get equal calibrated scores."""
ROUNDING = 1e-6
"""How far a sum of weighted scores may miss [0, 1]."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An item in its place.

    Attributes:
        item: the unchanged item.
        score: the calibrated score of the place, in [0, 1], comparable between domains.
        model_score: of the cross-encoder, in [0, 1], if one ran.
        final_score: the result of the formula, in [0, 1], which decides the order.
        bonuses: heuristic → bonus before its weight, without zeros.
    """

    item: RecallItem
    score: float
    model_score: float | None
    final_score: float
    bonuses: Bonuses


def rerank(
    items: Sequence[RecallItem],
    *,
    query: str,
    domain: Domain,
    settings: RerankingSettings,
    now: datetime,
    model_scores: Sequence[float] | NDArray[np.float32] | None = None,
    heuristics: bool = True,
) -> tuple[Ranked, ...]:
    """Order all items by ``final_score``. Callers cut the result.

    Args:
        items: in any order.
        model_scores: the scores of the cross-encoder, in [0, 1], one per item in their order.
        heuristics: whether to add bonuses. Without bonuses, the final score is the model's or, without a model, the
            item's own score.

    Returns:
        Every item once, by ``final_score`` descending, then chunk id; ``score`` gives the same order.

    Raises:
        ValueError: a score is missing or outside [0, 1], or two items have the same chunk.
    """
    if model_scores is not None and len(model_scores) != len(items):
        raise ValueError(f"{len(model_scores)} model scores for {len(items)} items; expected one for each")
    if len({item.chunk_id for item in items}) != len(items):
        raise ValueError("a chunk stands among the items twice; expected each once")
    befores = [_unit(item.score, item) for item in items]
    models: list[float | None] = [None] * len(items)
    if model_scores is not None:
        models = [_unit(score, item) for score, item in zip(model_scores, items, strict=True)]
    relevances = [before if model is None else model for before, model in zip(befores, models, strict=True)]
    bonuses, finals = [NO_BONUSES] * len(items), relevances
    if heuristics:
        known = heuristics_of(domain, settings)
        bonuses = all_bonuses(items, query, known, now)
        finals = [
            min(1.0, math.fsum([relevance * settings.weights.model, *(each[name] * known[name][1] for name in each)]))
            for relevance, each in zip(relevances, bonuses, strict=True)
        ]
    order = sorted(range(len(items)), key=lambda at: (-finals[at], items[at].chunk_id))
    return tuple(
        Ranked(item=items[at], score=place, model_score=models[at], final_score=finals[at], bonuses=bonuses[at])
        for at, place in zip(order, _places(befores, [finals[at] for at in order]), strict=True)
    )


def _places(befores: Sequence[float], finals: Sequence[float]) -> list[float]:
    """Return the scores ``befores``, best first. They are made to differ wherever the descending ``finals`` differ."""
    places = sorted(befores, reverse=True)
    for place in range(len(places) - 2, -1, -1):
        if places[place] <= places[place + 1]:
            places[place] = places[place + 1] + (STEP if finals[place] > finals[place + 1] else 0.0)
    top = max([1.0, *places[:1]])
    return places if top == 1.0 else [place / top for place in places]


def _unit(score: float, item: RecallItem) -> float:
    if not -ROUNDING <= score <= 1.0 + ROUNDING:
        raise ValueError(f"score {score!r} of chunk {item.chunk_id!r}; expected a number in [0, 1]")
    return min(1.0, max(0.0, float(score)))


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
