"""Find facts that contradict each other: joined by name, compared by value, scored by a calibrated model.

One decision for queries, the ledger and ``nornweave drift``.
"""

from nornweave.disagree.conflicts.decision import DEMOTE_FROM, MIN_CONFIDENCE, POSSIBLE_FROM, find_conflicts
from nornweave.disagree.conflicts.records import FactConflict, LocatedFact

__all__ = ["DEMOTE_FROM", "MIN_CONFIDENCE", "POSSIBLE_FROM", "FactConflict", "LocatedFact", "find_conflicts"]
