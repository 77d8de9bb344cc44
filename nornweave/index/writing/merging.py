"""Which segments a build writes anew, together with what changed.

Sizes of segments are tiers: each is larger than all newer ones together, so there are few, and a document is written
again a few times in its life, not at every publication.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SMALLEST = 1_000
"""A domain of so few chunks is one segment without anything that is gone: to write it takes no time."""
NEGLIGIBLE_SHARE = 32
"""A segment of less than this part of ``SMALLEST`` is always written anew: to be a file costs more than it holds."""
LARGEST = 1_000_000
"""Chunks of one segment; more are written as several."""
WORN_SHARE = 0.3
"""A segment of which more is gone is written anew."""


class SegmentFill(NamedTuple):
    """A segment that a build could keep: how many chunks it has, and how many of them there still are."""

    name: str
    chunks: int
    live: int


def joining(held: Sequence[SegmentFill], changed: int) -> set[str]:
    """Choose the segments that are written anew.

    Over 365 days on each of which 50 of 60,000 documents change, this leaves at most 10 segments of together 1.3 times
    the size of one, and writes a document 4 times (``python -m lab.bench --only segments``).

    Args:
        held: of the newest publication.
        changed: chunks of the documents that are written in any case.
    """
    if changed + sum(each.live for each in held) <= SMALLEST:
        is_whole = not changed and all(each.live == each.chunks for each in held)
        return set() if is_whole else {each.name for each in held}
    worn = [each for each in held if each.chunks - each.live > each.chunks * WORN_SHARE]
    joined, building = {each.name for each in worn}, changed + sum(each.live for each in worn)
    for each in sorted(held, key=lambda each: each.live):
        is_light = each.live <= max(building, SMALLEST // NEGLIGIBLE_SHARE)
        if not building or not is_light or building + each.live > LARGEST:
            break
        if each.name not in joined:
            joined.add(each.name)
            building += each.live
    return joined
