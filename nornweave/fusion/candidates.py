"""Which items are worth comparing: of two domains, about one attribute, with a rare topic or a name in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from nornweave.fusion.agreement import says_something, subject_of
from nornweave.fusion.compatible import families_of
from nornweave.fusion.grounds import Ground, ground_of
from nornweave.fusion.records import TaggedItem
from nornweave.types import Claim

MAX_COMPARED = 1_500
"""Pairs of claims that are compared, each family a like share: those with the rarest topics first."""

# Ranges cannot contradict, but they can allow what another says.
COMPARED_MOODS = frozenset({"stated", "range"})
_ALONE = "="


def blocks_of(items: Sequence[TaggedItem]) -> Iterator[dict[int, list[Claim]]]:
    """Group claims by family and item, only families of which two domains say different things; by name."""
    blocks: dict[str, dict[int, list[Claim]]] = defaultdict(lambda: defaultdict(list))
    for place, tagged in enumerate(items):
        for claim in tagged.claims:
            if claim.mood in COMPARED_MOODS:
                for family in families_of(claim):
                    blocks[family][place].append(claim)
    for family in sorted(blocks):
        if _may_clash(blocks[family], items):
            yield blocks[family]


def _may_clash(group: Mapping[int, Sequence[Claim]], items: Sequence[TaggedItem]) -> bool:
    if len(group) < 2 or len({items[place].source_domain for place in group}) < 2:
        return False
    return len({(claim.value, claim.unit) for claims in group.values() for claim in claims}) > 1


def candidates(
    group: Mapping[int, Sequence[Claim]],
    items: Sequence[TaggedItem],
    weights: Mapping[str, float] | None,
    bound: int,
) -> Iterator[tuple[int, int]]:
    """Yield pairs of items of two domains that share a topic of weight, once, rare topics first, up to a bound."""
    holders: dict[str, list[int]] = defaultdict(list)
    for place, claims in group.items():
        for key in _keys(claims, ground(items[place])):
            holders[key].append(place)
    seen: set[tuple[int, int]] = set()
    compared = 0
    for topic in sorted(holders, key=lambda one: (len(holders[one]), one)):
        places = holders[topic]
        if len(places) < 2 or not says_something(topic, weights):
            continue
        for pair in combinations(places, 2):
            if pair not in seen and items[pair[0]].source_domain != items[pair[1]].source_domain:
                seen.add(pair)
                compared += len(group[pair[0]]) * len(group[pair[1]])
                if compared > bound:
                    return
                yield pair


def _keys(claims: Sequence[Claim], ground: Ground) -> set[str]:
    """Return what an item can be found by: what its claims speak of, its file, and attributes that need no name."""
    keys = set(ground.file)
    for claim in claims:
        subject = subject_of(claim)
        keys |= subject.specific
        if subject.family:
            keys.add(f"{_ALONE}{subject.family}")
    return keys


def where(tagged: TaggedItem) -> str:
    """Say where an item stands, for people."""
    return tagged.item.citation.source_path or tagged.item.chunk_id


def ground(tagged: TaggedItem) -> Ground:
    """Return what an item stands under: its path and headings."""
    citation = tagged.item.citation
    function = tagged.item.metadata.get("function_name")
    headings = citation.section or citation.title or ""
    return ground_of(citation.source_path, headings, function if isinstance(function, str) else None)
