"""Alarms over unaltered repositories, for somebody to read; labels of earlier readings stay with their alarm."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lab.conflicts.repositories import Repository, all_facts
from lab.conflicts.shares import Share
from nornweave.core.types import digest
from nornweave.disagree.conflicts import MIN_CONFIDENCE, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.comparable import ordered, outcome, pairs
from nornweave.disagree.conflicts.decision import corpus_of, features, shipped
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.values import show

Row = dict[str, Any]
MAX_STATEMENT = 160


def alarms(repository: Repository, min_confidence: float = MIN_CONFIDENCE) -> Iterator[Row]:
    """Yield the alarms of a repository, the most confident first, without labels."""
    facts = [fact for _, stated in sorted(all_facts(repository).items()) for fact in stated]
    corpus = corpus_of(facts)
    for one in find_conflicts(facts, min_confidence=min_confidence):
        sides = (one.first, one.second)
        yield {
            "fingerprint": digest(repository.name, one.name, one.attribute,
                                  *(part for side in sides for part in (side.path, side.fact.value)))[:16],
            "repository": repository.name,
            "commit": repository.commit,
            "name": one.name,
            "attribute": one.attribute,
            "confidence": one.confidence,
            "first": _side(one.first),
            "second": _side(one.second),
            "features": features(one.first, one.second, corpus),
            "real": None,
            "why": "",
        }  # fmt: skip


def agreements(repository: Repository) -> Iterator[Row]:
    """Yield features of the facts that agree in a value which hardly agrees by chance.

    What agrees is about one thing; had one side drifted since, the pair would be a contradiction with these features.
    """
    facts = [fact for _, stated in sorted(all_facts(repository).items()) for fact in stated]
    corpus = corpus_of(facts)
    best: dict[int, tuple[float, Mapping[str, float]]] = {}
    for first, second in pairs(facts):
        code, other = ordered(facts[first], facts[second])
        is_telling = code.fact.kind in {"number", "string", "list"} and code.fact.value not in _CHANCE
        if is_telling and outcome(code.fact, other.fact) is FactComparison.AGREE:
            place = first if facts[first] is other else second
            described = features(code, other, corpus)
            strength = shipped().probability(described)
            if place not in best or strength > best[place][0]:
                best[place] = strength, described
    yield from ({"repository": repository.name, "features": best[place][1]} for place in sorted(best))


_CHANCE = frozenset(("0", "1", "2", "-1", "", "[]", "10", "100"))


def _side(side: LocatedFact) -> Row:
    fact = side.fact
    return {
        "path": side.path,
        "line": side.line_range[0] if side.line_range else fact.line + 1,
        "value": ("not " if fact.negated else "") + show(fact.kind, fact.value, fact.unit)[:MAX_STATEMENT],
        "statement": fact.statement[:MAX_STATEMENT],
    }


def by_turns(groups: Iterable[Sequence[Row]], limit: int) -> list[Row]:
    """Take one of each group by turns, each group in its order, up to ``limit``."""
    turns = zip_longest(*groups)
    return [row for turn in turns for row in turn if row is not None][:limit]


def load_rows(path: Path) -> list[Row]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def with_labels(rows: Iterable[Row], labelled: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return alarms with the labels that a reader gave to the same alarms before."""
    known = {
        row["fingerprint"]: {"real": row["real"], "why": row["why"]} for row in labelled if row["real"] is not None
    }
    return [{**row, **known.get(row["fingerprint"], {})} for row in rows]


def precision(rows: Iterable[Mapping[str, Any]]) -> Share:
    """Return the share of real ones among the alarms that somebody has read."""
    read = [bool(row["real"]) for row in rows if row["real"] is not None]
    return Share(sum(read), len(read))
