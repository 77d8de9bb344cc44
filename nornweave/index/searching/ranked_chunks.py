"""Ranked chunks as arrays, and selection of the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nornweave.index.port import Numbers, Scores


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Chunks from a retriever, best first, ties by chunk number. Higher scores are better."""

    numbers: Numbers
    scores: Scores

    def __len__(self) -> int:
        return len(self.numbers)


NO_HITS = Hits(np.empty(0, np.int32), np.empty(0, np.float32))


def best(scores: Scores, k: int, numbers: Numbers | None = None) -> Hits:
    """Return the ``k`` highest scores; ties, also at the cut, are ordered by chunk number.

    Args:
        scores: one per chunk.
        numbers: the chunk of each score; their positions unless given.
    """
    k = min(k, len(scores))
    if k <= 0:
        return NO_HITS
    lowest = np.partition(scores, len(scores) - k)[len(scores) - k] if k < len(scores) else -np.inf
    positions = np.flatnonzero(scores >= lowest)
    chosen = positions if numbers is None else numbers[positions]
    order = np.lexsort((chosen, -scores[positions]))[:k]
    return Hits(chosen[order].astype(np.int32), scores[positions[order]])


def found(scores: Scores, k: int) -> Hits:
    """Return the ``k`` highest scores above 0, ties by chunk number."""
    positive = np.flatnonzero(scores > 0)
    if len(positive) > max(k, len(scores) // 2):
        return best(scores, k)  # none of which is 0
    return best(scores[positive], k, positive.astype(np.int32))
