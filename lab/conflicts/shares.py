"""Shares with honest intervals, precision and recall, reliability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# The normal quantile of a 95 % interval.
_Z = 1.959964
BINS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Edges of the bins of confidence; the last one holds 1.0 as well."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of some cases, with its 95 % interval; all in [0, 1]. Of nothing it is 0, in [0, 1]."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval (Wilson, JASA 1927): honest for small numbers and near 0 and 1."""
        if not self.of:
            return 0.0, 1.0
        spread = _Z * math.sqrt(self.value * (1 - self.value) / self.of + _Z**2 / (4 * self.of**2))
        middle = self.value + _Z**2 / (2 * self.of)
        scale = 1 + _Z**2 / self.of
        return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} [{low:.2f}, {high:.2f}]  {self.hits}/{self.of}"

    def as_json(self) -> dict[str, float | int]:
        """Return it with its interval, as it is written to files."""
        low, high = self.interval
        return {"hits": self.hits, "of": self.of, "share": self.value, "low": low, "high": high}


@dataclass(frozen=True, slots=True)
class Figures:
    """Precision: alarms that are right. Recall: contradictions that are found."""

    precision: Share
    recall: Share

    def as_json(self) -> dict[str, dict[str, float | int]]:
        """Return both, as they are written to files."""
        return {"precision": self.precision.as_json(), "recall": self.recall.as_json()}


def figures(outcomes: Iterable[tuple[bool, bool]]) -> Figures:
    """Measure.

    Args:
        outcomes: for each case whether it is a conflict, and whether there was an alarm.
    """
    cases = list(outcomes)
    right = sum(conflict and alarm for conflict, alarm in cases)
    return Figures(Share(right, sum(alarm for _, alarm in cases)), Share(right, sum(conflict for conflict, _ in cases)))


def reliability(judged: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, float, float, Share]]:
    """Yield for each bin of confidence that has cases: its edges, the mean confidence, the share that is right.

    Args:
        judged: confidence in [0, 1] and whether it is right, in any order.
    """
    for low, high in pairwise(BINS):
        inside = [one for one in judged if low <= one[0] < high or (high == BINS[-1] == one[0])]
        if inside:
            mean = math.fsum(confidence for confidence, _ in inside) / len(inside)
            yield low, high, mean, Share(sum(right for _, right in inside), len(inside))
