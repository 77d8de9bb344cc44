"""How sure a full scan is of a disagreement: what the pair says, and whether the page is about the file at all.

In a repository whose documentation is kept well, most values that differ are two things of one name. What tells them
apart is affinity: a page that speaks of a file agrees with it about other names.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nornweave.core.types import Attribute
from nornweave.disagree.conflicts import FactConflict, LocatedFact
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.facts.comparison import FactComparison

CANDIDATES_FROM = 0.05
"""Conflicts below this confidence are not looked at."""
WEIGHTS: Mapping[str, float] = {
    "intercept": -0.953, "pair": 0.597, "agreeing": 0.524, "differing": -0.663, "namesakes": 0.146,
}  # fmt: skip
"""Log-odds; ``python -m lab.conflicts rank`` fits them."""
FEW_FILES, MANY_FILES = 10, 500
"""From where on affinity counts, and where in full: a handful of files say little about each other."""
_WITHOUT_PLACE: frozenset[Attribute] = frozenset(("requires", "status"))
"""Said of a project or an address: no page belongs to the file."""


@dataclass
class Affinity:
    """What each page and each file of code agree and differ about."""

    pairs: Iterable[CandidatePair]

    def __post_init__(self) -> None:
        """Count names, each once."""
        self._agreeing: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._differing: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._values: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for pair in self.pairs:
            sides = (pair.other.path, pair.code.path)
            kind = self._agreeing if pair.outcome is FactComparison.AGREE else self._differing
            kind[sides].add(pair.other.fact.name)
            self._values[pair.other.fact.name].add((pair.code.path, pair.code.fact.value))

    def features(self, code: LocatedFact, page: LocatedFact, confidence: float) -> dict[str, float]:
        """Describe a pair that differs.

        Args:
            confidence: of the pair by itself, in (0, 1).
        """
        sides, name = (page.path, code.path), page.fact.name
        agreeing = self._agreeing[sides] - {name}
        kept = min(1 - 1e-6, max(1e-6, confidence))
        return {
            "pair": math.log(kept / (1 - kept)),
            "agreeing": math.log1p(len(agreeing)),
            "differing": math.log1p(len(self._differing[sides] - agreeing - {name})),
            "namesakes": math.log1p(len(self._values[name])),
        }


def ranked(conflicts: Sequence[FactConflict], affinity: Affinity, files: int) -> list[FactConflict]:
    """Return conflicts with the confidence that a full scan has in them, the most confident first.

    Args:
        files: how many were read.
    """
    share = math.log(max(1.0, files / FEW_FILES)) / math.log(MANY_FILES / FEW_FILES)
    scored = [replace(one, confidence=round(_confidence(one, affinity, min(1.0, share)), 4)) for one in conflicts]
    return sorted(scored, key=lambda one: (-one.confidence, one.second.place, one.first.place, one.name))


def _confidence(one: FactConflict, affinity: Affinity, share: float) -> float:
    if one.second.fact.attribute in _WITHOUT_PLACE:
        return one.confidence
    described = affinity.features(one.first, one.second, one.confidence)
    score = WEIGHTS["intercept"] + math.fsum(WEIGHTS[name] * number for name, number in described.items())
    return 1 / (1 + math.exp(-(share * score + (1 - share) * described["pair"])))
