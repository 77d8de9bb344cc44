"""A logistic model of labelled bags of candidates: fitted, and measured on groups that it never saw.

A labelled pair of passages has several candidate pairs of facts, and the label does not say which of them it means. So
it is a *bag* (Dietterich et al. 1997): of a positive bag one candidate is right, of a negative bag none is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nornweave.disagree.conflicts.decision import Model

Array = NDArray[np.float64]
Features = Mapping[str, float]

MAX_STEPS = 60
MAX_ROUNDS = 30
"""Of choosing the candidate of each positive bag anew."""
REFITS = 3
START = Model(
    0.0,
    {"longer_name": -1.5, "same_owner": 1.0, "siblings": -2.0, "qualified": -2.0},
)
"""Chooses the rivals of the first fit: only what anybody would say who has seen no data."""


@dataclass(frozen=True, slots=True)
class Bag:
    """The candidates of a labelled case: features of each; without any it gets no alarm, whatever the model."""

    positive: bool
    candidates: tuple[Features, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class FittingCase:
    """A labelled case.

    Attributes:
        group: cases of one group are never split between training and measuring.
        candidates: features of what is compared, as a model chooses it.
        weight: how much it counts; agreements count little each, for there are thousands.
    """

    group: str
    positive: bool
    candidates: Callable[[Model], Sequence[Features]]
    weight: float = 1.0

    def bag(self, model: Model) -> Bag:
        """Return what a model compares of it."""
        return Bag(self.positive, tuple(self.candidates(model)), self.weight)


def confidence_of(bag: Bag, model: Model) -> float:
    """Return the probability of the best candidate, 0 without candidates."""
    return max((model.probability(candidate) for candidate in bag.candidates), default=0.0)


def fit(bags: Sequence[Bag], *, l2: float = 1.0) -> Model:
    """Fit by turns: choose the likeliest candidate of each positive bag, fit, until the choice stays.

    Args:
        l2: inverse variance of the weights' prior; the intercept has next to none.
    """
    names = sorted({name for bag in bags for candidate in bag.candidates for name in candidate})
    filled = [bag for bag in bags if bag.candidates]
    if not filled:
        return Model(0.0, {})
    matrices = [np.array([[1.0, *(one.get(name, 0.0) for name in names)] for one in bag.candidates]) for bag in filled]
    labels = np.concatenate([np.full(len(bag.candidates), float(bag.positive)) for bag in filled])
    # To begin with, each candidate of a positive bag counts as a part of the right one.
    shares = [
        bag.weight * np.full(len(bag.candidates), 1 / len(bag.candidates) if bag.positive else 1.0) for bag in filled
    ]
    weights = np.zeros(len(names) + 1)
    chosen: list[int] = []
    for _ in range(MAX_ROUNDS):
        weights = _newton(np.concatenate(matrices), labels, np.concatenate(shares), l2, weights)
        best = [int(np.argmax(rows @ weights)) for rows in matrices]
        if best == chosen:
            break
        chosen = best
        shares = [
            bag.weight * (np.eye(len(rows))[at] if bag.positive else np.ones(len(rows)))
            for bag, rows, at in zip(filled, matrices, best, strict=True)
        ]
    return Model(float(weights[0]), {name: float(one) for name, one in zip(names, weights[1:], strict=True)})


def fit_cases(cases: Sequence[FittingCase], *, l2: float = 1.0) -> Model:
    """Fit to cases whose candidates depend on the model: which rival of a fact is compared is its choice, too."""
    model = START
    for _ in range(REFITS):
        model = fit([case.bag(model) for case in cases], l2=l2)
    return model


def cross_validate(cases: Sequence[FittingCase], *, l2: float = 1.0) -> list[float]:
    """Return the confidence of each case, in order, by a model that was fitted without its group."""
    models = {
        group: fit_cases([case for case in cases if case.group != group], l2=l2)
        for group in sorted({case.group for case in cases})
    }
    return [confidence_of(case.bag(models[case.group]), models[case.group]) for case in cases]


def _sigmoid(scores: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -40, 40))), dtype=np.float64)


def _newton(rows: Array, labels: Array, shares: Array, l2: float, weights: Array) -> Array:
    """Minimise the weighted logistic loss with its penalty by Newton's method with step halving."""
    penalty = np.full(rows.shape[1], l2)
    penalty[0] = 1e-4

    def loss(at: Array) -> float:
        scores = rows @ at
        return float(shares @ (np.logaddexp(0, scores) - labels * scores) + penalty @ (at * at) / 2)

    for _ in range(MAX_STEPS):
        predicted = _sigmoid(rows @ weights)
        gradient = rows.T @ (shares * (predicted - labels)) + penalty * weights
        curvature = (rows * (shares * predicted * (1 - predicted))[:, None]).T @ rows + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6 and loss(weights - size * step) > loss(weights):
            size /= 2
        weights = weights - size * step
        if float(np.abs(size * step).max()) < 1e-9:
            break
    return weights
