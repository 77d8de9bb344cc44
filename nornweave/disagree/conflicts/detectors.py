"""The kinds of contradiction."""

from __future__ import annotations

from enum import StrEnum

from nornweave.disagree.conflicts.records import FactConflict


class Detector(StrEnum):
    """What noticed a conflict."""

    SAME_ENTITY_DIVERGENCE = "same_entity_divergence"
    TEMPORAL_CONTRADICTION = "temporal_contradiction"
    NEGATION = "negation"
    SEMANTIC_OPPOSITION = "semantic_opposition"


def detector_of(conflict: FactConflict) -> Detector:
    """Return which of the four kinds of contradiction it is.

    One event at two times: temporal. One side denies what the other says: negation. One side switches on what the
    other switches off: opposition.
    Everything else is one thing with two values.
    """
    if conflict.attribute == "date":
        return Detector.TEMPORAL_CONTRADICTION
    sides = (conflict.first.fact, conflict.second.fact)
    if sides[0].negated != sides[1].negated:
        return Detector.NEGATION
    if all(fact.kind == "boolean" for fact in sides):
        return Detector.SEMANTIC_OPPOSITION
    return Detector.SAME_ENTITY_DIVERGENCE
