"""Stage 4, first half: which items contradict each other, by the facts that they state.

The decision is ``nornweave.disagree.conflicts``', the same for queries, the ledger and ``nornweave drift``.
"""

from __future__ import annotations

from collections.abc import Sequence

from nornweave.ask.fuse.records import Disagreement, TaggedItem
from nornweave.disagree.conflicts import POSSIBLE_FROM, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.detectors import detector_of


def find_disagreements(
    items: Sequence[TaggedItem], *, min_confidence: float = POSSIBLE_FROM
) -> tuple[Disagreement, ...]:
    """Return the pairs of items that contradict each other.

    Args:
        items: in any order; their places in it are what ``Disagreement.first`` and ``second`` mean.
        min_confidence: in [0, 1].

    Returns:
        At most one per pair, the most confident one; by ``first``, then ``second``.
    """
    located = [one for place, tagged in enumerate(items) for one in _located(place, tagged)]
    best: dict[tuple[int, int], Disagreement] = {}
    for conflict in find_conflicts(located, min_confidence=min_confidence):
        found = _disagreement(conflict)
        if found.first != found.second:
            best.setdefault((found.first, found.second), found)
    return tuple(best[pair] for pair in sorted(best))


def _located(place: int, tagged: TaggedItem) -> list[LocatedFact]:
    citation = tagged.item.citation
    return [
        LocatedFact(
            fact=fact,
            domain=tagged.source_domain,
            source_id=citation.source_id,
            path=citation.source_path,
            section=citation.section,
            title=citation.title,
            updated_at=citation.timestamp,
            revision=citation.revision,
            chunk_id=str(place),
        )
        for fact in tagged.facts
    ]


def _disagreement(conflict: FactConflict) -> Disagreement:
    sides = sorted((conflict.first, conflict.second), key=lambda side: int(side.chunk_id))
    return Disagreement(
        first=int(sides[0].chunk_id),
        second=int(sides[1].chunk_id),
        detector=detector_of(conflict),
        entity=conflict.name,
        attribute=_attribute(conflict),
        facts=(sides[0].fact, sides[1].fact),
        explanation=conflict.explanation,
        confidence=conflict.confidence,
    )


def _attribute(conflict: FactConflict) -> str:
    return "http_status" if conflict.attribute == "status" else conflict.attribute
