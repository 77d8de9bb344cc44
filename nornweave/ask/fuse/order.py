"""The order of the first places of an answer from several domains, by how their passages speak to the question.

Each domain ranks its own passages, and a score says little of what tells an answer from its neighbour: that it holds
the question's words, some of them side by side, is not a mere line, and does not only declare a type. A linear model
weighs that beside the logarithm of the score, because what counts is how many times better a score is.
It is fitted to questions with known places. Each place keeps its score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from nornweave.ask.fuse.records import FusedItem
from nornweave.ask.search.exact import asks_for_newest
from nornweave.ask.search.history import asks_for_past
from nornweave.ask.search.query import read_query
from nornweave.core.text.analyzer import FUNCTION_TERMS, distinct_terms, sequence
from nornweave.core.types import Domain

MODEL: Mapping[str, float] = MappingProxyType(
    {"score": 8.753, "words": 1.231, "pairs": 2.395, "length": 1.199, "type": -0.779}
)
"""Coefficients, as ``python -m lab.order`` printed them."""
PLACES = 10
"""Places among which the order changes."""
ORDERED = frozenset({Domain.CODE.value, Domain.DOCUMENTATION.value})
"""The domains whose passages change places; questions with known places were about these."""
READ_CHARACTERS, LONG = 4_000, 150
"""What is read of a passage, more than a passage of ours has; and the characters from which it is not a mere line."""
_sequence, _distinct = lru_cache(256)(sequence), lru_cache(256)(distinct_terms)
_TYPES = frozenset({"class", "enum", "interface", "protocol", "record", "struct", "trait", "type", "union"})
"""What the types of nodes are called that declare a type."""


def order(items: Sequence[FusedItem], question: str, model: Mapping[str, float] = MODEL) -> tuple[FusedItem, ...]:
    """Order the first items of a ranking with calibrated scores, best first, by a model.

    The order stays if the question asks for the past or the newest, which was compared by time. An item that lost a
    conflict does not pass another, and items of other domains than ``ORDERED`` keep their places. Items of one domain
    keep their order among themselves: the model's words cost searches in one domain more than they bring.

    Returns:
        Every item once; the scores by place are those of the given ranking.
    """
    places = [place for place, item in enumerate(items[:PLACES]) if item.domain in ORDERED]
    if len(places) < 2 or asks_for_past(question) or asks_for_newest(read_query(question)):
        return tuple(items)
    values: dict[int, float] = {}
    least: dict[str, float] = {}
    for place in places:
        item = items[place]
        value = math.fsum(model[name] * number for name, number in features(item, question).items())
        value = min(value, least.get(item.domain, value))
        values[place] = least[item.domain] = min([value, *values.values()]) if item.lost else value
    ordered = list(items)
    for place, chosen in zip(places, sorted(places, key=lambda each: -values[each]), strict=True):
        if place != chosen:
            item, score = items[chosen], items[place].score
            signals = MappingProxyType({**item.signals, "order": score - item.score})
            ordered[place] = replace(item, score=score, signals=signals)
    return tuple(ordered)


def features(item: FusedItem, question: str) -> dict[str, float]:
    """Return what a model weighs of a ranked item."""
    asked, text = _sequence(question), item.item.content[:READ_CHARACTERS]
    terms = {*asked} - FUNCTION_TERMS
    held, of = terms & _distinct(text), len(terms) or 1
    pairs = {pair for pair in pairwise(asked) if held.issuperset(pair)}
    return {
        "score": math.log(max(item.score, 0.0) + 0.05),
        "words": len(held) / of,
        "pairs": len(pairs.intersection(pairwise(_sequence(text)))) / of if pairs else 0.0,
        "length": math.log(1 + min(len(text), LONG)),
        "type": float(not _TYPES.isdisjoint(str(item.item.metadata.get("node_type")).split("_"))),
    }
