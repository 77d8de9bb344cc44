"""Compare two evaluations query by query, with a test of significance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FLIPS = 10_000
BLOCK = 500
"""Flips that are drawn at a time."""
EXACT_UP_TO = 13
"""So many differing queries are flipped in all 8,192 ways; more of them at random."""
RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 20240229


@dataclass(frozen=True, slots=True)
class QueryChange:
    """One query's value before and after."""

    query: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """Return after minus before; negative means worse."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationComparison:
    """The comparison of two evaluations over the same queries.

    Attributes:
        queries: the number of queries that both have.
        before: the earlier mean over these queries.
        after: the later mean over these queries.
        low: lower end of the 95 % bootstrap interval of the mean difference.
        high: upper end of this interval.
        p_value: two-sided p-value of the paired randomisation test; 1 when no query differs.
        p_drop: one-sided p-value: the probability of such a drop if both evaluations are equally good.
        worse: the queries whose value fell, largest drop first, then by query id.
        better: the number of queries whose value rose.
    """

    queries: int
    before: float
    after: float
    low: float
    high: float
    p_value: float
    p_drop: float
    worse: tuple[QueryChange, ...]
    better: int

    @property
    def difference(self) -> float:
        """Return after minus before; negative means worse."""
        return self.after - self.before


def compare(before: Mapping[str, float], after: Mapping[str, float]) -> EvaluationComparison | None:
    """Compare two measurements over the queries that both have.

    Under the null hypothesis the two values of a query can be swapped. So the sign of each difference is flipped at
    random (10,000 times with a fixed seed; in all ways if few queries differ), and the resulting means are compared
    with the observed mean.

    Returns:
        The comparison; ``None`` if the two have no query in common.

    Source: Smucker, Allan & Carterette, "A comparison of statistical significance tests for information retrieval
    evaluation", CIKM 2007 (Fisher's randomisation test, two-sided); the interval is Efron & Tibshirani 1993, ch. 13.
    """
    common = sorted(before.keys() & after.keys())
    if not common:
        return None
    changes = [QueryChange(query, before[query], after[query]) for query in common]
    differences = np.array([change.difference for change in changes], np.float64)
    p_value, p_drop = _randomisation_test(differences[differences != 0])
    low, high = bootstrap_interval(differences)
    return EvaluationComparison(
        queries=len(common),
        before=math.fsum(change.before for change in changes) / len(common),
        after=math.fsum(change.after for change in changes) / len(common),
        low=low,
        high=high,
        p_value=p_value,
        p_drop=p_drop,
        worse=tuple(sorted((change for change in changes if change.difference < 0),
                           key=lambda change: (change.difference, change.query))),
        better=int((differences > 0).sum()),
    )  # fmt: skip


def _randomisation_test(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Return the two-sided p-value and the p-value of a drop. The input must not contain differences of 0."""
    if not len(differences):
        return 1.0, 1.0
    found = differences.sum()
    sums = _flipped_sums(differences)
    # Sums of the same numbers in another order differ in their last digits.
    slack = 1e-9 * np.abs(differences).sum()
    # The observed signs count as one of the flips, so the p-value is never 0.
    drawn = 0 if len(differences) <= EXACT_UP_TO else 1
    two_sided, lower = (
        float((flips.sum() + drawn) / (len(sums) + drawn))
        for flips in (np.abs(sums) >= abs(found) - slack, sums <= found + slack)
    )
    return two_sided, lower


def _flipped_sums(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of the differences under all sign flips, or under a random sample of them."""
    count = len(differences)
    if count <= EXACT_UP_TO:
        flipped = np.arange(2**count)[:, None] >> np.arange(count)[None, :] & 1
        return _flip_signs(differences, flipped.astype(np.float64))
    generator = np.random.default_rng(SEED)
    # In blocks: all flips of thousands of queries would take hundreds of megabytes.
    return np.concatenate([_flip_signs(differences, _random_bits(generator, count)) for _ in range(FLIPS // BLOCK)])


def _flip_signs(differences: NDArray[np.float64], flipped: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = differences.sum() - 2 * (flipped @ differences)
    return sums


def _random_bits(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    drawn = np.frombuffer(generator.bytes(BLOCK * -(-count // 8)), np.uint8).reshape(BLOCK, -1)
    return np.unpackbits(drawn, axis=1, count=count).astype(np.float64)


def bootstrap_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a mean (Efron & Tibshirani 1993, ch. 13; seeded).

    Args:
        values: one value per query; must not be empty.
    """
    means = _resamples(len(values)) @ values / len(values)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)


@lru_cache(maxsize=4)
def _resamples(size: int) -> NDArray[np.float64]:
    """Return how often each resample contains each query. Equal sizes give equal resamples."""
    generator = np.random.default_rng(SEED)
    return generator.multinomial(size, np.full(size, 1 / size), RESAMPLES).astype(np.float64)
