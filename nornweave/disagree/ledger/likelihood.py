"""How likely the conflicts of a corpus are: nobody asked about them, so that a pair alone does not decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from nornweave.core.types import Domain
from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.decision import rivals_of
from nornweave.disagree.drift.ranking import CANDIDATES_FROM, Affinity, ranked

LIKELY = 0.5
UNSUPPORTED = 0.25
"""What is left of the confidence in a pair whose files agree about nothing else: of 50 such pairs in 92 repositories
eight were right (docs/figures.md)."""
_OF_FILES = frozenset({Domain.CODE, Domain.DOCUMENTATION})


def likely_conflicts(facts: Sequence[LocatedFact], joined: Sequence[tuple[int, int]]) -> list[FactConflict]:
    """Return what disagrees in a corpus, the most confident first.

    Of code and documentation a conflict is as likely as ``nornweave drift`` takes it to be. One that drift would not
    show is kept where the pair alone is convincing, with the confidence that such pairs deserve. What people and papers
    say is judged by the pair.

    Args:
        facts: of all documents.
        joined: places of the pairs among them that share a name.
    """
    rivals = rivals_of(facts, joined=joined)
    found = find_conflicts(facts, joined=joined, rivals=rivals, min_confidence=CANDIDATES_FROM)
    of_files = [one for one in found if {one.first.domain, one.second.domain} <= _OF_FILES]
    others = [one for one in found if one not in of_files and one.confidence >= MIN_CONFIDENCE]
    files = len({fact.place for fact in facts if fact.domain in _OF_FILES})
    supported = ranked(of_files, Affinity(chain.from_iterable(rivals.values())), files)
    return sorted([*_kept(of_files, supported), *others], key=lambda one: -one.confidence)


def _kept(pairs: Sequence[FactConflict], supported: Sequence[FactConflict]) -> Iterator[FactConflict]:
    confidences = {_sides(one): one.confidence for one in supported}
    for one in pairs:
        confidence = confidences[_sides(one)]
        if confidence >= MIN_CONFIDENCE:
            yield replace(one, confidence=confidence)
        elif one.confidence >= MIN_CONFIDENCE:
            yield replace(one, confidence=max(confidence, UNSUPPORTED * one.confidence))


def _sides(one: FactConflict) -> tuple[object, ...]:
    return one.name, one.attribute, one.first.place, one.first.fact.span, one.second.place, one.second.fact.span
