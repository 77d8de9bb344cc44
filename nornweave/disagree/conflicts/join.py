"""Pair comparable facts that share a name, in memory.

``store/fact_pairs.py`` does the same join in SQL over whole generations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from nornweave.core.types import Fact
from nornweave.disagree.conflicts.comparable import WORD_ATTRIBUTES, comparable
from nornweave.disagree.conflicts.records import LocatedFact
from nornweave.disagree.facts.names import is_generic, join_keys, singular

MAX_BLOCK = 400
"""Facts of one key that are compared: a name that stands in more places says nothing."""


def keys_of(fact: Fact) -> frozenset[str]:
    """Return the join keys of a fact.

    Names that say only what kind of value it is (``timeout``) are joined with a word of their owner, too (``webhook
    timeout``). Statuses go by single words.
    """
    keys = set(join_keys(fact.name))
    if fact.attribute in WORD_ATTRIBUTES:
        keys |= {f"{fact.attribute} {word}" for word in fact.name.split() if len(word) > 3 and not is_generic(word)}
    if fact.form == "topic" or is_generic(fact.name):
        for word in fact.owner.split()[-4:]:
            keys.add(f"{singular(word)} {fact.name}")
    return frozenset(keys)


def pairs(facts: Sequence[LocatedFact]) -> Iterator[tuple[int, int]]:
    """Yield the places of every two comparable facts that share a key, once, in order."""
    blocks: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(facts):
        for key in keys_of(one.fact):
            blocks[key].append(place)
    seen: set[tuple[int, int]] = set()
    for key in sorted(blocks):
        places = blocks[key]
        if len(places) < 2 or len(places) > MAX_BLOCK:
            continue
        for at, first in enumerate(places):
            for second in places[at + 1 :]:
                if (first, second) not in seen and comparable(facts[first], facts[second]):
                    seen.add((first, second))
                    yield first, second
