"""Stage 4, first half: which items contradict each other, by the facts that they state.

The decision is ``nornweave.disagree.conflicts``', the same for queries, the ledger and ``nornweave drift``.
"""

from __future__ import annotations

from collections.abc import Sequence

from nornweave.ask.fuse.records import Disagreement, FusedItem
from nornweave.disagree.conflicts import POSSIBLE_FROM, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.detectors import detector_of


def find_disagreements(
    items: Sequence[FusedItem], *, min_confidence: float = POSSIBLE_FROM
) -> tuple[Disagreement, ...]:
    """Return the pairs of items that contradict each other.

    Args:
        items: in any order; their places in it are what ``Disagreement.first`` and ``second`` mean.
        min_confidence: in [0, 1].

    Returns:
        At most one per pair, the most confident one; by ``first``, then ``second``.
    """
    located = [fact for place, fused in enumerate(items) for fact in _located(place, fused)]
    best: dict[tuple[int, int], Disagreement] = {}
    for conflict in find_conflicts(located, min_confidence=min_confidence):
        pair = _disagreement(conflict)
        if pair.first != pair.second:
            best.setdefault((pair.first, pair.second), pair)
    return tuple(best[pair] for pair in sorted(best))


def _located(place: int, fused: FusedItem) -> list[LocatedFact]:
    citation = fused.citation
    return [
        LocatedFact(
            fact=fact,
            domain=fused.domain,
            source_id=citation.source_id,
            path=citation.source_path,
            section=citation.section,
            title=citation.title,
            updated_at=citation.timestamp,
            revision=citation.revision,
            chunk_id=str(place),
        )
        for fact in fused.facts
    ]


def _disagreement(conflict: FactConflict) -> Disagreement:
    sides = sorted((conflict.first, conflict.second), key=lambda side: int(side.chunk_id))
    return Disagreement(
        first=int(sides[0].chunk_id),
        second=int(sides[1].chunk_id),
        detector=detector_of(conflict),
        entity=conflict.name,
        attribute="http_status" if conflict.attribute == "status" else conflict.attribute,
        facts=(sides[0].fact, sides[1].fact),
        explanation=conflict.explanation,
        confidence=conflict.confidence,
    )
