"""Find the contradictions among facts, each with a probability: the one decision of queries, ledger and drift.

A logistic model weighs features of a pair of facts, each explainable. ``python -m lab.conflicts fit`` and ``natural``
write the models of facts and of sentences.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TypeAlias

from nornweave.core.types import Fact
from nornweave.disagree.conflicts.comparable import (
    WORD_ATTRIBUTES,
    NameMatch,
    are_of_two_environments,
    comparable,
    match_names,
    ordered,
    outcome,
    pairs,
    value_of,
)
from nornweave.disagree.conflicts.records import FactConflict, LocatedFact
from nornweave.disagree.facts.comparison import FactComparison, compared_kinds
from nornweave.disagree.facts.values import show

MIN_CONFIDENCE = 0.7
"""Below this, facts that differ are taken to be about two things: what nobody asked about needs to be sure."""
POSSIBLE_FROM = 0.5
"""In an answer both sides stand next to each other, so that the reader decides: more likely than not is enough."""
DEMOTE_FROM = 0.75
"""From this on a contradiction is so certain that one side of it may be demoted."""
SETTLED_SHARE = 0.8
"""A fact that finds its like is settled, unless it matches what it contradicts clearly better."""

STRUCTURED = frozenset(
    ("signature", "table", "heading", "list", "field", "manifest", "option", "definition", "setting")
)
_DECLARED = frozenset(("definition", "option", "fallback", "manifest"))
SMALL_CORPUS = 50
"""Documents that a corpus is taken to have besides its own: in an answer of ten chunks no word is common."""


MANY_DOCUMENTS = 500


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


@dataclass(frozen=True)
class FactCorpus:
    """Frequencies of words and names among the compared facts.

    Attributes:
        documents: the number of documents.
        holders: word in the context of a fact → the number of documents with such facts.
        in_words: the words in the contexts of facts that are not from code.
    """

    documents: int = 0
    holders: Counter[str] = field(default_factory=Counter)
    in_words: frozenset[str] = frozenset()

    def rarity(self, words: Iterable[str]) -> float:
        """Return the rarity of the rarest word, in [0, 1]; 0 without words.

        Inverse document frequency (Spärck Jones 1972), scaled so that a word of one document has about 1.
        """
        fewest = min(map(self.holders.__getitem__, words), default=None)
        if fewest is None:
            return 0.0
        size = SMALL_CORPUS + self.documents
        return math.log(size / max(1, fewest)) / math.log(size)


def corpus_of(facts: Collection[LocatedFact]) -> FactCorpus:
    """Count in how many documents each word is in the context of a fact."""
    contexts = {(one.place, word) for one in facts for word in one.context}
    return FactCorpus(
        documents=len({one.place for one in facts}),
        holders=Counter(word for _, word in contexts),
        in_words=frozenset(word for one in facts if one.fact.side != "code" for word in one.context),
    )


NO_CORPUS = FactCorpus()


def are_siblings(code: LocatedFact, other: LocatedFact) -> bool:
    """Tell whether the names of the facts' owners differ in only one word: ``BlobReader`` and ``BlobWriter``."""
    mine, theirs = code.near - other.near, other.near - code.near
    apart = not mine & other.context and not theirs & code.context
    return len(mine) == len(theirs) == 1 and apart and bool(code.near & other.near)


def _nearness(code: LocatedFact, other: LocatedFact, match: NameMatch, corpus: FactCorpus) -> float:
    """Return a measure, in [0, 1], of how rare the words are that the owners of two facts share."""
    if other.fact.attribute == "requires":  # the project itself has it
        return 1.0
    near = corpus.rarity((code.near & other.context) | (other.near & code.context))
    if match is NameMatch.OWNED:
        near = max(near, corpus.rarity(set(code.name_words) ^ set(other.name_words)))
    if other.fact.attribute in WORD_ATTRIBUTES:
        near = max(near, corpus.rarity(set(code.name_words) & set(other.name_words)))
    return near


def features(code: LocatedFact, other: LocatedFact, corpus: FactCorpus = NO_CORPUS) -> dict[str, float]:
    """Return the features of a pair of comparable facts with different values.

    Args:
        code: the fact from the side that is closer to the running system; the first result of ``comparable.ordered``.

    Returns:
        Feature → number, mostly 0 or 1. Every pair has the same features.
    """
    return (
        _of_names(code, other, corpus)
        | _of_statements(code.fact, other.fact)
        | {
            # The more documents meet, the more facts meet by chance.
            "documents": min(1.0, math.log1p(corpus.documents) / math.log1p(MANY_DOCUMENTS)),
        }
    )


def _of_names(code: LocatedFact, other: LocatedFact, corpus: FactCorpus) -> dict[str, float]:
    """Return features that show whether two facts concern one thing: names, owners and places."""
    match = match_names(code, other)
    shared = set(code.name_words) & set(other.name_words)
    is_apart = other.fact.attribute not in WORD_ATTRIBUTES
    near = _nearness(code, other, match, corpus)
    # A webhook's ``timeout`` beside ``webhook_timeout`` is a name of two words.
    is_owned = match is NameMatch.OWNED
    words = max(len(code.name_words), len(other.name_words)) if is_owned else len(shared)
    return {
        "name_completed_by_owner": float(is_owned),
        "longer_name": float(match is NameMatch.LONGER),
        "shared_name_words": min(3, words) - 1.0,
        "same_owner": near,
        "siblings": float(are_siblings(code, other)),
        "same_file_name": float(
            code.path != other.path and bool(code.file_words) and code.file_words == other.file_words
        ),
        # What one belongs to exists on the other side as well, and is something else there.
        "another_owner_in_words": is_apart * corpus.rarity((code.near - other.context) & corpus.in_words),
    }


def _of_statements(a: Fact, b: Fact) -> dict[str, float]:
    """Return features of the statements of two facts."""
    kinds = compared_kinds(value_of(a), value_of(b))
    return {
        "status_or_support": float(b.attribute == "status"),
        "requirement": float(b.attribute == "requires"),
        "structured": float(b.form in STRUCTURED),
        "topic": float(b.form == "topic"),
        "declared": float(a.form in _DECLARED),
        "setting": float(bool({a.side, b.side} & {"configuration"}) or "setting" in {a.attribute, b.attribute}),
        "qualified": float(bool(b.qualifiers) and b.attribute != "status"),  # every status has its occasion
        "code_has_none": float(a.kind == "none"),
        "other_kind": float(len(kinds) > 1 and "none" not in kinds),
        "people": float(b.side in {"conversation", "research"}),
    }


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
