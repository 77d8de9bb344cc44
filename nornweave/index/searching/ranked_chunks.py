"""Ranked chunks as arrays, and selection of the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nornweave.index.port import Numbers, Scores


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Chunks from a retriever, best first. Equal scores are ordered by chunk number. Higher scores are better."""

    numbers: Numbers
    scores: Scores

    def __len__(self) -> int:
        return len(self.numbers)


NO_HITS = Hits(np.empty(0, np.int32), np.empty(0, np.float32))


def best(scores: Scores, k: int, numbers: Numbers | None = None) -> Hits:
    """Return the ``k`` highest scores. Equal scores are ordered by chunk number, which also decides which are cut off.

    Args:
        scores: one score per chunk.
        numbers: the chunk number of each score. By default it is the position of the score.
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
    """Return the ``k`` highest scores above 0. Equal scores are ordered by chunk number."""
    positive = np.flatnonzero(scores > 0)
    if len(positive) > max(k, len(scores) // 2):
        return best(scores, k)  # none of which is 0
    return best(scores[positive], k, positive.astype(np.int32))
