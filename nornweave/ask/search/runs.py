"""Runs of neighbouring words that a query and chunks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nornweave.index.port import Numbers, Scores

SHORT_RUN = 0.5
"""What each further pair of a run leaves of the chance that its words are neighbours by accident."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Pairs of neighbouring words of a query, and the chunks that hold each.

    The index does not say where in a chunk a pair is. If a chunk has pairs that are neighbours in the query, they are
    taken for a run, which is nearly always true. Two function words form no pair and do not end a run. A value does not
    end a run either, because the chunk may have another value or none in its place.

    Attributes:
        pairs: the place of each pair's first word in the query, and the chunks with the pair, ascending.
        weights: for each word of the query, its weight.
        values: for each word of the query, whether it is a value.
    """

    pairs: Sequence[tuple[int, Numbers | None]]
    weights: Sequence[float]
    values: Sequence[bool]

    def bounds(self, size: int) -> NDArray[np.float64]:
        """Return for each chunk the weight of the words of all its pairs, an upper bound for its runs."""
        held = [
            (chunks, self.weights[place] + self.weights[place + 1])
            for place, chunks in self.pairs
            if chunks is not None
        ]
        weights = np.repeat([weight for _, weight in held], [len(chunks) for chunks, _ in held])
        return np.asarray(np.bincount(np.concatenate([chunks for chunks, _ in held]), weights, size), np.float64)

    def weigh(self, chunks: Numbers) -> tuple[Scores, Scores]:
        """Return for some chunks the weight of their runs, which grows with length, and of the heaviest run."""
        covered, longest, mass, length = np.zeros((4, len(chunks)), np.float32)
        reached, end = np.full((2, len(chunks)), -1, np.int32)
        step = 0
        for place, holding in self.pairs:
            step += not (self.values[place] or self.values[place + 1])
            if holding is None:
                continue
            places = np.minimum(np.searchsorted(holding, chunks), len(holding) - 1)
            having = np.flatnonzero(holding[places] == chunks)
            broken = having[reached[having] < step - 1]
            covered[broken] += mass[broken] * (1 - SHORT_RUN ** length[broken])
            longest[broken] = np.maximum(longest[broken], mass[broken])
            length[broken] = mass[broken] = 0
            length[having] += 1
            mass[having] += self.weights[place + 1] + self.weights[place] * (end[having] != place)
            reached[having], end[having] = step, place + 1
        complete = length == len(self.pairs)
        covered += mass * (1 - SHORT_RUN ** (length + complete))
        return covered, np.maximum(longest, mass)
