"""Find the contradictions among facts, each with a probability: the one decision of queries, ledger and drift."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from nornweave.core.types import Fact
from nornweave.disagree.conflicts.apart import are_of_two_environments
from nornweave.disagree.conflicts.comparable import comparable, ordered, outcome, pairs
from nornweave.disagree.conflicts.features import corpus_of, features
from nornweave.disagree.conflicts.model import Model, shipped
from nornweave.disagree.conflicts.records import FactConflict, LocatedFact
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.values import show

MIN_CONFIDENCE = 0.7
"""Below this, facts that differ are taken to be about two things: what nobody asked about needs to be sure."""
POSSIBLE_FROM = 0.5
"""In an answer both sides stand next to each other, so that the reader decides: more likely than not is enough."""
DEMOTE_FROM = 0.75
"""From this on a contradiction is so certain that one side of it may be demoted."""
SETTLED_SHARE = 0.8
"""A fact that finds its like is settled, unless it matches what it contradicts clearly better."""


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """A pair of comparable facts, the better informed one first. ``strength`` is the model's probability."""

    code: LocatedFact
    other: LocatedFact
    outcome: FactComparison
    strength: float


Rivals: TypeAlias = "dict[tuple[int, str, str], list[CandidatePair]]"
"""Place of a fact, domain and side of what it is compared with → the pairs."""


def find_conflicts(
    facts: Sequence[LocatedFact], *, min_confidence: float = MIN_CONFIDENCE, rivals: Rivals | None = None
) -> list[FactConflict]:
    """Return the facts that contradict each other.

    Args:
        facts: the facts of any number of documents.
        min_confidence: the least confidence of a conflict that is returned, in [0, 1].
        rivals: the comparisons of the same facts, if the caller has them already.

    Returns:
        The most confident conflicts first, then by place. A fact has at most one conflict with each side, such as code,
        that is better informed.
    """
    found = candidates(rivals_of(facts) if rivals is None else rivals)
    return _merged([conflict_of(one, one.strength) for one in found if one.strength >= min_confidence])


def candidates(rivals: Rivals) -> list[CandidatePair]:
    """Return the best differing pair of each fact with each better informed side, unless that side also agrees."""
    chosen = (_chosen(rivals[key]) for key in sorted(rivals))
    return [one for one in chosen if one]


def rivals_of(
    facts: Sequence[LocatedFact], *, joined: Iterable[tuple[int, int]] | None = None, model: Model | None = None
) -> Rivals:
    """Compare all facts of one name that have comparable values, whether they agree or not.

    Args:
        joined: the indices of the pairs that share a name, from a store; ``None`` to find them here.
        model: the model to use, as in fitting; ``None`` for the shipped model.
    """
    model, corpus = model or shipped(), corpus_of(facts)
    by_fact: Rivals = defaultdict(list)
    for first, second in pairs(facts) if joined is None else _comparable(facts, joined):
        code, other = ordered(facts[first], facts[second])
        found = outcome(code.fact, other.fact)
        if found is FactComparison.DIFFER and are_of_two_environments(code.fact.statement, other.fact.statement):
            continue
        if found is not FactComparison.UNDECIDED:
            strength = model.probability(features(code, other, corpus))
            place = first if facts[first] is other else second
            by_fact[place, code.domain, code.fact.side].append(CandidatePair(code, other, found, strength))
    return by_fact


def _comparable(facts: Sequence[LocatedFact], joined: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return ((first, second) for first, second in joined if comparable(facts[first], facts[second]))


def _chosen(rivals: Sequence[CandidatePair]) -> CandidatePair | None:
    differing = [one for one in rivals if one.outcome is FactComparison.DIFFER]
    if not differing:
        return None
    best = max(differing, key=lambda one: (one.strength, one.code.place, -one.code.fact.span.start))
    settled = max((one.strength for one in rivals if one.outcome is FactComparison.AGREE), default=0.0)
    return None if settled >= SETTLED_SHARE * best.strength else best


def _value(fact: Fact) -> tuple[str, str, str | None]:
    return fact.kind, fact.value, fact.unit


def conflict_of(one: CandidatePair, confidence: float) -> FactConflict:
    """Return a differing pair as a conflict."""
    names = sorted((one.code.fact.name, one.other.fact.name), key=lambda name: (-len(name), name))
    attribute = one.other.fact.attribute
    return FactConflict(
        first=one.code,
        second=one.other,
        confidence=round(confidence, 4),
        name=names[0],
        attribute="default"
        if attribute in {"value", "setting"} and one.code.fact.attribute == "default"
        else attribute,
        explanation=explanation(one.code, one.other, names[0]),
    )


def explanation(first: LocatedFact, second: LocatedFact, name: str) -> str:
    """Return a sentence that explains a conflict, with both values and places."""
    said = (
        f"{one.path or one.fact.side}{f':{one.line_range[0]}' if one.line_range else ''} says "
        f"{'not ' if one.fact.negated else ''}{show(one.fact.kind, one.fact.value, one.fact.unit)}"
        for one in (second, first)
    )
    return f"{name} ({second.fact.attribute}): {'; '.join(said)}"


def _merged(conflicts: Sequence[FactConflict]) -> list[FactConflict]:
    """Return the most certain of all conflicts with the same name and the same values. ``also`` lists the others."""
    best: dict[tuple[object, ...], FactConflict] = {}
    others: dict[tuple[object, ...], dict[LocatedFact, None]] = defaultdict(dict)
    lines: set[tuple[object, ...]] = set()
    for one in sorted(conflicts, key=lambda one: (-one.confidence, one.first.place, one.second.place, one.name,
                                                  one.second.fact.span)):  # fmt: skip
        line = (one.second.place, one.second.fact.line, _value(one.second.fact), one.first.place)
        if line in lines:  # the same line under another of its names
            continue
        lines.add(line)
        key = (one.name, _value(one.first.fact), _value(one.second.fact), one.first.place, one.second.place)
        if key in best:
            others[key][one.second] = None
        else:
            best[key] = one
    return [replace(one, also=tuple(others[key])) for key, one in best.items()]
