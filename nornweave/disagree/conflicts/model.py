"""The logistic models of facts and of sentences; ``python -m lab.conflicts fit`` and ``natural`` write them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Model:
    """Log-odds are ``intercept + Σ weight · feature``. Features without a weight are ignored."""

    intercept: float
    weights: Mapping[str, float]

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability, in (0, 1), that a pair with these features is a contradiction."""
        score = self.intercept + math.fsum(self.weights.get(name, 0.0) * number for name, number in features.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


@cache
def shipped(package: str = "nornweave.disagree.conflicts") -> Model:
    """Load the model that is part of a package."""
    file = resources.files(package).joinpath("model.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    return Model(stored["intercept"], stored["weights"])
