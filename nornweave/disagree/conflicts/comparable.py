"""The choice of facts to compare, which share a name and state the same property, and the comparison of their values.

``index/fact_pairs.py`` does the join of ``pairs`` in SQL over whole generations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum

from nornweave.core.types import Attribute, Fact
from nornweave.disagree.conflicts.records import LocatedFact
from nornweave.disagree.facts.comparison import FactComparison, compare
from nornweave.disagree.facts.names import is_generic, join_keys, singular
from nornweave.disagree.facts.values import Value

SIDES = ("code", "configuration", "documentation", "conversation", "research")
"""Who knows best what runs, first."""

WORD_ATTRIBUTES: frozenset[Attribute] = frozenset(("status",))
"""Stated of things in words, seldom by the name that the code gives them: any word in common will do."""
_VALUES: frozenset[Attribute] = frozenset(("default", "value", "setting"))
_COMPARED: frozenset[Attribute] = _VALUES | {"status", "requires"}
"""Facts of an older version may state something else; the next sync reads them again."""


class NameMatch(Enum):
    """How the names of two facts match."""

    SAME = "same"
    OWNED = "completed by the owner"
    """One is the end of the other; its first words are words of the other's owner: ``timeout`` of a webhook."""
    LONGER = "longer"
    """One is the end of the other, and nothing explains its first words."""
    OTHER = "other"


def match_names(one: LocatedFact, other: LocatedFact) -> NameMatch:
    """Return how the names of two facts match, by their words."""
    left, right = one.name_words, other.name_words
    if left == right:
        return NameMatch.SAME
    short, long, owner = (left, right, one) if len(left) < len(right) else (right, left, other)
    if not short or long[-len(short) :] != short:
        return NameMatch.OTHER
    return NameMatch.OWNED if owner.context.issuperset(long[: -len(short)]) else NameMatch.LONGER


def comparable(one: LocatedFact, other: LocatedFact) -> bool:
    """Tell whether two facts of one name state the same property, so that different values are a contradiction.

    Code and configuration are never compared, because a configuration is there to change the code's defaults. Two
    facts of one side are compared only if their domains differ and neither domain is ``code``.
    """
    a, b = one.fact, other.fact
    if a.side == b.side and (one.domain == other.domain or "code" in {one.domain, other.domain}):
        return False
    if {a.side, b.side} == {"code", "configuration"}:
        return False
    if ("min" in one.name_words) != ("min" in other.name_words):
        return False
    if any("hedged" in fact.qualifiers and fact.side in {"conversation", "research"} for fact in (a, b)):
        return False  # what people recommend is no value that something has
    match = match_names(one, other)
    if "research" in {a.side, b.side} and (is_generic(a.name) or is_generic(b.name) or match is NameMatch.LONGER):
        return False  # a paper's timeout is that of its own experiment
    if a.attribute not in WORD_ATTRIBUTES and match is NameMatch.OTHER:
        return False
    if a.attribute == b.attribute:
        return a.attribute in _COMPARED
    return a.attribute in _VALUES and b.attribute in _VALUES


def value_of(fact: Fact) -> Value:
    """Return the value of a fact for comparison."""
    return Value(fact.kind, fact.value, fact.unit)


def outcome(a: Fact, b: Fact) -> FactComparison:
    """Compare the values of two comparable facts. A denied value differs only from the same value that is not denied.

    If the code's default is empty, such as ``None``, the value usually comes from elsewhere. The result is undecided.
    """
    if any(fact.side == "code" and fact.kind == "none" for fact in (a, b)) and a.kind != b.kind:
        return FactComparison.UNDECIDED
    found = compare(value_of(a), value_of(b))
    if a.negated == b.negated:
        return FactComparison.UNDECIDED if a.negated else found
    return FactComparison.DIFFER if found is FactComparison.AGREE else FactComparison.UNDECIDED


def ordered(a: LocatedFact, b: LocatedFact) -> tuple[LocatedFact, LocatedFact]:
    """Return the two facts. The first is from the side that is closer to the running system."""
    first, second = sorted((a, b), key=lambda one: (SIDES.index(one.fact.side), one.place, one.fact.span))
    return first, second


MAX_BLOCK = 400
"""Facts of one key that are compared: a name that stands in more places says nothing."""


def keys_of(fact: Fact) -> frozenset[str]:
    """Return the join keys of a fact.

    A name that only gives the kind of value (``timeout``) has further keys with a word of its owner (``webhook
    timeout``). Statuses have a key for each word of the name. Examples have no keys.
    """
    if fact.form == "example":
        return frozenset()
    keys = set(join_keys(fact.name))
    if fact.attribute in WORD_ATTRIBUTES:
        keys |= {f"{fact.attribute} {word}" for word in fact.name.split() if len(word) > 3 and not is_generic(word)}
    if fact.form == "topic" or is_generic(fact.name):
        for word in fact.owner.split()[-4:]:
            keys.add(f"{singular(word)} {fact.name}")
    return frozenset(keys)


def pairs(facts: Sequence[LocatedFact]) -> Iterator[tuple[int, int]]:
    """Yield each pair of comparable facts that share a key, once, as their two indices in ascending order."""
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
