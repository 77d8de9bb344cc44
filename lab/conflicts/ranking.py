"""Fit how sure a full scan is: alarms that somebody has read, and labels that cost nothing.

An agreeing pair is what drift looks like once one side changes: positive. A page that agrees with one place of the code
is negative beside another place of the same name that differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lab.conflicts import planted as planting
from lab.conflicts.fitting import Bag, FittingCase, cross_validate, fit
from lab.conflicts.repositories import Repository
from nornweave.disagree.conflicts import find_conflicts
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.conflicts.model import Model
from nornweave.disagree.drift.ranking import CANDIDATES_FROM, Affinity
from nornweave.disagree.facts.comparison import FactComparison

Labelled = tuple[str, bool, dict[str, float], float]
"""Repository, whether it is drift, features, weight."""
_CHANCE = frozenset(("0", "1", "2", "-1", "", "[]", "10", "100", "true", "false"))


def cases(repository: Repository, read: Sequence[Mapping[str, Any]], free_weight: float) -> Iterator[Labelled]:
    """Yield the labelled cases of a repository.

    Args:
        read: alarms that somebody has read.
        free_weight: what a label that costs nothing counts.
    """
    base = planting.Base(repository)
    affinity = Affinity(base.pairs)
    labels = {_key(row): bool(row["real"]) for row in read if row["repository"] == repository.name}
    for one in find_conflicts(base.facts, min_confidence=CANDIDATES_FROM):
        key = (one.name, one.first.path, one.second.path, one.second.fact.line + 1)
        if key in labels and one.second.fact.attribute not in {"requires", "status"}:
            yield repository.name, labels[key], affinity.features(one.first, one.second, one.confidence), 1.0
    for is_drift, pair in _free(base.fact_pairs):
        yield repository.name, is_drift, affinity.features(pair.code, pair.other, pair.strength), free_weight


def _key(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return row["name"], row["first"]["path"], row["second"]["path"], row["second"]["line"]


def _free(pairs: Sequence[CandidatePair]) -> Iterator[tuple[bool, CandidatePair]]:
    by_place: dict[int, list[CandidatePair]] = {}
    for pair in pairs:
        by_place.setdefault(id(pair.other), []).append(pair)
    for rivals in by_place.values():
        agreeing = [pair for pair in rivals if pair.outcome is FactComparison.AGREE]
        differing = [pair for pair in rivals if pair.outcome is FactComparison.DIFFER]
        if agreeing and agreeing[0].other.fact.value not in _CHANCE:
            yield True, max(agreeing, key=lambda pair: pair.strength)
            if differing:
                yield False, max(differing, key=lambda pair: pair.strength)


def fitted(labelled: Sequence[Labelled]) -> tuple[dict[str, float], list[tuple[float, bool]]]:
    """Return the weights, and confidence and label of what was read, each by a fit without its repository."""
    bags = [Bag(is_drift, (features,), weight) for _, is_drift, features, weight in labelled]
    model = fit(bags)
    fitting = [
        FittingCase(group, is_drift, partial(_described, features), weight)
        for group, is_drift, features, weight in labelled
    ]
    unseen = cross_validate(fitting)
    read = [(score, one[1]) for score, one in zip(unseen, labelled, strict=True) if one[3] == 1.0]
    return {"intercept": round(model.intercept, 3), **{k: round(v, 3) for k, v in model.weights.items()}}, read


def _described(features: dict[str, float], _model: Model) -> list[dict[str, float]]:
    return [features]
