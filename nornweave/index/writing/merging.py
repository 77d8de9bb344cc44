"""Which segments a build writes anew, together with what changed.

Sizes of segments are tiers: each is larger than all newer ones together, so there are few, and a document is written
again a few times in its life, not at every publication.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SMALLEST = 1_000
"""Segments of so few chunks are always written anew: that takes no time, and a small domain stays one whole file."""
LARGEST = 1_000_000
"""Chunks of one segment; more are written as several."""
WORN_SHARE = 0.3
"""A segment of which more is gone is written anew."""


class SegmentFill(NamedTuple):
    """A segment that a build could keep: how many chunks it has, and how many of them there still are."""

    name: str
    chunks: int
    live: int

    @property
    def is_worn(self) -> bool:
        """Tell whether too much of it is gone: readers load, and disks keep, what nobody finds."""
        return self.chunks - self.live > (0 if self.live <= SMALLEST else self.chunks * WORN_SHARE)


def joining(held: Sequence[SegmentFill], changed: int) -> set[str]:
    """Choose the segments that are written anew.

    Over 365 days on each of which 50 of 60,000 documents change, this leaves at most 7 segments of together 1.3 times
    the size of one, and writes a document 6 times (``python -m lab.bench --only segments``).

    Args:
        held: of the newest publication.
        changed: chunks of the documents that are written in any case.
    """
    joined = {each.name for each in held if each.is_worn}
    building = changed + sum(each.live for each in held if each.is_worn)
    for each in sorted(held, key=lambda each: each.live):
        if not building or each.live > max(building, SMALLEST) or building + each.live > LARGEST:
            break
        if each.name not in joined:
            joined.add(each.name)
            building += each.live
    return joined
