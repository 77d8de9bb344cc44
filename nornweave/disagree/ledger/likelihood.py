"""How likely the conflicts of a corpus are. Without a question, a pair alone is not enough evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.apart import OF_FILES
from nornweave.disagree.conflicts.decision import rivals_of
from nornweave.disagree.drift.ranking import CANDIDATES_FROM, SHOWN_FROM, Affinity, confidence_in

LIKELY = SHOWN_FROM
UNSUPPORTED = 0.18
"""What is left of the confidence in a pair whose files agree about nothing else: of 181 such pairs in 241 repositories
some 26 were right (docs/figures-archive.md)."""


def likely_conflicts(facts: Sequence[LocatedFact], joined: Sequence[tuple[int, int]]) -> list[FactConflict]:
    """Return the conflicts of a corpus, most confident first.

    A conflict of code and documentation is judged by its section and class, as in ``nornweave drift``, but without
    learned templates. A conflict that drift would not show is kept if the pair alone is convincing, with the usual
    confidence of such pairs. A conflict with statements of people or papers is judged by the pair alone.

    Args:
        facts: the facts of all documents.
        joined: the indices of each two facts that share a name.
    """
    rivals = rivals_of(facts, joined=joined)
    affinity = Affinity(chain.from_iterable(rivals.values()))
    files = len({fact.place for fact in facts if fact.domain in OF_FILES})
    found = find_conflicts(facts, rivals=rivals, min_confidence=CANDIDATES_FROM)
    weighed = ((one, _likelihood(one, affinity, files)) for one in found)
    kept = [
        replace(one, confidence=likely)
        for one, likely in weighed
        if one.confidence >= MIN_CONFIDENCE or likely >= LIKELY
    ]
    return sorted(kept, key=lambda one: -one.confidence)


def _likelihood(one: FactConflict, affinity: Affinity, files: int) -> float:
    if not {one.first.domain, one.second.domain} <= OF_FILES:
        return one.confidence
    supported = confidence_in(one, affinity, files)
    return supported if supported >= LIKELY else max(supported, UNSUPPORTED * one.confidence)
